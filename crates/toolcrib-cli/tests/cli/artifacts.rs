//! Results that are too large for a model, from the command line.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Outcome, Project, listing};

const COUNT: &str = r#"
[artifacts]
[limits]
batch_result_chars = 1000
[[tool]]
kind = "command"
name = "count"
description = "Counts."
program = "seq"
args = ["{to}"]
params = { to = { type = "integer", description = "Up to." } }
"#;

#[test]
fn the_detective_finds_the_cause_without_the_whole_log() {
    let project = Project::copy_of("log-detective");
    let events = project.path().join("events.jsonl");
    let path = events.to_str().unwrap();
    let mut command = project.command(&["run", "Why did the job fail?", "--events", path]);
    command.env("LOG_MEGABYTES", "3");
    let outcome = Outcome::from(command.output().unwrap());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let log = fs::read_to_string(project.path().join("nightly-billing-3.log")).unwrap();
    let line_of = |text: &str| 1 + log.lines().position(|line| line.contains(text)).unwrap();
    let (before, after) = (line_of(" loaded /etc"), line_of(" reloaded /etc"));
    for said in [
        "was cut from 64 to 2 connections while it ran (revision 4711, by deploy-bot, at 01:5"
            .into(),
        format!("Line {before} has the pool as it was, line {after} the change."),
    ] {
        assert!(outcome.stdout.contains(&said), "{said}\n{}", outcome.stdout);
    }
    assert!(outcome.stderr.contains("read_log is stored as artifact call_1: text, 3,000,"));
    let of = " of 3,000,";
    let read = outcome.stderr.lines().find(|line| line.starts_with("read ")).unwrap();
    let (read, of) = read.split_at(read.find(of).unwrap());
    let read: u64 = read.split_whitespace().last().unwrap().replace(',', "").parse().unwrap();
    assert!((500..5_000).contains(&read) && of.ends_with("characters that tools returned"), "{of}");

    let events = fs::read_to_string(events).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kept: Vec<_> = events.filter(|event| event["type"] == "artifact.kept").collect();
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!((&kept["bytes"], &kept["chars"]), (&json!(log.len()), &json!(log.len())));
    assert_eq!(kept["lines"], log.lines().count() + 1);
    // The session has its artifact until it is deleted.
    let artifacts = || listing(&project.path().join(".toolcrib/artifacts"));
    assert!(!artifacts().is_empty());
    let session = project.toolcrib(&["sessions", "-q"]).stdout;
    assert_eq!(project.toolcrib(&["sessions", "delete", session.trim()]).code, Some(0));
    assert!(artifacts().is_empty(), "{:?}", artifacts());
}

#[test]
fn the_json_of_a_run_counts_and_names_what_was_kept() {
    let project = Project::copy_of("log-detective");
    let mut command = project.command(&["run", "Why?", "--json"]);
    command.env("LOG_MEGABYTES", "2");
    let outcome = Outcome::from(command.output().unwrap());
    let run: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let calls = run["tool_calls"].as_array().unwrap();
    let kept: Vec<_> = calls.iter().map(|call| call["artifacts"].clone()).collect();
    assert_eq!(kept, [json!(["call_1"]), Value::Null, Value::Null, Value::Null]);
    let produced = run["result_chars"]["produced"].as_u64().unwrap();
    assert!((2_000_000..2_001_000).contains(&produced), "{}", run["result_chars"]);
}

#[test]
fn the_printed_command_reads_the_rest_of_an_artifact() {
    let project = Project::of(&[("toolcrib.toml", COUNT)]);
    let unnamed = project.toolcrib(&["call", "count", "to=5000"]);
    assert!(unnamed.stdout.ends_with("chars total; the rest: artifact_read call_1]\n"));
    let told = |stderr: &str| stderr.replace(project.path().to_str().unwrap(), "DIR");
    insta::assert_snapshot!(told(&unnamed.stderr), @r"  help: to read the rest, make the call with `--session NAME`, then run `toolcrib call artifact_read id=call_1 --project DIR --session NAME`");
    let call = |args: &[&str]| {
        let args = [&["call"], args, &["--session", "a.b", "--as", "ana"]].concat();
        project.toolcrib(&args)
    };
    let named = call(&["count", "to=5000"]);
    insta::assert_snapshot!(told(&named.stderr), @r"  help: read the rest with `toolcrib call artifact_read id=call_1 --project DIR --as ana --session a.b`");
    let read = call(&["artifact_read", "id=call_1", "tail:=2"]);
    assert_eq!((read.stdout.as_str(), read.stderr.as_str()), ("4999\n5000\n", ""));
    // The next of that call is another one; the data of the first was kept too.
    assert!(call(&["count", "to=6000"]).stdout.contains("the rest: artifact_read call_1.3]"));
    let wrong = call(&["artifact_read", "id=../../etc/passwd"]);
    assert_eq!(wrong.code, Some(1));
    insta::assert_snapshot!(wrong.stderr, @r"error: input_invalid: artifact `../../etc/passwd` does not exist; there are: call_1.4, call_1.3, call_1.2, call_1");
}
