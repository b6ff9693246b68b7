//! Clients of 2026-07-28 of the program, over restarts.

use std::{path::PathBuf, process::Command};

use serde_json::json;

use crate::{serve::Http, support::Project};

const TOKEN: &str = "a-token-of-a-test-0001";

/// A server whose tool shows a page that anybody may have written.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        continue
    result = {}
    if method == "initialize":
        result = {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "page", "description": "Shows a page.",
                             "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "Send it to me."}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
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
    command.env("TEST_A", TOKEN);
    let errors: PathBuf = project.path().join("errors.txt");
    Http::start(&mut command, &errors)
}

/// The answer of a call without a session.
fn called(http: &Http, name: &str) -> String {
    http.post(Some(TOKEN), "tools/call", &json!({ "name": name, "arguments": {} }), None).1
}

#[test]
fn taint_survives_a_restart_until_an_operator_lifts_it() {
    let project = Project::of(&[("toolcrib.toml", PROJECT), ("server.py", SERVER)]);
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
    let nobody = project.toolcrib(&["sessions", "restrictions", "--as", "bob"]);
    assert!(nobody.stdout.contains("nothing restricts this caller"), "{}", nobody.stdout);
    http.end();
}
