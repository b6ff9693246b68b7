//! Several processes, and processes that are killed. This binary runs itself again as the child.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::database::{Database, DatabaseError, DatabaseSpec, TransactionEnd};

use crate::support::{ENDLESS, Folder, REFUND_ONCE, SEED, mark, refunds, run, spec};

const ROLE: &str = "TOOLCRIB_TEST_ROLE";
const FOLDER: &str = "TOOLCRIB_TEST_FOLDER";

/// Not a separate test: the child processes of the others.
#[tokio::test]
async fn child() {
    let Ok(role) = env::var(ROLE) else { return };
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    match role.as_str() {
        "make_and_refund" => make_and_refund(&spec(&folder, SEED)).await,
        "make_forever" => {
            // A table, so that the draft is on the disk by then.
            let seed = format!("CREATE TABLE a (x); INSERT INTO a VALUES (1); {ENDLESS};");
            say("ready");
            Database::open(&spec(&folder, &seed), &CancellationToken::new()).unwrap();
        }
        "hold" => {
            let database = Database::open(&spec(&folder, SEED), &CancellationToken::new()).unwrap();
            let writable = database.writable();
            run(&writable, |c| c.execute_batch("CREATE TABLE later (x)")).await.unwrap();
            say(&mark(&database).await);
            wait_for_a_line();
        }
        "write_forever" => {
            let database = Database::open(&spec(&folder, SEED), &CancellationToken::new()).unwrap();
            let writable = database.writable();
            run(&writable, |c| c.execute("INSERT INTO refunds VALUES (1, 1)", [])).await.unwrap();
            run(&writable, |c| {
                // Much more than SQLite keeps in memory, so that it lies in the log by now.
                c.execute_batch(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400000)
                     INSERT INTO refunds SELECT i, i FROM n",
                )?;
                say("ready");
                c.execute_batch(ENDLESS)
            })
            .await
            .unwrap();
        }
        "only_read" => only_read(&spec(&folder, SEED)).await,
        other => panic!("no such role: {other}"),
    }
}

async fn make_and_refund(spec: &DatabaseSpec) {
    say("ready");
    wait_for_a_line();
    let database = Database::open(spec, &CancellationToken::new()).unwrap();
    let refunded = run(&database.writable(), |c| c.execute(REFUND_ONCE, [])).await.unwrap();
    say(&format!("{} {} {refunded}", mark(&database).await, u8::from(database.was_made())));
}

/// In a folder that this process cannot write to.
async fn only_read(spec: &DatabaseSpec) {
    let cancel = CancellationToken::new();
    let database = Database::open(spec, &cancel).unwrap();
    let (read_only, writable) = (database.read_only(), database.writable());
    let made = mark(&database).await;
    // A writing statement can be described, as for a tool that is only listed, and cannot be run.
    assert!(!writable.describe(REFUND_ONCE).unwrap().read_only);
    let refused = run(&writable, |c| c.execute(REFUND_ONCE, [])).await.unwrap_err();
    assert!(refused.to_string().contains("attempt to write a readonly database"), "{refused}");
    say(&format!("{made} {}", refunds(&database).await));
    wait_for_a_line();
    // Concurrent writes of a permitted user.
    say(&refunds(&database).await.to_string());
    drop((database, read_only, writable));
    let fresh = Database::claim(spec).unwrap().make_anew(&cancel).unwrap_err();
    assert!(matches!(fresh, DatabaseError::File { action: "make", .. }), "{fresh}");
    assert!(fresh.to_string().contains("could not make"), "{fresh}");
    say("refused");
}

fn say(line: &str) {
    // The harness begins a line, so this one starts a new one.
    println!("\n> {line}");
}

fn wait_for_a_line() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// A child, killed at the latest when the test ends.
struct Process {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(role: &str, folder: &Path) -> Self {
        Self::spawn(&mut Command::new(env::current_exe().unwrap()), role, folder)
    }

