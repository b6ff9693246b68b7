//! A secret of the project in the arguments of a tool that passes them on.

use crate::support::Project;

const FILE: &str = r#"
policy_default = "allow"

[[tool]]
kind = "command"
name = "say"
description = "Says it again."
read_only = true
program = "echo"
args = ["{text}"]
[tool.params]
text = { type = "string" }

[[tool]]
kind = "command"
name = "keyed"
description = "Says it again, with the key."
read_only = true
program = "echo"
args = ["{text}"]
env = { KEY = "secret:CRM" }
[tool.params]
text = { type = "string" }

[secrets]
CRM = { env = "TOOLCRIB_TEST_CRM" }
"#;

#[test]
fn a_command_was_passed_a_secret_that_it_does_not_declare() {
    let project = Project::of(&[("toolcrib.toml", FILE)]);
    let call = |tool: &str, text: &str| {
        let text = format!("text={text}");
        let mut command = project.command(&["call", tool, &text, "--json"]);
        let output = command.env("TOOLCRIB_TEST_CRM", "wJalr/XUtn+FEMI").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let spelled = "wJalr%2FXUtn%2BFEMI";
    let denied = call("say", spelled);
    assert!(denied.contains(r#""denied""#) && denied.contains("`CRM`"), "{denied}");
    assert!(!denied.contains(spelled), "{denied}");
    let made = call("keyed", spelled);
    assert!(made.contains("[redacted]") && !made.contains("denied"), "{made}");
    assert!(call("say", "hello").contains("hello"));
}
