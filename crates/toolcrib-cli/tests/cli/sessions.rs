//! Sessions of `run`: continued, listed, shown, exported, deleted; killed runs, two runs at once,
//! and stores that cannot be used.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
};

use serde_json::{Deserializer, Value, json};
use toolcrib_core::unfence;
use toolcrib_models::Vendor;

use crate::{
    model_faults::wire::Answer,
    models::{Prepared, reply},
    support::{Outcome, Project, wait_for},
};

const FILE: &str = r#"
policy_default = "allow"
[agent]
model = "script:script.toml"
[[tool]]
kind = "command"
name = "pay"
description = "Pays."
program = "sh"
args = ["-c", "echo paid >> paid.txt; sleep 1000"]
inherit_env = ["PATH"]
timeout = "10m"
[[tool]]
kind = "command"
name = "count"
description = "Counts."
program = "seq"
args = ["{to}"]
params = { to = { type = "integer", description = "Up to." } }
read_only = true
"#;

const SCRIPT: &str = r#"
[[rule]]
called = "pay"
text = "It is not known whether it was paid."
[[rule]]
user = "Pay"
calls = [{ tool = "pay" }]
[[rule]]
called = "count"
text = "Counted."
[[rule]]
user = "Count"
calls = [{ tool = "count", args = { to = 3 } }]
[[rule]]
text = "You said: {{ user }}"
"#;

fn project() -> Project {
    Project::of(&[("toolcrib.toml", FILE), ("script.toml", SCRIPT)])
}

/// The text of the messages of a session, each after its role.
fn said(project: &Project, session: &str) -> Vec<String> {
    let (code, shown) = project.json(&["show", session]);
    assert_eq!(code, Some(0), "{shown}");
    let messages = shown["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            let text = message["text"].as_str().unwrap();
            let text = unfence(text).0;
            format!("{}: {text}", message["role"].as_str().unwrap())
        })
        .collect()
}

