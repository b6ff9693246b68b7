//! Output when a command cannot begin: one JSON object in every case, and nothing is lost.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::support::{Project, toolcrib};

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A failed run has every field of a run.
fn is_a_run_that_never_began(run: &Value, stopped: &str) {
    assert_eq!(
        keys(run),
        [
            "answer",
            "stopped",
            "error",
            "errors",
            "turn_id",
            "session",
            "iterations",
            "tool_calls",
            "result_chars",
            "usage",
            "menus",
            "duration_ms",
            "model",
            "stop",
            "approvals",
            "image_notices"
        ]
    );
    assert_eq!(run["stopped"], stopped);
    assert_eq!((&run["answer"], &run["turn_id"]), (&Value::Null, &Value::Null));
    assert_eq!((&run["iterations"], &run["duration_ms"]), (&json!(0), &json!(0)));
    assert_eq!((&run["tool_calls"], &run["menus"]), (&json!([]), &json!([])));
    assert_eq!(run["usage"]["cost_usd"], 0.0);
    assert_eq!(keys(&run["error"]), ["code", "message", "source"]);
}

#[test]
fn a_wrong_command_line_is_an_object_too() {
    let not_utf8 = OsStr::from_bytes(b"\xff");
    let of_run: [&[&str]; 5] = [
        &["run", "--json"],
        &["--json", "run"],
        &["run", "--json", "--timeout", "abc", "hi"],
        &["run", "hi", "--json", "--timeout", "0s"],
        &["run", " \t\n", "--json"],
    ];
    for args in of_run {
        let output = toolcrib().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let run = object(&output);
        is_a_run_that_never_began(&run, "failed");
        assert_eq!(run["error"]["code"], "usage", "{args:?}");
        assert!(output.stderr.is_empty());
    }
    let others: [&[&str]; 6] = [
        &["--json"],
        &["--json", "bogus"],
        &["menu", "--json", "--bogus"],
        &["check", "-q", "-v", "--json"],
        &["call", "--json"],
        &["init", "--json"],
    ];
    for args in others {
        let output = toolcrib().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let problem = object(&output);
        assert_eq!(keys(&problem), ["error", "errors"]);
        assert_eq!(problem["error"]["code"], "usage");
        assert!(!problem["error"]["message"].as_str().unwrap().starts_with("error"), "{problem}");
    }
    let output = toolcrib().args(["menu", "--json", "--as"]).arg(not_utf8).output().unwrap();
    assert_eq!((output.status.code(), keys(&object(&output)).len()), (Some(2), 2));
    let output = toolcrib().args(["run", "--json"]).arg(not_utf8).output().unwrap();
    is_a_run_that_never_began(&object(&output), "failed");
    // Arguments after `--` are not flags, and `run` without `--json` prints text.
    let output = toolcrib().args(["run", "--", "--json", "two"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    for flag in ["--help", "--version"] {
        let output = toolcrib().args(["--json", flag]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains("toolcrib"));
    }
}

#[test]
fn each_command_that_cannot_begin_has_its_shape() {
    let broken = Project::of(&[("toolcrib.toml", "policy_defualt = 'allow'\n[skill]\n")]);
    let (code, run) = broken.json(&["run", "hi"]);
    assert_eq!(code, Some(2));
    is_a_run_that_never_began(&run, "failed");
    assert_eq!(run["error"]["code"], "project_invalid");
    assert_eq!(run["errors"].as_array().unwrap().len(), 2, "{run}");
    for command in [&["menu"][..], &["call", "list"], &["check"]] {
        let (code, problem) = broken.json(command);
        assert_eq!((code, keys(&problem)), (Some(2), vec!["error", "errors"]));
        assert_eq!(problem["errors"], run["errors"]);
    }
    let output = toolcrib().args(["init", "--json"]).arg(broken.path()).output().unwrap();
    assert_eq!(keys(&object(&output)), ["error", "errors"]);
}

#[test]
fn an_invalid_model_is_a_usage_error_without_a_place() {
    let (code, run) = Project::desk().json(&["run", "--model", "gpt-5", "hi"]);
    assert_eq!((code, &run["error"]["code"]), (Some(2), &"usage".into()));
    assert_eq!(run["errors"], json!([]));
    assert!(
        run["error"]["message"].as_str().unwrap().starts_with("`--model`: unknown model `gpt-5`"),
        "{run}"
    );
}

#[test]
fn a_suggestion_of_a_withheld_name_is_not_in_the_json() {
    let desk = Project::desk();
    let (code, call) = desk.json(&["call", "close_acount"]);
    assert_eq!((code, &call["code"]), (Some(1), &"not_available".into()));
    assert!(!call.to_string().contains("close_account"), "{call}");
    let (_, call) = desk.json(&["call", "list_chages"]);
    assert!(call["value"].as_str().unwrap().contains("did you mean `list_charges`?"), "{call}");
    // What is like nothing is left alone, and a name is suggested once.
    let meant = |name: &str| desk.toolcrib(&["call", name]).stderr;
    assert_eq!(meant("list_chages").matches("did you mean").count(), 1);
    assert!(meant("close_acount").contains("did you mean `close_account`?"));
    assert!(!meant("teleport").contains("did you mean"));
}

#[test]
fn warnings_are_not_among_the_errors() {
    let project = Project::of(&[
        ("toolcrib.toml", "policy_defualt = 'allow'\n"),
        ("skills/notes/SKILL.md", "---\nname: notes\ndescription: N.\nforeign: 1\n---\nRead.\n"),
    ]);
    let (_, problem) = project.json(&["check"]);
    assert_eq!(problem["errors"].as_array().unwrap().len(), 1, "{problem}");
    assert!(project.toolcrib(&["check"]).stderr.contains("warning"));
}

#[test]
fn a_state_folder_that_cannot_be_made_is_a_failure_and_no_mistake_of_the_project() {
    let desk = Project::desk();
    for command in [&["run", "hello"][..], &["call", "list_tickets"]] {
        let args: Vec<_> = command.iter().copied().chain(["--state", "/dev/null/state"]).collect();
        let (code, problem) = desk.json(&args);
        assert_eq!((code, &problem["error"]["code"]), (Some(1), &json!("state_unavailable")));
    }
}

#[test]
fn a_folder_whose_name_is_no_text_can_be_checked() {
    let dir = tempfile::TempDir::new().unwrap();
    let folder = dir.path().join(OsStr::from_bytes(b"odd-\xff"));
    let begun = toolcrib().args(["init", "--json"]).arg(&folder).output().unwrap();
    assert!(object(&begun)["dir"].as_str().unwrap().ends_with("odd-\u{fffd}"));
    for json in [true, false] {
        let mut check: Command = toolcrib();
        check.arg("check").args(json.then_some("--json")).current_dir(&folder);
        let output = check.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        if json {
            let check = object(&output);
            assert!(check["root"].as_str().unwrap().ends_with("odd-\u{fffd}"), "{check}");
        }
    }
}

#[test]
fn an_empty_message_is_refused() {
    let desk = Project::desk();
    for message in ["", "  \n\t"] {
        let outcome = desk.toolcrib(&["run", message]);
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains("is empty"), "{}", outcome.stderr);
    }
    let outcome = desk.toolcrib(&["run", "hello", "--timeout", "0s"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("is zero"), "{}", outcome.stderr);
    assert!(!desk.state().exists());
}

#[test]
fn an_events_file_never_replaces_a_project_file() {
    let desk = Project::desk();
    assert_eq!(desk.toolcrib(&["call", "list_tickets"]).code, Some(0));
    let link = tempfile::TempDir::new().unwrap();
    let linked = link.path().join("events.jsonl");
    std::os::unix::fs::symlink(desk.path().join("script.toml"), &linked).unwrap();
    let own = ["toolcrib.toml", "skills/billing/SKILL.md", ".toolcrib/desk.db"];
    let own = own.map(|name| desk.path().join(name)).into_iter().chain([linked]);
    for file in own {
        let before = fs::read(&file).unwrap();
        let outcome = desk.toolcrib(&["run", "hello", "--events", file.to_str().unwrap()]);
        assert_eq!(outcome.code, Some(2), "{file:?}");
        assert!(outcome.stderr.contains(".jsonl"), "{}", outcome.stderr);
        assert!(fs::read(&file).unwrap() == before, "{file:?} was touched");
    }
    // Neither does it touch anything while it is not known what the project is.
    let file = desk.path().join("kept.jsonl");
    fs::write(&file, "kept").unwrap();
    let nowhere =
        toolcrib().args(["run", "-p", "nope", "hi", "--events"]).arg(&file).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    // Elsewhere any file is replaced; here one that is called as events are, or a new one.
    let elsewhere = link.path().join("old.txt");
    fs::write(&elsewhere, "old").unwrap();
    for file in [&elsewhere, &file, &desk.path().join("new")] {
        let outcome = desk.toolcrib(&["run", "hello", "--events", file.to_str().unwrap()]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(fs::read_to_string(file).unwrap().starts_with('{'));
    }
}
