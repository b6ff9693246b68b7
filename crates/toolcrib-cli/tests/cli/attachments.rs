//! Files that the user attaches to a message.

use std::{io::Write as _, process::Stdio};

use crate::support::{Outcome, Project};

#[test]
fn a_program_reads_a_copy_of_an_attached_file_and_no_other() {
    let project = Project::of(&[
        (
            "toolcrib.toml",
            r#"
[agent]
model = "script:script.toml"
[[tool]]
kind = "command"
name = "count_words"
description = "Counts the words of an attached file."
read_only = true
program = "wc"
args = ["-w", "{file}"]
sandbox = "files"
[tool.params]
file = { type = "string", format = "attachment", description = "The id of the attachment." }
"#,
        ),
        (
            "script.toml",
            r#"
[[rule]]
user = 'attachment id (?P<id>att_[0-9a-f]+)'
not_called = "count_words"
calls = [{ tool = "count_words", args = { file = "{{ id }}" } }]
[[rule]]
user = 'path (?P<path>/\S+)'
not_called = "count_words"
calls = [{ tool = "count_words", args = { file = "{{ path }}" } }]
[[rule]]
text = "Done."
"#,
        ),
        ("my notes.txt", "one two three"),
    ]);
    let notes = project.path().join("my notes.txt");
    let notes = notes.to_str().unwrap();
    let (code, run) = project.json(&["run", "--attach", notes, "How many words?"]);
    assert_eq!(code, Some(0), "{run}");
    let call = &run["tool_calls"][0];
    assert!(call["value"].as_str().unwrap().trim_start().starts_with("3 /"), "{run}");
    let path = call["value"].as_str().unwrap().split_whitespace().nth(1).unwrap();
    assert!(!std::path::Path::new(path).exists(), "the copy is removed: {path}");

    let (_, run) = project.json(&["run", "--attach", notes, "Read path /etc/hostname"]);
    assert_eq!(run["tool_calls"][0]["ok"], true, "the first rule: {run}");
    let (_, run) = project.json(&["run", "Read path /etc/hostname"]);
    assert_eq!(run["tool_calls"][0]["code"], "input_invalid", "{run}");

    let missing = project.toolcrib(&["run", "--attach", "missing.txt", "Hi"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("missing.txt: No such file"), "{}", missing.stderr);
}

#[test]
fn a_long_attached_file_is_read_as_an_artifact() {
    let project = Project::of(&[
        ("toolcrib.toml", "[agent]\nmodel = \"script:script.toml\"\n[artifacts]\n"),
        (
            "script.toml",
            r#"
[[rule]]
user = 'artifact_read (?P<id>att_[0-9a-f]+)'
not_called = "artifact_read"
calls = [{ tool = "artifact_read", args = { id = "{{ id }}", tail = 1 } }]
[[rule]]
text = "Done."
"#,
        ),
        ("long.txt", &format!("{}the end", "a line\n".repeat(5_000))),
    ]);
    let long = project.path().join("long.txt");
    let (code, run) = project.json(&["run", "--attach", long.to_str().unwrap(), "Read it."]);
    assert_eq!(code, Some(0), "{run}");
    assert!(run["tool_calls"][0]["value"].as_str().unwrap().contains("the end"), "{run}");
}

#[test]
fn piped_text_is_attached_to_a_message_or_named_as_unread() {
    let project = Project::of(&[
        ("toolcrib.toml", "[agent]\nmodel = \"script:s.toml\"\n"),
        ("s.toml", "[[rule]]\ntext = \"You said: {{ user }}\"\n"),
    ]);
    let piped = |args: &[&str]| -> Outcome {
        let mut command = project.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"ERROR disk full\n").unwrap();
        child.wait_with_output().unwrap().into()
    };
    let unread = "standard input was not read; add `--attach -`";
    let attached = piped(&["run", "--attach", "-", "Why does it fail?"]);
    let answer = &attached.stdout;
    assert!(answer.starts_with("You said: Why does it fail?"), "{answer}{}", attached.stderr);
    assert!(answer.contains("ERROR disk full") && answer.contains("<untrusted"), "{answer}");
    assert!(!attached.stderr.contains(unread), "{}", attached.stderr);
    let ignored = piped(&["run", "Why does it fail?"]);
    assert_eq!((ignored.code, &*ignored.stdout), (Some(0), "You said: Why does it fail?\n"));
    assert!(ignored.stderr.contains(unread), "{}", ignored.stderr);
    let both = piped(&["run", "--attach", "-"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
    assert!(both.stderr.contains("cannot be the message too"), "{}", both.stderr);
}
