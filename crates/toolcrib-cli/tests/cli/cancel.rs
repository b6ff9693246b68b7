//! Interrupts at any moment, and deaths in the middle.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::support::{Project, in_full, wait_for};

/// A model that thinks for a moment, and tools that take their time in SQL: one reads, one is in
/// the middle of a transaction, one never ends.
fn slow() -> Project {
    Project::of(&[
        (
            "toolcrib.toml",
            r#"
            [agent]
            model = "script:script.toml"
            [database.db]
            file = "db.db"
            seed = "seed.sql"
            [[tool]]
            kind = "sql"
            name = "read_slowly"
            description = "Reads for a while."
            read_only = true
            statements = ["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT sum(i) AS total FROM n"]
            [[tool]]
            kind = "sql"
            name = "write_slowly"
            description = "Writes two rows, slowly."
            statements = [
                "INSERT INTO marks (mark) VALUES ('first')",
                "INSERT INTO marks (mark) SELECT 'second' FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT sum(i) AS total FROM n)",
            ]
            [[tool]]
            kind = "sql"
            name = "write_for_ever"
            description = "Writes a row, and never ends."
            timeout = "10m"
            statements = [
                "INSERT INTO marks (mark) VALUES ('never')",
                "INSERT INTO marks (mark) SELECT 'never' FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS top FROM n)",
            ]
            [[tool]]
            kind = "sql"
            name = "read_for_ever"
            description = "Never ends."
            read_only = true
            timeout = "300ms"
            statements = ["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS top FROM n"]
        "#,
        ),
        ("seed.sql", "CREATE TABLE marks (mark TEXT NOT NULL);"),
        (
            "script.toml",
            r#"
            [[rule]]
            called = "write_slowly"
            delay_ms = 15
            text = "Done."
            [[rule]]
            called = "read_slowly"
            delay_ms = 10
            calls = [{ tool = "write_slowly" }]
            [[rule]]
            user = "for ever"
            calls = [{ tool = "write_for_ever" }]
            [[rule]]
            delay_ms = 15
            calls = [{ tool = "read_slowly" }, { tool = "read_slowly" }]
        "#,
        ),
    ])
}

fn marks(project: &Project, mark: &str) -> u32 {
    rusqlite::Connection::open(project.state().join("db.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM marks WHERE mark = ?1", [mark], |row| row.get(0))
        .unwrap()
}

/// Whether a process handles SIGINT and SIGTERM itself, or has ended already. SIGHUP is set up with
/// them.
fn listens(child: &Child) -> bool {
    catches(child, &[2, 15])
}

/// Whether a process handles these signals itself, or has ended already.
fn catches(child: &Child, signals: &[u32]) -> bool {
    let signals: u64 = signals.iter().map(|signal| 1 << (signal - 1)).sum();
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    status.contains("State:\tZ") || caught.is_some_and(|caught| caught & signals == signals)
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn a_terminal_that_is_closed_ends_nothing_under_nohup() {
    let project = slow();
    let command = project.command(&["run", "go", "--json"]);
    let mut nohup = Command::new("nohup");
    nohup.arg(command.get_program()).args(command.get_args());
    let folder = command.get_current_dir().unwrap_or(project.path());
    let envs = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut child = nohup
        .current_dir(folder)
        .envs(envs)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| catches(&child, &[2]));
    if child.try_wait().unwrap().is_none() {
        signal(&child, "-HUP");
    }
    let output = child.wait_with_output().unwrap();
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &run["stopped"]), (Some(0), &"answered".into()), "{run}");
}

/// A small generator: the moments differ from each other and are the same in every run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// The signals that end a run; SIGHUP is none where it is ignored, as under `nohup`.
fn endings() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    if ignored & 1 == 0 { vec!["-INT", "-TERM", "-HUP"] } else { vec!["-INT", "-TERM"] }
}

