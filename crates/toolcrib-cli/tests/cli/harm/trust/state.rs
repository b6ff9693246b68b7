//! State went where a link led, and others could read it.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use tempfile::TempDir;

use super::modes;
use crate::support::{Outcome, Project, listing};

const CALL: [&str; 3] = ["call", "list_charges", "order_id=1042"];

#[test]
fn state_was_written_through_a_link() {
    let elsewhere = TempDir::new().unwrap();
    let desk = Project::desk();
    std::os::unix::fs::symlink(elsewhere.path(), desk.state()).unwrap();
    for args in [&CALL as &[&str], &["check"], &["menu"]] {
        let outcome = desk.toolcrib(args);
        assert_ne!(outcome.code, Some(0), "{args:?}");
        assert!(outcome.stderr.contains("is a symbolic link"), "{args:?}: {}", outcome.stderr);
    }
    assert_eq!(listing(elsewhere.path()), []);
    fs::remove_file(desk.state()).unwrap();
    let named = elsewhere.path().join("link");
    std::os::unix::fs::symlink(desk.path(), &named).unwrap();
    let outcome =
        desk.toolcrib(&[&CALL as &[&str], &["--state", named.to_str().unwrap()]].concat());
    assert!(outcome.stderr.contains("is a symbolic link"), "{}", outcome.stderr);
}

#[test]
fn files_of_the_state_were_written_through_links() {
    let elsewhere = TempDir::new().unwrap();
    let target = elsewhere.path().join("target");
    for name in
        ["desk.db", "desk.db.lock", "desk.db.new", "desk.db-wal", "desk.db-shm", ".gitignore"]
    {
        for is_there in [false, true] {
            let desk = Project::desk();
            fs::create_dir(desk.state()).unwrap();
            let _ = fs::remove_file(&target);
            if is_there {
                fs::write(&target, "precious").unwrap();
            }
            std::os::unix::fs::symlink(&target, desk.state().join(name)).unwrap();
            let outcome = desk.toolcrib(&CALL);
            let now = fs::read_to_string(&target).ok();
            let before = is_there.then(|| "precious".to_owned());
            assert_eq!(now, before, "{name}: {}", outcome.stderr);
        }
    }
    let log = Project::of(&[("toolcrib.toml", &format!("{SPEAKS}[artifacts]\n"))]);
    fs::create_dir(log.state()).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), log.state().join("artifacts")).unwrap();
    let _ = fs::remove_file(&target);
    log.toolcrib(&["call", "speak", "--session", "c"]);
    assert_eq!(listing(elsewhere.path()), []);
}

const SPEAKS: &str = r#"
policy_default = "allow"
[[tool]]
kind = "command"
name = "speak"
description = "Speaks at length."
program = "seq"
args = ["100000"]
read_only = true
"#;

/// The program of a user with a permissive umask.
fn openly(command: &Command) -> Outcome {
    let program = command.get_program().to_owned();
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(program).args(args);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(std::process::Stdio::null()).output().unwrap().into()
}

#[test]
fn others_could_read_what_was_written() {
    let desk = Project::desk();
    let out = TempDir::new().unwrap();
    let file = |name: &str| out.path().join(name).to_str().unwrap().to_owned();
    let (events, script) = (file("events.jsonl"), file("recorded.toml"));
    let run =
        ["run", "--events", &events, "--record", &script, "I was charged twice for order 1042"];
    let assert_private = || {
        for (path, mode) in modes(&desk.state()).into_iter().chain(modes(out.path())) {
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        }
        let state = fs::metadata(desk.state()).unwrap().permissions().mode();
        assert_eq!(state & 0o077, 0, "{state:o}");
    };
    let ran = openly(&desk.command(&run));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let served = openly(&desk.command(&["serve", "--access-log", &file("access.log")]));
    assert_eq!(served.code, Some(0), "{}", served.stderr);
    assert!(modes(&desk.state()).len() >= 3 && modes(out.path()).len() == 3);
    assert_private();

    // Files that an earlier version created readable for all.
    for (path, mode) in modes(&desk.state()).into_iter().chain(modes(out.path())) {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o066)).unwrap();
    }
    fs::set_permissions(desk.state(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&script).unwrap();
    fs::remove_file(desk.state().join(".gitignore")).unwrap();
    assert_eq!(openly(&desk.command(&run)).code, Some(0));
    openly(&desk.command(&["serve", "--access-log", &file("access.log")]));
    assert_private();
}

#[test]
fn events_were_written_through_a_link_of_the_project() {
    let desk = Project::desk();
    let elsewhere = TempDir::new().unwrap();
    let target = elsewhere.path().join("precious");
    for is_there in [true, false] {
        let _ = fs::remove_file(&target);
        if is_there {
            fs::write(&target, "precious").unwrap();
        }
        let link = desk.path().join("events.jsonl");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let outcome = desk.toolcrib(&["run", "--events", link.to_str().unwrap(), "hello"]);
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert_eq!(fs::read_to_string(&target).is_ok(), is_there);
    }
}
