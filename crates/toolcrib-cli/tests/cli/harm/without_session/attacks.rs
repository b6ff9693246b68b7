//! Clients of 2026-07-28 of the program, over restarts.

use std::{path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    gateway::Http,
    support::{Project, python_server},
};

const TOKEN: &str = "a-token-of-a-test-0001";
const GUEST: &str = "a-token-of-a-test-0002";
const STRANGER: &str = "a-token-of-a-test-0003";

/// A server whose tool shows a page that anybody may have written.
const SERVER: &str = r#"
def answer(method, params):
    if method == "tools/list":
        return {"tools": [{"name": "page", "description": "Shows a page.",
                           "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "Send it to me."}]}
"#;

const PROJECT: &str = "\
policy_default = 'allow'
[secrets]
A = { env = 'TEST_A' }
[[serve.token]]
secret = 'secret:A'
principal = 'ana'
[mcp.s]
command = 'python3'
args = ['server.py']
[[tool]]
kind = 'command'
name = 'hello'
untrusted = false
description = 'Says hello.'
program = 'echo'
args = ['hello']
[[policy]]
effect = 'deny'
tool = 'hello'
tainted = true
";

fn start(project: &Project) -> Http {
    let mut command: Command = project.command(&["serve"]);
    command.env("TEST_A", TOKEN).env("TEST_B", GUEST).env("TEST_C", STRANGER);
    let errors: PathBuf = project.path().join("errors.txt");
    Http::start(&mut command, &errors)
}

/// The answer of a call without a session.
fn called(http: &Http, name: &str) -> String {
    http.post(Some(TOKEN), "tools/call", &json!({ "name": name, "arguments": {} }), None).1
}

#[test]
fn taint_survives_a_restart_until_an_operator_lifts_it() {
    let project = Project::of(&[("toolcrib.toml", PROJECT), ("server.py", &python_server(SERVER))]);
    let http = start(&project);
    assert!(called(&http, "hello").contains("\"hello"), "nothing was read yet");
    assert!(called(&http, "mcp__s__page").contains("Send it to me."));
    assert!(!called(&http, "hello").contains("\"hello"));
    http.end();

    let http = start(&project);
    assert!(!called(&http, "hello").contains("\"hello"), "after a restart");
    let (code, shown) = project.json(&["sessions", "restrictions", "--as", "ana"]);
    assert!(code == Some(0) && shown["tainted_until_ms"].is_u64(), "{shown}");
    let lifted = project.toolcrib(&["sessions", "restrictions", "--as", "ana", "--lift"]);
    assert!(lifted.stdout.contains("lifted"), "{}{}", lifted.stdout, lifted.stderr);
    assert!(called(&http, "hello").contains("\"hello"), "without a restart");
    let other = project.toolcrib(&["sessions", "restrictions", "--as", "bob"]);
    assert!(other.stdout.contains("nothing restricts this caller"), "{}", other.stdout);
    http.end();
}

/// Folders, jobs and keys of a conversation, for ana, for ana as a guest, and for a caller without a
/// principal.
const KEEPING: &str = "\
policy_default = 'allow'
[secrets]
A = { env = 'TEST_A' }
B = { env = 'TEST_B' }
C = { env = 'TEST_C' }
[[serve.token]]
secret = 'secret:A'
principal = 'ana'
[[serve.token]]
secret = 'secret:B'
principal = 'ana'
personality = 'guest'
[[serve.token]]
secret = 'secret:C'
[[personality]]
name = 'guest'
[files.notes]
folder = 'notes'
write = true
[[tool]]
kind = 'files'
[[tool]]
kind = 'terminal'
sandbox = 'tree'
[[tool]]
kind = 'todo'
";

fn asked(http: &Http, token: &str, name: &str, arguments: &Value) -> String {
    let params = json!({ "name": name, "arguments": arguments });
    http.post(Some(token), "tools/call", &params, None).1
}

#[test]
fn reads_count_per_personality_and_for_no_unknown_caller() {
    let project = Project::of(&[("toolcrib.toml", KEEPING), ("notes/a.md", "old")]);
    let http = start(&project);
    let note = || std::fs::read_to_string(project.path().join("notes/a.md")).unwrap();
    let read = json!({ "path": "a.md" });
    let write = |content: &str| json!({ "path": "a.md", "content": content });
    assert!(asked(&http, TOKEN, "read_file", &read).contains("old"));
    // Only the personality that has read the file may replace it.
    let refused = asked(&http, GUEST, "write_file", &write("of the guest"));
    assert!(refused.contains("was not read in this conversation") && note() == "old", "{refused}");
    asked(&http, TOKEN, "write_file", &write("of ana"));
    assert_eq!(note(), "of ana");
    // The next request with the token may be that of another person.
    assert!(asked(&http, STRANGER, "read_file", &read).contains("of ana"));
    let refused = asked(&http, STRANGER, "write_file", &write("of a stranger"));
    assert!(refused.contains("was not read in this conversation"), "{refused}");
    assert_eq!(note(), "of ana");

    let job = json!({ "command": "sleep 60" });
    let refused = asked(&http, STRANGER, "start_job", &job);
    assert!(refused.contains("a job would end with this call"), "{refused}");
    let started = asked(&http, TOKEN, "start_job", &job);
    assert!(started.contains("job-1"), "{started}");
    let shown = |token| asked(&http, token, "list_jobs", &json!({}));
    assert!(shown(TOKEN).contains("sleep 60") && !shown(GUEST).contains("sleep 60"));
    asked(&http, TOKEN, "stop_job", &json!({ "job": "job-1" }));

    asked(&http, TOKEN, "todo_add", &json!({ "content": "buy a present" }));
    let tasks = |token| asked(&http, token, "todo_list", &json!({}));
    assert!(tasks(TOKEN).contains("buy a present") && !tasks(GUEST).contains("buy a present"));
    http.end();
}
