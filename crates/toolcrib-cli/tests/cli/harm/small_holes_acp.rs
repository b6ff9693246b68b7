//! An editor that sent requests without waiting for answers was refused, or not answered.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::support::Project;

fn request(id: u32, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
}

fn begin() -> String {
    request(1, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }))
}

fn project() -> Project {
    Project::of(&[
        ("toolcrib.toml", "policy_default = \"allow\"\n"),
        ("s.toml", "[[rule]]\ntext = \"Done.\"\n"),
    ])
}

/// The answers to requests that are sent in one piece, after which the editor's side is closed.
fn answers(project: &Project, sent: &str) -> Vec<Value> {
    let mut command = project.command(&["acp", "--model", "script:s.toml"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(sent.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(child.wait().unwrap().success());
    answers
}

fn of(answers: &[Value], id: u32) -> &Value {
    answers.iter().find(|answer| answer["id"] == id).unwrap()
}

#[test]
fn several_requests_in_one_write_are_answered() {
    let project = project();
    let new = json!({ "cwd": project.path(), "mcpServers": [] });
    let sent = begin() + &request(2, "session/new", &new) + &request(3, "session/new", &new);
    let answers = answers(&project, &sent);
    assert!(of(&answers, 1)["result"].is_object(), "{answers:?}");
    for id in [2, 3] {
        assert!(of(&answers, id)["result"]["sessionId"].is_string(), "{answers:?}");
    }
}

#[test]
fn a_prompt_for_a_session_that_is_being_loaded_waits() {
    let project = project();
    let args = ["run", "--model", "script:s.toml", "--session", "one", "--json", "Do it."];
    assert_eq!(project.toolcrib(&args).code, Some(0));
    let (_, sessions) = project.json(&["sessions"]);
    let id = &sessions["sessions"][0]["id"];
    assert!(id.is_string(), "{sessions}");
    let load = json!({ "sessionId": id, "cwd": project.path(), "mcpServers": [] });
    let text = json!([{ "type": "text", "text": "Again." }]);
    let prompt = json!({ "sessionId": id, "prompt": text });
    let mut command = project.command(&["acp", "--model", "script:s.toml"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent =
        begin() + &request(2, "session/load", &load) + &request(3, "session/prompt", &prompt);
    stdin.write_all(sent.as_bytes()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answer = lines.find_map(|line| {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        (message["id"] == 3).then_some(message)
    });
    assert_eq!(answer.unwrap()["result"]["stopReason"], "end_turn");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