/// The ids or names of the listed sessions.
fn listed(project: &Project, args: &[&str]) -> Vec<String> {
    let outcome = project.toolcrib(&[&["sessions", "-q"], args].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout.lines().map(str::to_owned).collect()
}

/// A run in the middle of its payment.
fn paying(project: &Project) -> Child {
    let mut command = project.command(&["run", "Pay", "the", "bill"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(|| payments(project) > 0);
    child
}

fn payments(project: &Project) -> usize {
    let paid = fs::read_to_string(project.path().join("paid.txt"));
    paid.map(|paid| paid.lines().count()).unwrap_or_default()
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn a_run_continues_the_last_one() {
    let project = project();
    assert_eq!(project.toolcrib(&["run", "-c", "Hello"]).code, Some(2));
    let (code, first) = project.json(&["run", "Hello"]);
    assert_eq!(code, Some(0), "{first}");
    let id = first["session"].as_str().unwrap().to_owned();
    let (_, second) = project.json(&["run", "-c", "Count to three"]);
    assert_eq!((&second["session"], &second["answer"]), (&json!(id), &json!("Counted.")));
    assert_eq!(
        said(&project, &id),
        [
            "user: Hello",
            "assistant: You said: Hello",
            "user: Count to three",
            "assistant: ",
            "tool: 1\n2\n3",
            "assistant: Counted.",
        ]
    );
    // Another run is another session, and then the last one.
    let (_, other) = project.json(&["run", "Good day"]);
    let other = other["session"].as_str().unwrap().to_owned();
    assert_eq!(listed(&project, &[]), [other.clone(), id]);
    project.json(&["run", "-c", "Go on"]);
    assert_eq!(said(&project, &other).len(), 4);
}

#[test]
fn a_session_with_a_name_is_created_and_continued() {
    let project = project();
    project.write("message.txt", "A message\nof two lines\n");
    let file = format!("@{}", project.path().join("message.txt").display());
    let first = project.toolcrib(&["run", "--session", "refunds", &file]);
    assert_eq!(first.stdout, "You said: A message\nof two lines\n", "{}", first.stderr);
    project.toolcrib(&["run", "--session", "refunds", "unquoted", "words"]);
    assert_eq!(said(&project, "refunds")[2], "user: unquoted words");
    assert_eq!(listed(&project, &[]), ["refunds"]);
    let unknown = project.toolcrib(&["run", "--session", "0123456789ab", "Hello"]);
    assert_eq!(unknown.code, Some(2));
    insta::assert_snapshot!(unknown.stderr, @"error: there is no session `0123456789ab`; `toolcrib sessions` lists all");
    let bad = project.toolcrib(&["run", "--session", "a b", "Hello"]);
    assert_eq!(bad.code, Some(2));
    let missing = project.toolcrib(&["run", "@missing.txt"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("missing.txt cannot be read"), "{}", missing.stderr);
}

#[test]
fn a_run_without_a_session_leaves_nothing() {
    let project = project();
    let (_, run) = project.json(&["run", "Hello", "--no-session"]);
    assert_eq!(run["session"], Value::Null);
    assert!(!project.state().exists());
    project.write("toolcrib.toml", &format!("{FILE}[sessions]\nstore = \"none\"\n"));
    let (_, run) = project.json(&["run", "Hello"]);
    assert_eq!(run["session"], Value::Null);
    assert!(!project.state().exists());
    // A session that is named is stored all the same.
    let (_, run) = project.json(&["run", "Hello", "--session", "kept"]);
    assert!(run["session"].is_string());
    assert_eq!(listed(&project, &[]), ["kept"]);
}

#[test]
fn a_killed_call_is_outcome_unknown_and_is_not_made_again() {
    let project = project();
    let mut child = paying(&project);
    signal(&child, "-KILL");
    child.wait().unwrap();
    let (code, run) = project.json(&["run", "-c", "What happened?"]);
    assert_eq!((code, &run["answer"]), (Some(0), &json!("You said: What happened?")), "{run}");
    assert_eq!(payments(&project), 1);
    let session = run["session"].as_str().unwrap();
    let (_, shown) = project.json(&["show", session]);
    assert_eq!(shown["turns"][0]["stopped"], "interrupted");
    assert_eq!(shown["calls"][0]["outcome"], "outcome_unknown");
    let roles: Vec<_> =
        shown["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    let text = shown["messages"][2]["text"].as_str().unwrap();
    assert!(text.starts_with("outcome_unknown: "), "{text}");
    assert_eq!(shown["messages"][2]["call_id"], shown["messages"][1]["calls"][0]["id"]);
}

#[test]
fn a_killed_run_is_resumed_where_it_stopped() {
    let project = project();
    let nothing = project.toolcrib(&["resume"]);
    assert_eq!(nothing.code, Some(2));
    insta::assert_snapshot!(nothing.stderr, @"error: there is no run to resume: none was interrupted; `toolcrib run -c MESSAGE` continues the last conversation");
    let mut child = paying(&project);
    signal(&child, "-KILL");
    child.wait().unwrap();
    let resumed = project.toolcrib(&["resume"]);
    assert_eq!((resumed.code, payments(&project)), (Some(0), 1), "{}", resumed.stderr);
    assert_eq!(resumed.stdout, "It is not known whether it was paid.\n");
    assert!(resumed.stderr.contains("resumed, calls: 1 outcome unknown"), "{}", resumed.stderr);
    let id = &listed(&project, &[])[0];
    let (_, shown) = project.json(&["show", id]);
    let turns = shown["turns"].as_array().unwrap();
    assert_eq!((turns.len(), &turns[0]["stopped"]), (1, &json!("answered")));
    assert_eq!(shown["calls"][0]["outcome"], "outcome_unknown");
    let again = project.toolcrib(&["resume", id]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("has ended (answered)"), "{}", again.stderr);
}

#[test]
fn two_runs_cannot_use_one_session() {
    let project = project();
    let mut child = paying(&project);
    let (code, refused) = project.json(&["run", "-c", "Me too"]);
    assert_eq!((code, &refused["error"]["code"]), (Some(1), &json!("session_in_use")), "{refused}");
    let id = &listed(&project, &[])[0];
    let deleted = project.toolcrib(&["sessions", "delete", id]);
    assert_eq!(deleted.code, Some(1));
    assert!(deleted.stderr.contains("another run is using the session"), "{}", deleted.stderr);
    // A run that is cancelled closes its session.
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let (code, run) = project.json(&["run", "-c", "Hello"]);
    assert_eq!(code, Some(0), "{run}");
    assert_eq!(said(&project, id).last().unwrap(), "assistant: You said: Hello");
}

#[test]
fn a_session_belongs_to_its_principal_and_tenant() {
    let project = project();
    project.toolcrib(&["run", "Hello", "--session", "mine", "--as", "ann", "--tenant", "acme"]);
    let owner = ["--as", "ann", "--tenant", "acme"];
    assert_eq!(listed(&project, &owner), ["mine"]);
    let (_, session) = project.json(&[&["show", "mine"], &owner[..]].concat());
    let id = session["info"]["id"].as_str().unwrap();
    for other in [&[][..], &["--as", "ann"], &["--as", "bob", "--tenant", "acme"]] {
        assert!(listed(&project, other).is_empty(), "{other:?}");
        for command in [
            &["show", "mine"][..],
            &["show", id],
            &["export", id],
            &["run", "--session", id, "Hello"],
            &["run", "-c", "Hello"],
            &["sessions", "delete", id],
        ] {
            let outcome = project.toolcrib(&[command, other].concat());
            assert_eq!(outcome.code, Some(2), "{command:?} {other:?} {}", outcome.stdout);
            assert!(outcome.stderr.contains("there is no session"), "{}", outcome.stderr);
        }
    }
    assert_eq!(listed(&project, &owner), ["mine"]);
}

#[test]
fn a_session_is_shown_exported_and_deleted() {
    let project = project();
    project.toolcrib(&["run", "Count to three", "--session", "counting"]);
    let shown = project.toolcrib(&["show", "counting"]).stdout;
    for part in ["user\n    Count to three\n", "call\n    count {\"to\":3} (ok)\n", "Counted."] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let list = project.toolcrib(&["sessions"]).stdout;
    assert!(list.contains("counting  Count to three\n"), "{list}");
    assert!(list.contains("1 turn, last answered"), "{list}");

    let page = project.path().join("page.md");
    let path = page.to_str().unwrap();
    assert_eq!(project.toolcrib(&["export", "counting", "-o", path]).code, Some(0));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("**Result of** `count`\n\n```text\n1\n2\n3\n```\n"), "{text}");
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let again = project.toolcrib(&["export", "counting", "-o", path]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("already exists; name a new file"), "{}", again.stderr);
    let exported = project.toolcrib(&["export", "counting", "--format", "json"]).stdout;
    let shown = project.toolcrib(&["show", "counting", "--json"]).stdout;
    assert_eq!(exported, shown);

    // New databases do not touch the sessions.
    assert_eq!(
        project.toolcrib(&["run", "Hello", "--session", "other", "--fresh", "--yes"]).code,
        Some(0)
    );
    assert_eq!(listed(&project, &[]), ["other", "counting"]);
    let deleted = project.toolcrib(&["sessions", "delete", "counting", "other"]);
    assert_eq!(deleted.stdout, "deleted counting (1 turn)\ndeleted other (1 turn)\n");
    assert!(listed(&project, &[]).is_empty());
    assert_eq!(project.toolcrib(&["show", "counting"]).code, Some(2));
}

#[test]
fn old_sessions_are_pruned_by_the_next_run() {
    let project = project();
    project.toolcrib(&["run", "Hello", "--session", "old"]);
    project.toolcrib(&["run", "Hello", "--session", "large"]);
    let store = rusqlite::Connection::open(project.state().join("sessions.db")).unwrap();
    store.execute("UPDATE sessions SET used_ms = 0 WHERE name = 'old'", []).unwrap();
    drop(store);
    project.toolcrib(&["run", "Hello", "--session", "new"]);
    assert_eq!(listed(&project, &[]), ["new", "large"]);
    project.write("toolcrib.toml", &format!("{FILE}[sessions]\nmax_bytes = 1\n"));
    project.toolcrib(&["run", "Hello", "--session", "last"]);
    assert_eq!(listed(&project, &[]), ["last"]);
}

#[test]
fn a_store_that_cannot_be_used_is_named() {
    let project = project();
    project.toolcrib(&["run", "Hello"]);
    let file = project.state().join("sessions.db");
    let store = rusqlite::Connection::open(&file).unwrap();
    store.pragma_update(None, "user_version", 1_000).unwrap();
    drop(store);
    for command in [&["run", "-c", "Hello"][..], &["run", "Hello"], &["sessions"]] {
        let outcome = project.toolcrib(command);
        assert_eq!(outcome.code, Some(1), "{command:?}");
        assert!(outcome.stderr.contains("was written by a newer Toolcrib"), "{}", outcome.stderr);
    }
    assert_eq!(project.toolcrib(&["run", "Hello", "--no-session"]).code, Some(0));
    for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let _ = fs::remove_file(project.state().join(name));
    }
    fs::create_dir(&file).unwrap();
    let outcome = project.toolcrib(&["run", "Hello"]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("sessions.db cannot be opened: it is not a file"),
        "{}",
        outcome.stderr
    );
    fs::remove_dir(&file).unwrap();
    fs::set_permissions(project.state(), fs::Permissions::from_mode(0o500)).unwrap();
    // The superuser may write everywhere.
    if fs::write(project.state().join("probe"), "").is_err() {
        let outcome = project.toolcrib(&["run", "Hello"]);
        assert_eq!(outcome.code, Some(1));
        assert!(outcome.stderr.contains("sessions.db cannot be opened"), "{}", outcome.stderr);
    }
    fs::set_permissions(project.state(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_full_disk_fails_the_run_before_the_request() {
    let project = project();
    project.toolcrib(&["run", "Hello"]);
    project.write("long.txt", &"Pay. ".repeat(400_000));
    let run = project.command(&["run", "-c", "@long.txt"]);
    // No file may exceed a megabyte, and the signal about it is ignored.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""]);
    limited.arg(run.get_program()).args(run.get_args()).current_dir(project.path());
    limited.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let outcome = Outcome::from(limited.stdin(Stdio::null()).output().unwrap());
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("sessions.db cannot be written"), "{}", outcome.stderr);
    assert_eq!(payments(&project), 0);
    assert_eq!(project.toolcrib(&["run", "-c", "Hello"]).code, Some(0));
}

/// The text of the messages in a request, without the marks of the cache, which move.
fn sent(body: &[u8]) -> String {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let keys = ["\"input\":", "\"messages\":", "\"contents\":"];
    // Later ones are within messages.
    let at = keys.iter().filter_map(|key| Some(body.find(key)? + key.len())).min();
    let at = at.unwrap_or_else(|| panic!("no messages in {body}"));
    let rest = &body[at..];
    let mut values = Deserializer::from_str(rest).into_iter::<Value>();
    values.next().unwrap().unwrap();
    rest[..values.byte_offset()].replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn every_vendor_receives_the_bytes_of_the_last_turn_again() {
    for vendor in Vendor::ALL {
        let project = project();
        let call = Answer::default().calling("c1", "count", &[r#"{"to":  2 }"#]);
        let answers = [call, Answer::text(&["Two."]), Answer::text(&["Again."])];
        let server =
            Prepared::new(vendor, answers.iter().map(|said| reply(vendor, said)).collect());
        let model = format!("{vendor}:desk");
        for args in [&["run", "Count \u{e9}"][..], &["run", "-c", "And now?"]] {
            let mut command = project.command(&[args, &["--model", &model]].concat());
            let outcome = Outcome::from(server.set(&mut command).output().unwrap());
            assert_eq!(outcome.code, Some(0), "{vendor}: {}", outcome.stderr);
        }
        let bodies: Vec<_> = server.requests().iter().map(|request| sent(&request.body)).collect();
        assert_eq!(bodies.len(), 3, "{vendor}");
        let before = bodies[1].strip_suffix(']').unwrap();
        assert!(bodies[2].starts_with(before), "{vendor}:\n{before}\n{}", bodies[2]);
        assert!(bodies[2].len() > bodies[1].len());
    }
}