#[test]
fn an_interrupt_at_any_moment_ends_in_order() {
    let project = slow();
    let (moments, endings) = (if in_full() { 200 } else { 24 }, endings());
    assert_eq!(project.toolcrib(&["call", "read_slowly"]).code, Some(0));
    let began = std::time::Instant::now();
    assert_eq!(project.toolcrib(&["run", "go"]).code, Some(0));
    let mut span = began.elapsed();
    let mut seed = 42;
    let (mut cancelled, mut finished) = (0, 0);
    for moment in 0..moments {
        let file = project.path().join("events.jsonl");
        let _ = fs::remove_file(&file);
        let mut child = project
            .command(&["run", "go", "--json", "--events", file.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From when the program listens to a bit past its end, however busy the machine is.
        wait_for(|| listens(&child));
        let micros = u64::try_from(span.as_micros()).unwrap();
        std::thread::sleep(Duration::from_micros(random(&mut seed) % micros));
        if child.try_wait().unwrap().is_none() {
            signal(&child, endings[moment % endings.len()]);
        }
        let output = child.wait_with_output().unwrap();
        let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        match output.status.code() {
            Some(3) => {
                cancelled += 1;
                span = span * 51 / 50;
                assert_eq!(run["stopped"], "cancelled", "{run}");
            }
            // It was over before it heard.
            Some(0) => {
                finished += 1;
                span = span * 9 / 10;
                assert_eq!(run["stopped"], "answered", "{run}");
            }
            code => panic!("exit {code:?} at moment {moment}: {run}"),
        }
        // Every event is whole, each call that began ended, and the turn's end is the last. A
        // run that was cancelled while its project was loaded has none.
        let events: Vec<serde_json::Value> = fs::read_to_string(&file)
            .unwrap_or_default()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let count = |name: &str| events.iter().filter(|event| event["type"] == name).count();
        assert_eq!(count("tool.start"), count("tool.end"));
        assert!(output.status.code() == Some(3) || !events.is_empty());
        if let Some(last) = events.last() {
            assert_eq!((count("agent.turn_end"), &last["type"]), (1, &"agent.turn_end".into()));
        }
        assert_eq!(marks(&project, "first"), marks(&project, "second"), "half a transaction");
    }
    assert!(cancelled > moments / 2, "{cancelled} cancelled, {finished} finished");
    // No lock is left: the database can be recreated, which needs it alone.
    assert_eq!(project.toolcrib(&["call", "--fresh", "read_slowly"]).code, Some(0));
    assert_eq!(marks(&project, "first"), 0);
}

#[test]
fn a_signal_at_the_first_moment_that_is_handled_ends_with_the_documented_code() {
    let project = slow();
    // SIGHUP is handled a moment later.
    for ending in ["-INT", "-TERM"].into_iter().cycle().take(12) {
        let mut command = project.command(&["call", "write_for_ever"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !listens(&child) {
            std::hint::spin_loop();
        }
        signal(&child, ending);
        assert_eq!(child.wait().unwrap().code(), Some(3), "{ending}");
    }
}

/// Waits until a process has the only write lock.
fn wait_until_writing(project: &Project) {
    let file = project.state().join("db.db");
    wait_for(|| {
        // Opening it must not be what makes it.
        file.exists() && {
            let database = rusqlite::Connection::open(&file).unwrap();
            database.busy_timeout(Duration::ZERO).unwrap();
            database.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err()
        }
    });
}

/// Starts a run that never ends, and waits until it is in the middle of its transaction.
fn in_mid_transaction(project: &Project) -> Child {
    let file = project.path().join("events.jsonl");
    let _ = fs::remove_file(&file);
    let child = project
        .command(&["run", "for ever", "--events", file.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| fs::read_to_string(&file).is_ok_and(|events| events.contains("tool.start")));
    wait_until_writing(project);
    child
}

#[test]
fn a_kill_in_mid_transaction_leaves_nothing_half_done() {
    let project = slow();
    let mut child = in_mid_transaction(&project);
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(marks(&project, "never"), 0);
    assert_eq!(project.toolcrib(&["run", "go"]).code, Some(0));
    assert_eq!((marks(&project, "first"), marks(&project, "second")), (1, 1));
}

#[test]
fn an_interrupt_reaches_a_statement_that_never_ends() {
    let project = slow();
    let mut child = in_mid_transaction(&project);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert_eq!(marks(&project, "never"), 0);
    let events = fs::read_to_string(project.path().join("events.jsonl")).unwrap();
    assert!(!events.contains("abandoned"), "{events}");
    assert!(events.contains("\"code\":\"cancelled\""), "{events}");
}

#[test]
fn a_second_interrupt_ends_the_program_at_once() {
    let project = slow();
    let mut child = in_mid_transaction(&project);
    // Stopped in between, so that both are there when it looks.
    signal(&child, "-STOP");
    signal(&child, "-INT");
    signal(&child, "-TERM");
    signal(&child, "-CONT");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert_eq!(marks(&project, "never"), 0);
}

#[test]
fn a_statement_that_never_ends_meets_its_deadline() {
    let project = slow();
    let (code, call) = project.json(&["call", "read_for_ever"]);
    assert_eq!((code, call["code"].as_str()), (Some(1), Some("timeout")), "{call}");
    assert!(call["value"].as_str().unwrap().contains("300ms"), "{call}");
}
