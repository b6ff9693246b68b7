//! Each edit of a trusted project was asked about, or the question showed everything again.

use std::fs;

use super::Found;
use crate::support::{Outcome, at_terminal};

const PROJECT: &str = r#"
policy_default = "allow"
[agent]
model = "script:model.toml"
system = "Be kind."
[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "touch"
args = ["below/started"]
stdin = "json"
[tool.params]
n = { type = "integer", minimum = 1, description = "How often.", optional = true }
[[tool]]
kind = "command"
name = "drop"
description = "Drops."
program = "true"
destructive = true
[mcp.spy]
command = "true"
[[policy]]
tool = "drop"
effect = "deny"
[[policy]]
tool = "look"
effect = "allow"
"#;

/// A trusted project, and its file to be edited.
struct Trusted(Found);

impl Trusted {
    fn new() -> Self {
        let found = Found::of(&[
            ("toolcrib.toml", PROJECT),
            ("model.toml", "[[rule]]\ntext = \"hello\"\n"),
            ("skills/x/SKILL.md", "---\nname: x\ndescription: X.\n---\nX.\n"),
        ]);
        found.trust();
        Self(found)
    }

    fn edit(&self, part: &str, other: &str) {
        let path = self.0.path().join("toolcrib.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(part), "{part}: {text}");
        fs::write(path, text.replace(part, other)).unwrap();
    }

    fn call(&self) -> Outcome {
        self.0.run(&["call", "look"])
    }
}

#[test]
fn edits_of_texts_and_stricter_rules_were_asked_about() {
    let project = Trusted::new();
    // One after the other: consent remains that of the beginning.
    for (part, other) in [
        ("[agent]", "# About the agent.\n\n[agent]"),
        ("Be kind.", "Be brief."),
        ("\"Looks.\"", "\"Looks, when asked.\""),
        ("How often.", "How many times."),
        ("minimum = 1", "minimum = 2, maximum = 9"),
        ("effect = \"deny\"", "effect = \"deny\"\nreason = \"it cannot be undone\""),
        (
            "[[policy]]\ntool = \"look\"",
            "[[policy]]\neffect = \"deny\"\nannotation = { destructive = true }\n[[policy]]\ntool = \"look\"",
        ),
    ] {
        project.edit(part, other);
        let called = project.call();
        assert_eq!(called.code, Some(0), "{other}: {}", called.stderr);
        assert!(!called.stderr.contains("trust"), "{other}: {}", called.stderr);
    }
    fs::write(
        project.0.path().join("skills/x/SKILL.md"),
        "---\nname: x\ndescription: Another.\n---\nDo it well.\n",
    )
    .unwrap();
    assert_eq!(project.call().code, Some(0));
    assert!(project.0.was_started());
}

#[test]
fn a_new_program_was_not_the_only_thing_that_was_shown() {
    let project = Trusted::new();
    project.edit("[mcp.spy]", "[mcp.more]\ncommand = \"uvx\"\nargs = [\"more==1.0\"]\n[mcp.spy]");
    let (code, asked) = at_terminal(&project.0.command(&["call", "look"]), "[y/N]", "y\n");
    assert_eq!(code, Some(0), "{asked}");
    assert_eq!(asked.matches("[y/N]").count(), 1, "{asked}");
    let shown: Vec<_> =
        asked.lines().filter(|line| line.starts_with("  +") || line.starts_with("  -")).collect();
    assert_eq!(
        shown.iter().map(|line| line.trim_end()).collect::<Vec<_>>(),
        [
            "  + MCP server `more`",
            "  +   starts: uvx more==1.0",
            "  + toolcrib.toml: mcp.more.args = [\"more==1.0\"]",
            "  + toolcrib.toml: mcp.more.command = \"uvx\"",
        ],
        "{asked}"
    );
    assert!(!asked.contains("MCP server `spy`"), "{asked}");
    assert_eq!(project.call().code, Some(0), "it is asked once");

    // The refusal without a terminal, and `trust`, show the difference too.
    project.edit("more==1.0", "more==2.0");
    let [refused, trusted] = [project.call(), project.0.run(&["trust"])];
    assert_eq!((refused.code, trusted.code), (Some(2), Some(0)), "{}", refused.stderr);
    for said in [refused.stderr, trusted.stderr] {
        assert!(said.contains("  -   starts: uvx more==1.0"), "{said}");
        assert!(said.contains("  +   starts: uvx more==2.0"), "{said}");
        assert!(!said.contains("spy"), "{said}");
    }
}

#[test]
fn an_edit_that_permits_more_was_not_asked_about() {
    for (part, other, shown) in [
        (
            "[[policy]]\ntool = \"drop\"",
            "[[policy]]\ntool = \"drop\"\neffect = \"ask\"\n[[policy]]\ntool = \"drop\"",
            "+ policy rule 1 = {\"effect\":\"ask\"",
        ),
        ("policy_default = \"allow\"", "policy_default = \"deny\"", "+ policy_default = deny"),
        (
            "minimum = 1",
            "minimum = 0",
            "+ toolcrib.toml: arguments of look: properties.n.minimum = 0",
        ),
        ("type = \"integer\", ", "", "- toolcrib.toml: arguments of look: properties.n.type"),
        (
            "[mcp.spy]",
            "[mcp.spy]\nlint_allow = [\"*\"]",
            "+ toolcrib.toml: mcp.spy.lint_allow = [\"*\"]",
        ),
        ("[mcp.spy]", "[mcp.spy]\ntrusted = true", "+ toolcrib.toml: mcp.spy.trusted = true"),
        ("[mcp.spy]", "[mcp.spy]\npin = false", "+ toolcrib.toml: mcp.spy.pin = false"),
        ("[mcp.spy]", "[mcp.spy]\nenv = { A = \"hush-1\" }", "+ toolcrib.toml: mcp.spy.env.A"),
        (
            "[agent]",
            "[sandbox]\ncontain_children = \"where_possible\"\n[agent]",
            "+ toolcrib.toml: sandbox.contain_children = ",
        ),
        (
            "destructive = true",
            "destructive = true\nuntrusted = false",
            "+ toolcrib.toml: tool.drop.untrusted = false",
        ),
    ] {
        let project = Trusted::new();
        project.edit(part, other);
        let refused = project.call();
        assert_eq!((refused.code, project.0.was_started()), (Some(2), false), "{other}");
        let said = refused.stderr;
        assert!(said.contains(shown), "{shown}: {said}");
        assert!(!said.contains("hush-1"), "{said}");
    }
}
