//! Tools of the kind `command`, with real programs.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use serde_json::Value;

use crate::support::{Outcome, Project, listing};

/// Nowhere else in this process, so that finding it anywhere is a leak.
const SECRET: &str = "hush-4f9a1c77e2";
const VARIABLE: &str = "TOOLCRIB_TEST_CREDENTIAL";

const PROJECT: &str = r#"
[secrets]
CREDENTIAL = { env = "TOOLCRIB_TEST_CREDENTIAL" }

[agent]
model = "script:script.toml"

[[tool]]
kind = "command"
name = "count_lines"
description = "Counts the lines of a file."
read_only = true
program = "wc"
args = ["-l", "--", "{file}"]
[tool.params]
file = { type = "string" }

[[tool]]
kind = "command"
name = "show"
description = "Shows texts as they are."
program = "printf"
args = ["<%s>", { value = "{texts}", allow_leading_dash = true }]
[tool.params]
texts = { type = "array", items = { type = "string" } }

[[tool]]
kind = "command"
name = "greet"
description = "Greets."
program = "./tools/greet.py"
stdin = "json"
env = { CREDENTIAL = "secret:CREDENTIAL", PLAIN = "yes" }
inherit_env = ["PATH"]
working_dir = "tools"
timeout = "20s"
ok_exit_codes = [0, 3]
[tool.params]
name = { type = "string" }
code = { type = "integer", optional = true }
"#;

const SCRIPT: &str = r#"
[[rule]]
user = 'code (?P<code>\d+)'
not_called = "greet"
calls = [{ tool = "greet", args = { name = "Ada", code = "{{ code | int }}" } }]
[[rule]]
text = "done"
"#;

const GREET: &str = r#"#!/usr/bin/python3
import json, os, sys
args = json.load(sys.stdin)
print("hello", args["name"], "in", os.path.basename(os.getcwd()))
print(sorted(k for k in os.environ if not k.startswith("LC_")))
print("the credential is", os.environ["CREDENTIAL"])
print("on stderr too:", os.environ["CREDENTIAL"], file=sys.stderr)
sys.exit(args.get("code", 0))
"#;

fn project() -> Project {
    let project = Project::of(&[
        ("toolcrib.toml", PROJECT),
        ("notes.txt", "one\ntwo\n"),
        ("-rf", "one\n"),
        ("tools/greet.py", GREET),
        ("script.toml", SCRIPT),
    ]);
    let script = project.path().join("tools/greet.py");
    std::fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
    project
}

fn with_secret(project: &Project, args: &[&str]) -> Outcome {
    project.command(args).env(VARIABLE, SECRET).output().unwrap().into()
}

fn call(project: &Project, args: &[&str]) -> (Option<i32>, Value) {
    let args: Vec<_> = ["call"].iter().chain(args).chain(&["--json"]).copied().collect();
    let outcome = with_secret(project, &args);
    (outcome.code, serde_json::from_str(&outcome.stdout).unwrap())
}

#[test]
fn a_program_is_called_with_its_arguments_as_they_are() {
    let project = project();
    let (code, counted) = call(&project, &["count_lines", "file=notes.txt"]);
    assert_eq!(code, Some(0), "{counted}");
    assert!(counted["value"].as_str().unwrap().starts_with("2 notes.txt"), "{counted}");
    assert_eq!(counted["structured"]["exit_code"], 0);
    let (_, counted) = call(&project, &["count_lines", "file=-rf"]);
    assert!(counted["value"].as_str().unwrap().starts_with("1 -rf"), "{counted}");
    let texts = r#"texts:=["$(id)", ";id", "a\nb", "--help", "*", ""]"#;
    let (_, shown) = call(&project, &["show", texts]);
    assert_eq!(shown["value"], "<$(id)><;id><a\nb><--help><*><>", "{shown}");
}

