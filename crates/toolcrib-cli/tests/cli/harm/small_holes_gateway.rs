//! An error repeated whatever a client had sent, at any length.

use std::fs;

use serde_json::{Value, json};

use super::served::{Answer, Piped, Served, greeting, initialize, message, with_metadata};
use crate::support::Project;

/// The longest error that a request of any length may get, in bytes, with all that is around it.
const LONGEST: usize = 4_000;

fn long() -> String {
    "x\u{1b}".repeat(50_000)
}

/// Requests with something long in each of the places that an error may name.
fn requests() -> Vec<(&'static str, String)> {
    let long = long();
    let mut version = greeting();
    version["protocolVersion"] = json!([long]);
    let newer = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": long,
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    vec![
        ("method", message(&long, &json!({}))),
        ("method with metadata", message(&long, &with_metadata(json!({})))),
        ("tool", message("tools/call", &json!({ "name": long }))),
        ("type of a parameter", message("tools/call", &json!({ "name": "a", "arguments": long }))),
        ("cursor", message("tools/list", &json!({ "cursor": long }))),
        ("version that is none", message("initialize", &version)),
        ("version of a request", message("tools/list", &newer)),
        (
            "skill",
            message("tools/call", &json!({ "name": "read_skill", "arguments": { "id": long } })),
        ),
        ("level", message("logging/setLevel", &json!({ "level": long }))),
        (
            "text that is no JSON",
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{}""#, "y".repeat(99_999)),
        ),
    ]
}

#[test]
fn an_error_on_pipes_repeated_a_long_name_whole() {
    let project = Project::desk();
    let log = project.path().join("access.jsonl");
    let log_to = format!("--access-log={}", log.display());
    let mut client = Piped::start(&mut project.command(&["serve", &log_to]));
    client.ask(&initialize());
    for (what, request) in requests() {
        let answer: Value = client.ask(&request);
        let said = answer.to_string();
        assert!(said.len() < LONGEST, "{what}: {} bytes", said.len());
    }
    let log = fs::read_to_string(log).unwrap();
    assert!(!log.is_empty() && log.lines().all(|line| line.len() < LONGEST), "{log}");
}

#[test]
fn an_error_over_http_repeated_a_long_name_whole() {
    let project = Project::desk();
    let served = Served::start(&project, &mut project.command(&["serve"]));
    let token = fs::read_to_string(project.state().join("serve-token")).unwrap();
    let token = token.trim();
    let session = served.session("/mcp", token);
    let assert_short = |what: &str, answer: Answer| {
        // Only a listing that takes no notice of what was long may be long itself.
        if answer.status == 200 && answer.message()["result"].is_object() {
            return;
        }
        let bytes = answer.body.len() + answer.headers.iter().map(|(_, v)| v.len()).sum::<usize>();
        assert!(bytes < LONGEST, "{what}: {bytes} bytes, status {}", answer.status);
    };
    for (what, request) in requests() {
        assert_short(what, served.post("/mcp", token, Some(&session), &request));
        assert_short(what, served.post("/mcp", token, None, &request));
    }
    // In headers and in the path, which may be longer than names.
    let long = "x".repeat(20_000);
    let list = message("tools/list", &with_metadata(json!({})));
    let authorization = format!("Bearer {token}");
    for header in [
        "MCP-Protocol-Version",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Session-Id",
        "Last-Event-Id",
        "Accept",
    ] {
        let mut headers = vec![
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/list"),
        ];
        headers.retain(|(name, _)| *name != header);
        headers.push((header, &long));
        assert_short(header, served.send("POST", "/mcp", &headers, &list));
    }
    let path = format!("/mcp/skill/{long}");
    assert_short("path", served.stateless(&path, token, "tools/list", json!({})));
    let page = [("Origin", long.as_str()), ("Access-Control-Request-Headers", &long)];
    assert_short("page", served.send("OPTIONS", "/mcp", &page, ""));
}

#[test]
fn a_method_is_shortened_as_a_name_is() {
    let project = Project::desk();
    let mut client = Piped::start(&mut project.command(&["serve"]));
    client.ask(&initialize());
    let answer = client.ask(&message(&long(), &json!({})));
    let said = answer["error"]["message"].as_str().unwrap();
    assert_eq!(answer["error"]["code"], -32601);
    assert!(said.contains('…') && !said.contains('\u{1b}') && said.len() < 500, "{said}");
    let short = client.ask(&message("no/such/method", &json!({})));
    assert!(short["error"]["message"].as_str().unwrap().contains("`no/such/method`"));
}

#[test]
fn a_first_message_that_is_none_was_printed_whole() {
    let project = Project::desk();
    let mut serve = project.command(&["serve"]);
    let mut child = serve
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let told = json!({ "jsonrpc": "2.0", "method": format!("notifications/{}", long()) });
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), format!("{told}\n").as_bytes())
        .unwrap();
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.len() < LONGEST, "{} bytes", output.stderr.len());
}
