//! What a model writes as arguments, over each vendor's protocol: the tool receives it or nothing runs,
//! and every later request shows what ran.

#[cfg(unix)]
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
};

use serde_json::{Value, json};
use toolcrib_models::Vendor;
use toolcrib_testbed::Recorded;

use crate::{
    model_faults::wire::Answer,
    models::{Prepared, notes, reply},
    support::{Outcome, Project},
};

const PROJECT: &str = r#"
policy_default = "allow"
[agent]
model = "script:s.toml"
[[tool]]
kind = "sql"
name = "typed"
description = "Echo."
read_only = true
statements = ["SELECT :i AS i, :s AS s, :a AS a"]
[tool.params]
i = { type = "integer", optional = true }
s = { type = "string", optional = true }
a = { type = "array", items = { type = "string" }, optional = true }
"#;

fn project(more: &str) -> Project {
    notes(&format!("{more}{PROJECT}"))
}

fn run(project: &Project, served: &Prepared, args: &[&str]) -> Value {
    let mut command = served.command(project, &["run", "--json"]);
    let outcome: Outcome = command.args(args).output().unwrap().into();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// A model that makes one call with these arguments, and then answers as often as needed.
fn calling(vendor: Vendor, tool: &str, arguments: &str) -> Prepared {
    let done = || reply(vendor, &Answer::text(&["Done."]));
    let call = reply(vendor, &Answer::default().calling("a", tool, &[arguments]));
    Prepared::new(vendor, vec![call, done(), done(), done()])
}

/// The arguments of the first call in a request.
fn sent_back(request: &Recorded) -> Value {
    fn find(value: &Value) -> Option<Value> {
        match value {
            Value::Array(items) => items.iter().find_map(find),
            Value::Object(map) => {
                for key in ["arguments", "args", "input"] {
                    match map.get(key) {
                        Some(Value::String(text)) if map.contains_key("name") => {
                            return serde_json::from_str(text).ok();
                        }
                        Some(object @ Value::Object(_)) if map.contains_key("name") => {
                            return Some(object.clone());
                        }
                        _ => {}
                    }
                }
                map.iter().filter(|(key, _)| *key != "tools").find_map(|(_, value)| find(value))
            }
            _ => None,
        }
    }
    find(&serde_json::from_slice(&request.body).unwrap()).unwrap()
}

/// K2: mended arguments went back to the model as `{}`.
#[test]
fn later_requests_sessions_traces_and_replays_show_the_mended_arguments() {
    for vendor in [Vendor::OpenAi, Vendor::Anthropic] {
        for written in ["{\"text\":\"x\",}", "```json\n{\"text\":\"x\"}\n```", "{text: 'x'}"] {
            let (project, served) = (project(""), calling(vendor, "add", written));
            let ran = run(&project, &served, &["--session", "s", "go"]);
            assert_eq!(ran["tool_calls"][0]["args"], json!({ "text": "x" }), "{ran}");
            run(&project, &served, &["--session", "s", "again"]);
            for request in &served.requests()[1..] {
                assert_eq!(sent_back(request), json!({ "text": "x" }), "{vendor}: {written}");
            }
            let shown = project.toolcrib(&["show", "s"]);
            assert!(shown.stdout.contains(r#"{"text":"x"}"#), "{}{}", shown.stdout, shown.stderr);
            let traced = project.toolcrib(&["trace", "s/1"]);
            assert!(
                traced.stdout.contains(r#"{"text":"x"}"#),
                "{}{}",
                traced.stdout,
                traced.stderr
            );
            let replayed = project.toolcrib(&["replay", "s/1"]);
            assert_eq!(replayed.code, Some(0), "{}{}", replayed.stdout, replayed.stderr);
        }
    }
}

#[test]
fn arguments_that_are_json_go_back_byte_for_byte() {
    let written = r#"{ "text" : "x\u00e9" , "i": 5.0 }"#;
    let (project, served) = (project(""), calling(Vendor::OpenAi, "typed", written));
    run(&project, &served, &["go"]);
    let body: Value = serde_json::from_slice(&served.requests()[1].body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let sent = messages.iter().find_map(|message| message.get("tool_calls")).unwrap();
    assert_eq!(sent[0]["function"]["arguments"], written);
}

/// K3: values written as text were refused.
#[test]
fn arguments_written_as_text_are_read_and_shown() {
    let (project, written) = (project(""), r#""{\"text\":\"x\"}""#);
    let served = calling(Vendor::OpenAi, "add", written);
    let ran = run(&project, &served, &["go"]);
    assert_eq!(ran["tool_calls"][0]["args"], json!({ "text": "x" }), "{ran}");
    assert_eq!(sent_back(&served.requests()[1]), json!({ "text": "x" }));
}

#[test]
fn a_key_turns_the_reading_of_texts_off_for_the_model_and_the_command() {
    let (on, off) = (project(""), project("convert_text_arguments = false\n"));
    let served = calling(Vendor::OpenAi, "typed", r#"{"i":"5"}"#);
    let ran = run(&off, &served, &["go"]);
    let said = ran["tool_calls"][0]["value"].as_str().unwrap();
    assert!(said.contains("`i`: expected an integer, received a string"), "{said}");
    let called = |project: &Project| project.toolcrib(&["call", "typed", r#"{"i":"5"}"#]);
    assert_eq!(called(&on).code, Some(0), "{}", called(&on).stderr);
    let refused = called(&off);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("expected an integer, received a string"),
        "{}",
        refused.stderr
    );
}

const VENDORS: [Vendor; 4] = [Vendor::OpenAi, Vendor::Anthropic, Vendor::Gemini, Vendor::Ollama];

/// Arguments of 65 levels and more ran, and went back to the model as `{}`.
#[test]
fn arguments_that_ran_go_back_however_deep_they_nest_and_deeper_ones_do_not_run() {
    let document = json!({
        "openapi": "3.0.3", "info": { "title": "T", "version": "1" },
        "servers": [{ "url": "http://127.0.0.1:9" }],
        "paths": { "/a": { "post": {
            "operationId": "x",
            "requestBody": { "content": { "application/json": { "schema": { "type": "object" } } } },
            "responses": { "200": { "description": "ok" } },
        } } },
    });
    let file = "policy_default = \"allow\"\n[agent]\nmodel = \"script:s.toml\"\n[[tool]]\n\
                kind = \"openapi\"\nfile = \"api.json\"\nallow_addresses = [\"127.0.0.1\"]\n";
    for vendor in VENDORS {
        for levels in [64, 65, 100, 126] {
            let script = "[[rule]]\ntext = \"Done.\"\n";
            let project = Project::of(&[
                ("toolcrib.toml", file),
                ("api.json", &document.to_string()),
                ("s.toml", script),
            ]);
            let arrays = levels - 2;
            let written =
                format!(r#"{{"body":{{"a":{}{}}}}}"#, "[".repeat(arrays), "]".repeat(arrays));
            let served = calling(vendor, "x", &written);
            let ran = run(&project, &served, &["go"]);
            let said = ran["tool_calls"][0]["value"].as_str().unwrap();
            let refused = said.contains("they nest deeper than 64 levels");
            assert_eq!(refused, levels > 64, "{vendor}, {levels}: {said}");
            if !refused {
                let whole: Value = serde_json::from_str(&written).unwrap();
                assert_eq!(sent_back(&served.requests()[1]), whole, "{vendor}");
            }
        }
    }
}

/// A hook's arguments ran, and the model read that its own had run.
#[cfg(unix)]
#[test]
fn later_requests_sessions_traces_and_replays_show_the_arguments_of_a_hook() {
    let hook = "[[hook]]\nat = \"before_call\"\nname = \"h\"\nprogram = \"./h.sh\"\n";
    let program = "#!/bin/sh\necho '{\"decision\":\"rewrite\",\"args\":{\"text\":\"y\"}}'\n";
    for vendor in VENDORS {
        let project = notes(&format!("{PROJECT}{hook}"));
        let served = calling(vendor, "add", r#"{"text":"x"}"#);
        project.write("h.sh", program);
        let executable = Permissions::from_mode(0o755);
        fs::set_permissions(project.path().join("h.sh"), executable).unwrap();
        let ran = run(&project, &served, &["--session", "s", "go"]);
        assert_eq!(ran["tool_calls"][0]["args"], json!({ "text": "y" }), "{ran}");
        run(&project, &served, &["--session", "s", "again"]);
        for request in &served.requests()[1..] {
            assert_eq!(sent_back(request), json!({ "text": "y" }), "{vendor}");
        }
        let shown = project.toolcrib(&["show", "s"]);
        assert!(shown.stdout.contains(r#"{"text":"y"}"#), "{}{}", shown.stdout, shown.stderr);
        assert!(!shown.stdout.contains(r#"{"text":"x"}"#), "{}", shown.stdout);
        // The trace also has what the model wrote.
        let (_, traced) = project.json(&["trace", "s/1"]);
        let call = &traced["iterations"][0]["calls"][0];
        assert_eq!(call["arguments"], json!({ "text": "y" }), "{traced}");
        assert!(call["notes"].to_string().contains(r#""before":{"text":"x"}"#), "{call}");
        let replayed = project.toolcrib(&["replay", "s/1"]);
        assert_eq!(replayed.code, Some(0), "{}{}", replayed.stdout, replayed.stderr);
    }
}

/// The same at the gateway, where an MCP client passes the value.
#[test]
fn the_gateway_reads_a_value_written_as_text() {
    let project = project("");
    let mut served = project.command(&["serve"]);
    let mut served = served.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = served.stdin.take().unwrap();
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"typed","arguments":{"i":"5"}}}"#,
    ] {
        writeln!(stdin, "{line}").unwrap();
    }
    let lines = BufReader::new(served.stdout.take().unwrap()).lines();
    let mut answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = answers.find(|answer| answer["id"] == 1).expect("no answer");
    drop(stdin);
    served.wait().unwrap();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(r#""i":5"#), "{answer}");
}
