//! `null` for an optional argument, on the command line.

use crate::support::Project;

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