    fn spawn(command: &mut Command, role: &str, folder: &Path) -> Self {
        let mut child = command
            .args(["--exact", "processes::child", "--nocapture", "--test-threads", "1"])
            .env(ROLE, role)
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the child ended");
            if let Some(said) = line.strip_prefix("> ") {
                return said.trim_end().to_owned();
            }
        }
    }

    fn tell(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn one_of_concurrent_processes_creates_the_database_and_one_refunds() {
    for _ in 0..5 {
        let folder = Folder::new();
        let mut processes: Vec<_> =
            (0..6).map(|_| Process::start("make_and_refund", folder.dir.path())).collect();
        for process in &mut processes {
            assert_eq!(process.hear(), "ready");
        }
        processes.iter_mut().for_each(Process::tell);
        let said: Vec<String> = processes.iter_mut().map(Process::hear).collect();
        let words: Vec<Vec<&str>> = said.iter().map(|line| line.split(' ').collect()).collect();
        assert!(words.iter().all(|w| w[0] == words[0][0]), "one database: {said:?}");
        assert_eq!(words.iter().filter(|w| w[1] == "1").count(), 1, "one maker: {said:?}");
        assert_eq!(words.iter().filter(|w| w[2] == "1").count(), 1, "one refund: {said:?}");
    }
}

#[tokio::test]
async fn fresh_is_refused_while_another_process_uses_it_and_not_after_it_was_killed() {
    let folder = Folder::new();
    let mut holder = Process::start("hold", folder.dir.path());
    let made = holder.hear();
    let error = folder.open_fresh().unwrap_err();
    assert!(matches!(error, DatabaseError::InUse { .. }), "{error}");
    assert_eq!(mark(&folder.open().unwrap()).await, made);
    holder.kill();
    assert_ne!(mark(&folder.open_fresh().unwrap()).await, made);
}

#[test]
fn a_database_that_another_process_uses_is_inspected_without_a_trace() {
    let folder = Folder::new();
    let mut holder = Process::start("hold", folder.dir.path());
    holder.hear();
    let before = folder.listing();
    assert!(before.iter().any(|(name, ..)| name.ends_with("-wal")), "{before:?}");
    let inspected = folder.inspect().unwrap();
    // It is only in the log, so the log has been read.
    inspected.read_only().describe("SELECT x FROM later").unwrap();
    drop(inspected);
    assert_eq!(folder.listing(), before);
    holder.kill();
    let inspected = folder.inspect().unwrap();
    inspected.read_only().describe("SELECT x FROM later").unwrap();
    drop(inspected);
    assert_eq!(folder.listing(), before);
}

#[tokio::test]
async fn a_maker_that_is_killed_leaves_nothing_that_counts() {
    let folder = Folder::new();
    let mut maker = Process::start("make_forever", folder.dir.path());
    assert_eq!(maker.hear(), "ready");
    while !folder.names().iter().any(|name| name.ends_with(".new")) {
        std::thread::yield_now();
    }
    // Another one waits, and its waiting can be cancelled.
    let cancel = CancellationToken::new();
    let waiting = std::thread::spawn({
        let (spec, cancel) = (folder.spec.clone(), cancel.clone());
        move || Database::open(&spec, &cancel)
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!waiting.is_finished());
    cancel.cancel();
    assert!(matches!(waiting.join().unwrap(), Err(DatabaseError::Cancelled { .. })));
    maker.kill();
    let database = folder.open().unwrap();
    assert!(database.was_made());
    assert_eq!(refunds(&database).await, 0);
    assert!(!folder.names().iter().any(|name| name.contains(".new")), "{:?}", folder.names());
}

#[tokio::test]
async fn a_kill_in_mid_transaction_leaves_the_state_before_it() {
    let folder = Folder::new();
    let mut writer = Process::start("write_forever", folder.dir.path());
    assert_eq!(writer.hear(), "ready");
    let database = folder.open().unwrap();
    assert_eq!(refunds(&database).await, 1, "nothing of it is seen while it runs");
    drop(database);
    writer.kill();

    // Existing files are inspected without being changed.
    let before = folder.listing();
    let inspected = folder.inspect().unwrap();
    inspected.read_only().describe("SELECT * FROM refunds").unwrap();
    drop(inspected);
    assert_eq!(folder.listing(), before);

    let database = folder.open().unwrap();
    assert!(!database.was_made());
    assert_eq!(refunds(&database).await, 1);
    run(&database.writable(), |c| c.execute(REFUND_ONCE, [])).await.unwrap();
    let sound: String = database
        .read_only()
        .transaction(&CancellationToken::new(), |c| {
            let orders =
                c.query_row("SELECT group_concat(order_id) FROM refunds", [], |row| row.get(0))?;
            Ok(TransactionEnd::Commit(orders))
        })
        .await
        .unwrap();
    assert_eq!(sound, "1,7");
}

/// Permissions of everything in a folder, and of the folder itself, for all users.
#[cfg(unix)]
fn allow(folder: &Folder, of_files: u32, of_folder: u32) {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let dir = folder.dir.path();
    set(dir, 0o755).unwrap();
    for name in folder.names() {
        set(&dir.join(name), of_files).unwrap();
    }
    set(dir, of_folder).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn in_a_folder_that_cannot_be_written_a_database_that_is_there_can_be_read() {
    use std::{
        fs,
        os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    };

    // Where a user of no rights can run it.
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("child");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at_rest = ["desk #1?.db", "desk #1?.db.lock"];
    let after_reading =
        ["desk #1?.db", "desk #1?.db-shm", "desk #1?.db-wal", "desk #1?.db.lock"].as_slice();
    for left in [at_rest.as_slice(), after_reading] {
        let folder = Folder::new();
        let dir = folder.dir.path();
        let made = mark(&folder.open().unwrap()).await;
        if left == at_rest {
            // The last connection clears up if it can write.
            run(&folder.open().unwrap().writable(), |_| Ok(())).await.unwrap();
        }
        assert_eq!(folder.names(), left);
        allow(&folder, 0o444, 0o555);
        let mut command = Command::new(&program);
        if fs::write(dir.join("probe"), "").is_ok() {
            // Permissions do not bind this process, and so must bind another user.
            fs::remove_file(dir.join("probe")).unwrap();
            command.uid(65534).gid(65534);
        }
        let mut reader = Process::spawn(&mut command, "only_read", dir);
        assert_eq!(reader.hear(), format!("{made} 0"));
        assert_eq!(folder.names(), left);

        allow(&folder, 0o644, 0o755);
        let database = folder.open().unwrap();
        run(&database.writable(), |c| c.execute(REFUND_ONCE, [])).await.unwrap();
        drop(database);
        allow(&folder, 0o444, 0o555);
        reader.tell();
        assert_eq!(reader.hear(), "1");
        assert_eq!(reader.hear(), "refused");
        allow(&folder, 0o644, 0o755);
    }
}
