//! Looking back at runs whose processes died: `trace`, `show`, `usage`, `replay` and the database agree.
//! The program is killed at writes of its store by the library of the agent's crash test.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use serde_json::{Value, json};

use crate::{
    gateway::{Piped, message},
    support::{Project, in_full},
};

/// Schedules of kills, and in the long form.
const SCHEDULES: (u64, u64) = (4, 200);

/// More processes than any schedule needs.
const MOST_PROCESSES: usize = 20;

/// A project with a tool for each answer to the question whether a call may be repeated, and `wire`,
/// whose calls a person approves.
static FILE: LazyLock<String> = LazyLock::new(|| {
    let tools = [
        ("append", "appended", ""),
        ("put", "put", "idempotent = true\n"),
        ("look", "seen", "read_only = true\n"),
        ("wire", "wired", ""),
    ];
    let tools = tools.map(|(name, said, effect)| {
        format!(
            "[[tool]]\nkind = 'command'\nname = '{name}'\ndescription = 'Says that it did.'\n\
            program = 'echo'\nargs = ['{said} {{n}}']\nparams = {{ n = {{ type = 'integer' }} }}\n{effect}"
        )
    });
    format!(
        "policy_default = 'allow'\n[agent]\nmodel = 'script:script.toml'\n{}\
        [[policy]]\neffect = 'ask'\ntool = ['wire']\nreason = 'money leaves the house'\n",
        tools.concat()
    )
});

/// A sequence of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A model with some responses of some calls each, then an answer.
fn script(random: &mut Random) -> String {
    let mut script = String::new();
    for step in 1..=1 + random.below(3) {
        let calls = (0..=random.below(4)).map(|n| {
            let tool = ["append", "put", "look", "wire"][usize::try_from(random.below(4)).unwrap()];
            format!("{{ tool = \"{tool}\", args = {{ n = {n} }} }}")
        });
        let calls: Vec<_> = calls.collect();
        let _ = writeln!(
            script,
            "[[rule]]\nstep = {step}\ncalls = [{}]\nusage = {{ input_tokens = 7, output_tokens = 3 }}",
            calls.join(", ")
        );
    }
    script + "[[rule]]\ntext = \"All done.\"\nusage = { input_tokens = 11, output_tokens = 2 }\n"
}

/// The library that kills, compiled once.
fn faults() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = source.join("../toolcrib-agent/tests/crash/faults.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = library.join(format!("cli_faults_{}.so", std::process::id()));
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
        assert!(compiler.status().unwrap().success(), "faults.c does not compile");
        library
    });
    &LIBRARY
}

