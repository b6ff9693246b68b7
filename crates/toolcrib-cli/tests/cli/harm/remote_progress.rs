//! A server's progress reached clients of the gateway raw, and as fast as the server wrote it.

use std::time::Instant;

use serde_json::Value;

use super::faults::{Client, project};

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
