//! `--claim`: claims of a token, for roles that require them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::support::Project;

/// Members of both groups of the region may write.
const DESK: &str = r#"
name = "desk"
policy_default = "deny"
[agent]
model = "script:script.toml"
[[role]]
name = "clerk"
claims = { groups = ["clerks"], region = ["eu", "us"] }
[[policy]]
effect = "allow"
role = "clerk"
[[tool]]
kind = "command"
name = "say"
description = "Says."
program = "echo"
"#;

const SCRIPT: &str = "[[rule]]\ncalled = \"say\"\ntext = \"Said.\"\n\
                      [[rule]]\ncalls = [{ tool = \"say\" }]\n";

fn desk() -> Project {
    Project::of(&[("toolcrib.toml", DESK), ("script.toml", SCRIPT)])
}

const CLERK: [&str; 6] =
    ["--claim", "groups=staff", "--claim", "region=eu", "--claim", "groups=clerks"];

#[test]
fn claims_give_roles_in_every_command_with_an_identity() {
    let desk = desk();
    let with = |args: &[&str]| -> Vec<String> {
        args.iter().chain(&CLERK).map(ToString::to_string).collect()
    };
    let json = |args: &[&str]| {
        let args = with(args);
        desk.json(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let offered = |menu: &Value| menu["offered"].as_array().unwrap().len();
    assert_eq!(offered(&json(&["menu"]).1), 1);
    assert_eq!(offered(&desk.json(&["menu"]).1), 0);
    // All of the claims that a role names are needed.
    assert_eq!(offered(&desk.json(&["menu", "--claim", "groups=clerks"]).1), 0);
    assert_eq!(json(&["explain", "say"]).1["offered"], true);
    assert_eq!(json(&["call", "say"]).0, Some(0));
    assert_eq!(desk.json(&["call", "say"]).0, Some(1));
    let (code, run) = json(&["run", "Go"]);
    assert_eq!((code, &run["answer"]), (Some(0), &json!("Said.")), "{run}");
    let outcome = desk.toolcrib(&["explain", "say", "--claim", "region=eu"]);
    insta::assert_snapshot!(outcome.stdout, @r#"
    say is withheld by policy
      source       passed    comes from toolcrib.toml:12
      personality  passed    personality `default` reaches it
      policy       withheld  no rule allows it, and policy_default is "deny"
    to offer it: a principal with role `clerk` (claim `groups` of clerks and claim `region` of eu or us)
    "#);
}

#[test]
fn claims_apply_to_the_client_of_a_gateway_on_stdio() {
    let desk = desk();
    let listed = |claims: &[&str]| {
        let mut command = desk.command(&["serve", "-q"]);
        let mut child =
            command.args(claims).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let messages = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        ];
        messages.iter().for_each(|message| writeln!(stdin, "{message}").unwrap());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let answer = loop {
            let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if message["id"] == 2 {
                break message;
            }
        };
        drop(stdin);
        child.wait().unwrap();
        answer["result"]["tools"].as_array().unwrap().len()
    };
    assert_eq!((listed(&CLERK), listed(&["--claim", "groups=clerks"])), (1, 0));
}

#[test]
fn an_invalid_claim_is_a_usage_error() {
    let desk = desk();
    let said = |claim: &str| {
        let outcome = desk.toolcrib(&["menu", "--claim", claim]);
        assert_eq!(outcome.code, Some(2), "{claim}");
        outcome.stderr.lines().next().unwrap_or_default().to_owned()
    };
    let all = ["groups", "=clerks", "groups:=[\"clerks\"]", "groups =clerks", " groups=clerks"]
        .map(said)
        .join("\n");
    insta::assert_snapshot!(all, @r#"
    error: invalid value 'groups' for '--claim <NAME=VALUE>': write NAME=VALUE, such as groups=trainees
    error: invalid value '=clerks' for '--claim <NAME=VALUE>': the claim has no name; write NAME=VALUE, such as groups=trainees
    error: invalid value 'groups:=["clerks"]' for '--claim <NAME=VALUE>': a claim's value is text, not JSON; write NAME=VALUE, once for each value of a list
    error: invalid value 'groups =clerks' for '--claim <NAME=VALUE>': the claim's name begins or ends with whitespace, and no role can match such a claim
    error: invalid value ' groups=clerks' for '--claim <NAME=VALUE>': the claim's name begins or ends with whitespace, and no role can match such a claim
    "#);
    let tokens = "[secrets]\nT = { env = \"PATH\" }\n[[serve.token]]\nsecret = \"secret:T\"\nprincipal = \"a\"\n";
    desk.write("toolcrib.toml", &format!("{DESK}{tokens}"));
    let outcome = desk.toolcrib(&["serve", "--http", "0", "--claim", "groups=clerks"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("`--claim`"), "{}", outcome.stderr);
}