/// Runs the program, killed before the write or sync of a number. Returns its exit code; `None` if it
/// was killed.
fn killed_at(project: &Project, args: &[&str], write: Option<u64>) -> Option<i32> {
    let mut command = project.command(args);
    if let Some(write) = write {
        command.env("CRASH_FAULT", format!("kill:{write}")).env("LD_PRELOAD", faults());
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match (output.status.code(), output.status.signal()) {
        (None, Some(9)) => {
            free(project);
            None
        }
        (Some(code @ (0 | 4)), _) => Some(code),
        status => panic!("{args:?} {write:?}: {status:?} {said}"),
    }
}

/// Ends the lease of a killed process, which would expire after some seconds.
fn free(project: &Project) {
    if let Ok(store) = rusqlite::Connection::open(project.state().join("sessions.db")) {
        let _ = store.execute("UPDATE sessions SET lease_until_ms = 0", []);
    }
}

/// Decides on all that waits, as a person does at another terminal.
fn settle(project: &Project, random: &mut Random) {
    let (_, waiting) = project.json(&["approvals"]);
    for waiting in list(&waiting["approvals"]).iter().filter(|one| one["state"] == "open") {
        let id = waiting["id"].as_str().unwrap();
        let settled = match random.below(3) {
            0 => project.toolcrib(&["deny", id, "--reason", "not tonight"]),
            _ => project.toolcrib(&["approve", id, "--yes"]),
        };
        assert_eq!(settled.code, Some(0), "{}", settled.stderr);
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The calls of the store: id, outcome, cut-off attempts.
fn stored_calls(project: &Project) -> BTreeMap<String, (Option<String>, u64)> {
    let store = rusqlite::Connection::open(project.state().join("sessions.db")).unwrap();
    let mut calls = store.prepare("SELECT call_id, outcome, cut_off FROM calls").unwrap();
    let calls = calls.query_map([], |row| {
        Ok((
            row.get::<_, String>(0)?,
            (row.get::<_, Option<String>>(1)?, row.get::<_, u32>(2)?.into()),
        ))
    });
    calls.unwrap().map(Result::unwrap).collect()
}

/// Compares all that looks back at the only run. Returns the trace; `None` without a run.
fn look_back(project: &Project) -> Option<Value> {
    let (_, runs) = project.json(&["runs"]);
    let run = list(&runs["runs"]).first()?.clone();
    let session = text(&run["session"]);
    let (code, trace) = project.json(&["trace"]);
    assert_eq!(code, Some(0), "{trace}");
    let (_, shown) = project.json(&["show", session]);
    let stored = stored_calls(project);

    // Each call once, in the order of the conversation.
    let iterations = list(&trace["iterations"]);
    let traced: Vec<_> = iterations.iter().flat_map(|one| list(&one["calls"])).collect();
    let ids: Vec<_> = traced.iter().map(|call| text(&call["call_id"])).collect();
    let of_messages: Vec<_> = list(&shown["messages"])
        .iter()
        .filter_map(|message| message["calls"].as_array())
        .flatten()
        .map(|call| text(&call["id"]))
        .collect();
    assert_eq!(ids, of_messages, "{trace:#}");

    // Outcomes are those of the store, and so are results and attempts.
    for call in &traced {
        let id = text(&call["call_id"]);
        let (outcome, cut_off) = match stored.get(id) {
            Some((outcome, cut_off)) => (outcome.as_deref(), *cut_off),
            None => (call["outcome"].as_str(), 0),
        };
        assert_eq!(
            (call["outcome"].as_str(), number(&call["cut_off"])),
            (outcome, cut_off),
            "{call}"
        );
        assert_eq!(call["read_only"].is_null(), !stored.contains_key(id), "{call}");
        let result =
            list(&shown["messages"]).iter().find(|message| message["call_id"] == call["call_id"]);
        if let Some(result) = result {
            assert_eq!(call["result"], result["text"], "{call}");
            assert!(outcome.is_some(), "{call}");
        }
    }
    assert!(stored.keys().all(|id| ids.contains(&&**id)), "{trace:#}");

    // One clock.
    let mut last = 0;
    for iteration in iterations {
        let marks = list(&iteration["interruptions"]);
        let requests = list(&iteration["requests"]).iter().map(|one| number(&one["at_ms"]));
        for at in [number(&iteration["at_ms"])].into_iter().chain(requests) {
            assert!(at >= last, "{trace:#}");
            last = at;
        }
        for mark in marks {
            let resumed = mark["resumed_ms"].as_u64().unwrap_or(u64::MAX);
            assert!(number(&mark["at_ms"]) < resumed, "{trace:#}");
        }
        for call in list(&iteration["calls"]) {
            assert!(number(&call["at_ms"]) >= number(&iteration["at_ms"]), "{trace:#}");
        }
    }

    // The usage of the run, of its requests, and of the sums.
    let responses: Vec<_> = iterations
        .iter()
        .flat_map(|one| list(&one["requests"]))
        .filter(|request| !request["response"].is_null())
        .collect();
    let tokens: u64 =
        responses.iter().map(|one| number(&one["response"]["usage"]["input_tokens"])).sum();
    let (_, usage) = project.json(&["usage", "--by", "model"]);
    assert_eq!(trace["usage"]["input_tokens"], tokens, "{trace:#}");
    assert_eq!(run["usage"], trace["usage"]);
    assert_eq!(usage["total"]["input_tokens"], tokens, "{usage} {trace:#}");
    assert_eq!(usage["total"]["model_requests"], responses.len(), "{usage} {trace:#}");

    // The texts say the same.
    let traced_text = project.toolcrib(&["trace"]).stdout;
    let shown_text = project.toolcrib(&["show", session]).stdout;
    let is_open = |call: &&&Value| call["outcome"].is_null();
    assert_eq!(
        traced_text.matches("  no end (").count(),
        traced.iter().filter(is_open).count(),
        "{traced_text}"
    );
    for call in &traced {
        let word = match (call["read_only"].is_null(), call["outcome"].as_str()) {
            (true, _) => "not made",
            (false, outcome) => outcome.unwrap_or("running"),
        };
        assert!(shown_text.contains(&format!("({word})")), "{shown_text}");
    }
    Some(trace)
}

/// The marks of a trace, by their reason.
fn marks(trace: &Value, why: &str) -> usize {
    let inner = list(&trace["iterations"]).iter().flat_map(|one| list(&one["interruptions"]));
    let all = inner.chain(list(&trace["interruptions"]));
    all.filter(|mark| mark["why"] == *why && !mark["resumed_ms"].is_null()).count()
}

fn is_running(project: &Project) -> bool {
    let (_, runs) = project.json(&["runs"]);
    list(&runs["runs"]).first().is_some_and(|run| run["state"] == "running")
}

/// Kills a run at writes until it has ended, and looks back after each process.
fn schedule(seed: u64) {
    let mut random = Random(seed);
    let script = script(&mut random);
    let project = Project::of(&[("toolcrib.toml", &FILE), ("script.toml", &script)]);
    let kills = 1 + random.below(3);
    let mut deaths = 0;
    let mut waits = 0;
    for process in 0..MOST_PROCESSES {
        let write = (process < usize::try_from(kills).unwrap()).then(|| 1 + random.below(90));
        let is_resumed = is_running(&project);
        let args: &[&str] = if is_resumed { &["resume"] } else { &["run", "Go"] };
        let code = killed_at(&project, args, write);
        let trace = look_back(&project);
        match code {
            None => deaths += usize::from(is_running(&project)),
            Some(4) => {
                waits += 1;
                settle(&project, &mut random);
            }
            Some(_) => {
                let trace = trace.unwrap();
                let died = marks(&trace, "died");
                let waited = marks(&trace, "awaiting_approval");
                let (had, has) = (deaths + waits > 0, died + waited > 0);
                // A process that died before its first write leaves no mark, and one that died after it had
                // parked its calls leaves the mark of a wait.
                let fits = died <= deaths && died + waited <= deaths + waits;
                assert!(fits && had == has, "seed {seed}: {deaths} {waits} {trace:#}");
                assert_eq!(trace["stopped"], "answered", "seed {seed}: {trace:#}");
                let calls = list(&trace["iterations"]).iter().map(|one| list(&one["calls"]).len());
                let (_, usage) = project.json(&["usage", "--by", "tool"]);
                let (counted, calls) = (number(&usage["total"]["calls"]), calls.sum::<usize>());
                assert_eq!(counted, calls as u64, "seed {seed}: {usage} {trace:#}");
                let replay = project.toolcrib(&["replay"]);
                assert_eq!(replay.code, Some(0), "seed {seed}: {}{trace:#}", replay.stdout);
                return;
            }
        }
    }
    panic!("seed {seed} does not end");
}

#[test]
fn all_that_looks_back_at_a_killed_run_agrees_with_the_database() {
    let (short, long) = SCHEDULES;
    (0..if in_full() { long } else { short }).for_each(schedule);
}

/// A run with calls that both end, and is killed before the second result is stored.
fn killed_between_two_results() -> Project {
    let script = "[[rule]]\nstep = 1\ncalls = [{ tool = \"append\", args = { n = 1 } }, \
        { tool = \"wait\", args = {} }]\n[[rule]]\ntext = \"All done.\"\n";
    let wait = "[[tool]]\nkind = \"command\"\nname = \"wait\"\ndescription = \"Waits.\"\n\
        program = \"sh\"\nargs = [\"-c\", \"test -e again || (touch began; sleep 60)\"]\n\
        inherit_env = [\"PATH\"]\nidempotent = true\n";
    let project =
        Project::of(&[("toolcrib.toml", &(FILE.clone() + wait)), ("script.toml", script)]);
    let mut run = project.command(&["run", "Go"]);
    let mut run = run
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let has_outcome = || {
        let calls = std::panic::catch_unwind(|| stored_calls(&project)).unwrap_or_default();
        calls.values().any(|(outcome, _)| outcome.is_some())
    };
    crate::support::wait_for(|| project.path().join("began").exists() && has_outcome());
    run.kill().unwrap();
    run.wait().unwrap();
    free(&project);
    project.write("again", "");
    project
}

#[test]
fn a_journaled_result_is_ok_after_a_crash_and_the_trace_says_where_the_process_died() {
    let project = killed_between_two_results();
    // The lines about calls and processes, without times.
    let told = || {
        let text = project.toolcrib(&["trace"]).stdout;
        let times = regex::Regex::new(r"\d+(\.\d)? m?s\b").unwrap();
        let lines = text.lines().filter(|line| {
            ["  call ", "  died ", "  no end "].iter().any(|label| line.starts_with(label))
        });
        lines
            .map(|line| times.replace_all(line.trim_start(), "[ms]").into_owned() + "\n")
            .collect::<String>()
    };
    insta::assert_snapshot!(told(), @r#"
    call      append {"n":1}  ok (writes, from the journal)
    call      wait {}  no end (writes)
    no end    after [ms]: the run goes on, or its process died
    "#);
    look_back(&project).unwrap();
    let (code, resumed) = project.json(&["resume"]);
    assert_eq!(code, Some(0), "{resumed}");
    insta::assert_snapshot!(told(), @r#"
    call      append {"n":1}  ok (writes, from the journal)
    died      the process of the run, after [ms]; another process went on after [ms]: 1 call kept, 1 call made once more
    call      wait {}  ok in [ms] (writes, 1 attempt cut off)
    "#);
    let trace = look_back(&project).unwrap();
    let calls = list(&trace["iterations"][0]["calls"]);
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0]["outcome"], &calls[0]["end"]), (&json!("ok"), &Value::Null));
    let page = project.path().join("page.html");
    assert_eq!(project.toolcrib(&["trace", "--html", page.to_str().unwrap()]).code, Some(0));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("the process of the run, after") && !page.contains("no end"), "{page}");
}

/// A run whose call a person refused, approved, or permitted by a grant, and its replay.
#[test]
fn a_replay_takes_refusals_approvals_grants_and_answers_from_the_journal() {
    let script = "[[rule]]\nuser = \"Ask\"\nnot_called = \"clarify\"\n\
        calls = [{ tool = \"clarify\", args = { question = \"Which?\" } }]\n\
        [[rule]]\nuser = \"Wire\"\nnot_called = \"wire\"\n\
        calls = [{ tool = \"wire\", args = { n = 5 } }]\n[[rule]]\ntext = \"Done.\"\n";
    let clarify = "[[tool]]\nkind = \"clarify\"\n";
    let file = FILE.clone() + clarify;
    let project = Project::of(&[("toolcrib.toml", &file), ("script.toml", script)]);
    let replayed = |what: &str| {
        for sides in [&["replay"] as &[&str], &["replay", "--model"], &["replay", "--tools"]] {
            let replay = project.toolcrib(sides);
            assert_eq!(
                replay.code,
                Some(0),
                "{what} {sides:?}: {}{}",
                replay.stdout,
                replay.stderr
            );
        }
    };
    let at_terminal = |message: &str, prompt: &str, answer: &str| {
        let (code, said) =
            crate::support::at_terminal(&project.command(&["run", message]), prompt, answer);
        assert_eq!(code, Some(0), "{said}");
    };
    at_terminal("Wire it", "/N]", "n\n");
    replayed("refused at the terminal");
    at_terminal("Wire it", "/N]", "y\n");
    replayed("approved at the terminal");
    at_terminal("Ask it", "your answer", "blue\n");
    replayed("answered at the terminal");

    let waits = || {
        assert_eq!(project.toolcrib(&["run", "Wire it"]).code, Some(4));
        let (_, waiting) = project.json(&["approvals"]);
        text(&waiting["approvals"][0]["id"]).to_owned()
    };
    let resumed = || assert_eq!(project.toolcrib(&["resume"]).code, Some(0));
    let id = waits();
    replayed("waiting");
    assert_eq!(project.toolcrib(&["deny", &id, "--reason", "no"]).code, Some(0));
    resumed();
    replayed("denied from elsewhere");
    let id = waits();
    let grant = ["approve", &id, "--yes", "--for", "1h", "--where", "n<=9"];
    assert_eq!(project.toolcrib(&grant).code, Some(0));
    resumed();
    replayed("approved from elsewhere");
    assert_eq!(project.toolcrib(&["run", "Wire it"]).code, Some(0));
    replayed("permitted by a grant");

    // A rule that no longer asks is a difference, and no body runs.
    project.write("toolcrib.toml", &file.replace("effect = 'ask'", "effect = 'allow'"));
    let (code, replay) = project.json(&["replay"]);
    assert_eq!(code, Some(1), "{replay}");
    let difference = &replay["difference"];
    assert_eq!(difference["part"], "policy", "{replay}");
    assert_eq!((&difference["expected"], &difference["actual"]), (&json!("ask"), &json!("allow")));
}

#[test]
fn calls_of_a_gateway_are_traced_by_principal() {
    let project = Project::of(&[
        ("toolcrib.toml", &FILE.replace("effect = 'ask'", "effect = 'allow'")),
        ("script.toml", "[[rule]]\ntext = \"Hi.\"\n"),
    ]);
    let none = project.toolcrib(&["trace", "--gateway"]);
    assert!(none.code == Some(2) && none.stderr.contains("serve --store-calls"), "{}", none.stderr);
    for who in ["ann", "bob"] {
        let mut client =
            Piped::start(&mut project.command(&["serve", "--store-calls", "--as", who]));
        for (id, name, n) in
            [(2, "look", json!(1)), (3, "append", json!(2)), (4, "append", json!("x"))]
        {
            let call = json!({ "name": name, "arguments": { "n": n } });
            client.ask(&message(id, "tools/call", &call));
        }
        let (code, said) = client.end();
        assert_eq!(code, Some(0), "{said}");
    }
    let (_, runs) = project.json(&["runs", "--gateway", "--as", "ann"]);
    let told: Vec<_> = list(&runs["runs"])
        .iter()
        .map(|run| (text(&run["title"]), text(&run["stopped"]), number(&run["calls"])))
        .collect();
    let expected =
        [("append", "input_invalid", 0), ("append", "answered", 1), ("look", "answered", 1)];
    assert_eq!(told, expected);
    let second = &list(&runs["runs"])[1];
    let name = format!("{}/{}", text(&second["session"]), second["number"]);
    let (_, trace) = project.json(&["trace", "--gateway", "--as", "ann", &name]);
    let call = &trace["iterations"][0]["calls"][0];
    assert_eq!((&call["tool"], &call["outcome"]), (&json!("append"), &json!("ok")), "{trace:#}");
    assert_eq!((&call["arguments"]["n"], &call["read_only"]), (&json!(2), &json!(false)), "{call}");
    assert!(text(&call["result"]).contains("appended 2") && !call["end"].is_null(), "{call}");
    // Another principal sees none of them, and they are no sessions.
    let other = project.toolcrib(&["trace", "--gateway", "--as", "bob", &name]);
    assert_eq!(other.code, Some(2));
    assert_eq!(list(&project.json(&["sessions", "--as", "ann"]).1["sessions"]).len(), 0);
}
