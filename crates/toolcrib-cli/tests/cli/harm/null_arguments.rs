//! `null` for an optional argument, at the doors of the program.

use std::{io::Write as _, process::Stdio};

use serde_json::Value;

use crate::support::{Outcome, Project};

const PROJECT: &str = r#"
[[tool]]
kind = "command"
name = "greet"
description = "Greets somebody."
read_only = true
program = "echo"
args = ["hello", "{name}", "{title}"]
[tool.params]
name = { type = "string" }
title = { type = "string", optional = true }
"#;

#[test]
fn a_null_for_an_optional_argument_was_refused_on_the_command_line() {
    let project = Project::of(&[("toolcrib.toml", PROJECT)]);
    for arguments in [
        &[r#"{"name": "Ann", "title": null}"#][..],
        &["name=Ann", "title:=null"],
        &["{name: 'Ann', title: null}"],
    ] {
        let args: Vec<_> = ["call", "greet"].iter().chain(arguments).copied().collect();
        let (code, called) = project.json(&args);
        assert_eq!((code, &called["value"]), (Some(0), &"hello Ann".into()), "{called}");
    }
    let (code, refused) = project.json(&["call", "greet", r#"{"name": null}"#]);
    assert_ne!(code, Some(0), "{refused}");
}

#[test]
fn a_null_for_an_optional_argument_was_refused_by_the_gateway() {
    let project = Project::of(&[("toolcrib.toml", PROJECT)]);
    let mut served = project.command(&["serve"]);
    let mut served = served.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = served.stdin.take().unwrap();
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ann","title":null}}}"#,
    ] {
        writeln!(stdin, "{line}").unwrap();
    }
    let mut answers = std::io::BufReader::new(served.stdout.take().unwrap());
    let answer = loop {
        let mut line = String::new();
        assert_ne!(std::io::BufRead::read_line(&mut answers, &mut line).unwrap(), 0, "no answer");
        let answer: Value = serde_json::from_str(&line).unwrap();
        if answer["id"] == 1 {
            break answer;
        }
    };
    drop(stdin);
    let ended: Outcome = served.wait_with_output().unwrap().into();
    assert!(ended.code.is_some());
    assert_eq!(answer["result"]["isError"], Value::from(false), "{answer}");
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("hello Ann"));
}
