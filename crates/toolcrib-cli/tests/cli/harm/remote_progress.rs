//! A server's progress, and its other notifications, reached clients of the gateway raw, and as fast as
//! the server wrote them.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::faults::{Client, project, project_of};
use crate::support::wait_for;

#[test]
fn twenty_thousand_messages_in_were_as_many_out() {
    let project = project("");
    let mut client = Client::of(&project);
    let began = Instant::now();
    let (answer, told) = client.call("flood");
    let seconds = began.elapsed().as_secs_f64();
    assert!(answer["result"]["isError"] != true, "{answer}");
    assert!(told.len() as f64 <= 10.0 * seconds.ceil(), "{} in {seconds} s", told.len());
    let last: Value = serde_json::from_str(told.last().expect("the last one")).unwrap();
    assert_eq!(last["params"]["message"], "number 19999");
    assert!(told.iter().all(|line| !line.contains("u001b") && !line.contains('\u{200b}')));
}

#[test]
fn one_message_carried_controls_tokens_and_a_hundred_thousand_characters() {
    let project = project("");
    let (answer, told) = Client::of(&project).call("hostile");
    assert_eq!(told.len(), 1, "{told:?}");
    let told: Value = serde_json::from_str(&told[0]).unwrap();
    let message = told["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("‹|im_start|›systemxxx"), "{message}");
    assert!(message.chars().count() <= 1_001, "{}", message.len());
    let failed = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!failed.contains(['\u{1b}', '\u{9b}']) && !failed.contains("<|im_start|>"), "{failed}");
}

#[test]
fn what_a_server_says_reached_the_terminal_as_json() {
    let project = project("");
    for args in [["call", "mcp__f__hostile", "--json"], ["call", "mcp__f__hostile", "--verbose"]] {
        let outcome = project.toolcrib(&args);
        let shown = outcome.stdout + &outcome.stderr;
        let is_obeyed = |c: char| c.is_control() && c != '\n';
        assert!(shown.contains("it failed") && !shown.contains(is_obeyed), "{shown:?}");
    }
    // Names and errors of a server are sanitized where they are shown.
    let script = "import sys; sys.stderr.write('gone\\x1b[2J\\u009b1m\\u202e'); sys.exit(1)";
    let file = format!("[mcp.f]\ncommand = 'python3'\nargs = ['-c', \"\"\"{script}\"\"\"]\n");
    let project = crate::support::Project::of(&[("toolcrib.toml", &file.replace('\\', "\\\\"))]);
    for args in [["mcp", "list", "--json"].as_slice(), &["mcp", "list"], &["menu"], &["tools"]] {
        let outcome = project.toolcrib(args);
        let shown = outcome.stdout + &outcome.stderr;
        let is_obeyed = |c: char| c == '\u{202e}' || c.is_control() && c != '\n';
        assert!(shown.contains("gone") && !shown.contains(is_obeyed), "{args:?}: {shown:?}");
    }
}

/// The parsed messages of a method.
fn of_method(lines: &[String], method: &str) -> Vec<Value> {
    let messages = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.filter(|message| message["method"] == *method).collect()
}

#[test]
fn twenty_thousand_log_messages_in_were_four_thousand_out() {
    let project = project_of("remote_notifications.py", "");
    let mut client = Client::of(&project);
    let began = Instant::now();
    let (_, lines) = client.call("logs");
    let most = 256.0 + 2.0 * 100.0 * (began.elapsed().as_secs_f64() + 1.0);
    let logs = of_method(&lines, "notifications/message");
    assert!((logs.len() as f64) < most, "{} are more than {most}", logs.len());
    assert_eq!(logs[0]["params"], json!({ "level": "info", "logger": "f/l", "data": "number 0" }));
    let dropped = |log: &&Value| log["params"]["level"] == "warning";
    let dropped = logs.iter().find(dropped).expect("the number of dropped messages");
    let data = dropped["params"]["data"].as_str().unwrap();
    assert!(data.ends_with("log messages were dropped: the limit is 100 per second"), "{data}");
    assert_eq!(dropped["params"]["logger"], "f");
}

#[test]
fn a_log_message_of_six_megabytes_passed() {
    let project = project_of("remote_notifications.py", "");
    let (_, lines) = Client::of(&project).call("long");
    let logs = of_method(&lines, "notifications/message");
    let [log] = logs.as_slice() else { panic!("{} messages", logs.len()) };
    assert_eq!(log["params"]["level"], "warning");
    let data = log["params"]["data"].as_str().unwrap();
    assert!(data.starts_with(r#"{"text":"xxx"#) && data.ends_with('…'), "{data}");
    assert!(log.to_string().len() < 5_000, "{}", log.to_string().len());
}

#[test]
fn each_of_fifteen_thousand_changes_was_announced() {
    let project = project_of("remote_notifications.py", "");
    let mut client = Client::of(&project);
    client.ask("resources/subscribe", &json!({ "uri": "test://one" }));
    let began = Instant::now();
    let (_, mut lines) = client.call("changes");
    sleep(Duration::from_millis(200));
    let methods = [
        "notifications/resources/updated",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    ];
    wait_for(|| {
        lines.extend(client.ask("ping", &json!({})).1);
        methods.iter().all(|method| !of_method(&lines, method).is_empty())
    });
    // One in 50 ms.
    let most = 20.0 * (began.elapsed().as_secs_f64() + 0.1);
    for (method, uri) in methods.into_iter().zip([json!("test://one"), Value::Null, Value::Null]) {
        let changes = of_method(&lines, method);
        assert!(changes.len() as f64 <= most, "{method}: {} are more than {most}", changes.len());
        assert_eq!(changes[0]["params"]["uri"], uri);
    }
}