#[test]
fn a_script_gets_json_a_declared_environment_and_a_secret_that_shows_up_nowhere() {
    let project = project();
    let events = project.path().join("events.jsonl");
    let file = events.to_str().unwrap();
    let mut said = String::new();
    for code in [0, 3, 4] {
        let (prompt, argument) = (format!("code {code}"), format!("code={code}"));
        let call = |flag| {
            let outcome = with_secret(&project, &["call", "greet", "name=Ada", &argument, flag]);
            assert_eq!(outcome.code, Some(i32::from(code == 4)), "{}", outcome.stderr);
            outcome
        };
        let run = |flags: [&str; 2]| {
            let args = [&["run", &prompt], &flags[..]].concat();
            let outcome = with_secret(&project, &args);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            outcome
        };
        for outcome in [call("--json"), call("-v"), run(["--json", "-v"]), run(["--events", file])]
        {
            said += &outcome.stdout;
            said += &outcome.stderr;
        }
        let events = std::fs::read_to_string(&events).unwrap();
        assert!(events.contains("the credential is [redacted]"), "{events}");
        said += &events;
    }
    assert!(said.contains("hello Ada in tools"), "{said}");
    assert!(said.contains("['CREDENTIAL', 'PATH', 'PLAIN']"), "{said}");
    assert!(said.contains("the credential is [redacted]"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
}

#[test]
fn without_its_variable_the_call_is_not_available_and_check_warns() {
    let project = project();
    for value in [None, Some(""), Some("abc")] {
        let mut command = project.command(&["call", "greet", "name=Ada", "--json"]);
        let outcome: Outcome = match value {
            Some(value) => command.env(VARIABLE, value).output(),
            None => command.output(),
        }
        .unwrap()
        .into();
        let refused: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!((outcome.code, &refused["code"]), (Some(1), &"not_available".into()));
        let model = refused["value"].as_str().unwrap();
        assert!(!model.contains("CREDENTIAL"), "the model is told no names: {model}");
        let operator = refused["cause"].as_str().unwrap();
        assert!(operator.contains("CREDENTIAL") && operator.contains(VARIABLE), "{operator}");
    }
    let (code, check) = project.json(&["check"]);
    assert_eq!(code, Some(0));
    let warning = &check["warnings"][0];
    assert_eq!((&warning["line"], &warning["column"]), (&3.into(), &22.into()), "{warning}");
    assert!(warning["message"].as_str().unwrap().contains(VARIABLE), "{warning}");
    let check: Value =
        serde_json::from_str(&with_secret(&project, &["check", "--json"]).stdout).unwrap();
    assert_eq!(check["warnings"], Value::Array(vec![]));
}

#[test]
fn check_and_menu_find_programs_and_run_none() {
    let project = project();
    project.write("tools/greet.py", "#!/bin/sh\ntouch ran\n");
    let before = listing(project.path());
    for command in ["check", "menu"] {
        let outcome = with_secret(&project, &[command]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    assert_eq!(listing(project.path()), before);
    with_secret(&project, &["call", "greet", "name=Ada"]);
    assert!(project.path().join("tools/ran").exists());

    project.write("toolcrib.toml", &PROJECT.replace("\"wc\"", "\"no-such-program\""));
    let (code, check) = project.json(&["check"]);
    assert_eq!(code, Some(2));
    assert_eq!(check["errors"][0]["line"], 13, "{check}");
    assert!(check["errors"][0]["message"].as_str().unwrap().contains("no-such-program"));
}

#[test]
fn the_documented_script_confines_a_path_to_its_folder() {
    let page = include_str!("../../../../docs/project-file.md");
    let (before, script) = page.split_once("```sh\n").unwrap();
    let script = script.split_once("```").unwrap().0;
    let tool = before.rsplit_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let project = Project::of(&[
        ("toolcrib.toml", tool),
        ("tools/read_note.sh", script),
        ("notes/sub/a.txt", "a note"),
        ("notes-b/b.txt", "none of yours"),
        ("secret.txt", "none of yours"),
    ]);
    let read_note = project.path().join("tools/read_note.sh");
    std::fs::set_permissions(read_note, Permissions::from_mode(0o755)).unwrap();
    let link = project.path().join("notes/link.txt");
    std::os::unix::fs::symlink("../secret.txt", link).unwrap();
    for path in ["sub/a.txt", "../notes/sub/a.txt"] {
        let (code, read) = call(&project, &["read_note", &format!("path={path}")]);
        assert_eq!((code, &read["value"]), (Some(0), &"a note".into()), "{read}");
    }
    let outside = project.path().join("secret.txt");
    for path in [outside.to_str().unwrap(), "../secret.txt", "../notes-b/b.txt", "link.txt", "no"] {
        let (code, read) = call(&project, &["read_note", &format!("path={path}")]);
        assert_eq!((code, &read["code"]), (Some(1), &"execution_failed".into()), "{read}");
        assert!(!read.to_string().contains("none of yours"), "{read}");
    }
}

#[test]
fn stray_children_must_be_allowed_without_a_pid_namespace() {
    let project = project();
    let servers = "[mcp.one]\ncommand = \"true\"\n[mcp.two]\ncommand = \"true\"\n";
    let wanted = format!("{PROJECT}{servers}");
    project.write("toolcrib.toml", &wanted);
    // Where no PID namespace can be had.
    let check = || -> Outcome {
        let plain = project.command(&["check", "--json"]);
        let mut command = std::process::Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "/bin/sh", "-c"])
            .arg("echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$0\" \"$@\"")
            .arg(plain.get_program())
            .args(plain.get_args());
        command.env(VARIABLE, SECRET).output().unwrap().into()
    };
    let refused = check();
    let found: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(refused.code, Some(2), "{found}");
    let errors = found["errors"].as_array().unwrap();
    let lines: Vec<_> = errors.iter().map(|error| error["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [13, 41], "one for all tools, and one for all servers");
    for error in errors {
        assert!(error["message"].as_str().unwrap().contains("PID namespace"), "{error}");
        let help = error["help"].as_str().unwrap();
        assert!(help.starts_with("to start them") && help.contains("where_possible"), "{error}");
    }
    assert!(found.to_string().contains("`one`, `two`"), "{found}");
    let per_program = wanted.replace("description", "allow_stray_children = true\ndescription");
    let per_program = per_program.replace("command =", "allow_stray_children = true\ncommand =");
    let of_project = format!("{wanted}[sandbox]\ncontain_children = \"where_possible\"\n");
    for text in [&per_program, &of_project] {
        project.write("toolcrib.toml", text);
        let accepted = check();
        assert_eq!(accepted.code, Some(0), "{}{}", accepted.stdout, accepted.stderr);
    }
    // One program that must not have children is still refused.
    project.write(
        "toolcrib.toml",
        &of_project.replacen("command =", "allow_stray_children = false\ncommand =", 1),
    );
    let refused = check();
    let found: Value = serde_json::from_str(&refused.stdout).unwrap();
    let errors = found["errors"].as_array().unwrap();
    assert_eq!((refused.code, errors.len()), (Some(2), 1), "{found}");
    assert!(errors[0]["message"].as_str().unwrap().contains("of `one` could"), "{found}");
}
