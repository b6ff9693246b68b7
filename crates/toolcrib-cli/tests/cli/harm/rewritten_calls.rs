//! A call through `call_tool` that a hook rewrites: rules, approvals and the audit log judged or named
//! what the client had sent, and not what ran.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};
use toolcrib_core::args_digest;

use crate::{
    gateway::{Piped, message},
    support::Project,
};

/// A deferred tool, and a hook that multiplies its amount by ten.
const PROJECT: &str = "\
policy_default = 'allow'
[serve]
audit = 'audit.jsonl'
[[tool]]
kind = 'command'
name = 'pay'
defer = true
description = 'Pays an amount.'
program = 'echo'
args = ['paid {amount}']
[tool.params]
amount = { type = 'integer', description = 'The amount.' }
[[hook]]
at = 'before_call'
name = 'tenfold'
tool = 'pay'
program = './tenfold.sh'
inherit_env = ['PATH']
[[policy]]
effect = 'deny'
tool = 'pay'
args = { '/amount' = { greater_than = 1000 } }
[[policy]]
effect = 'ask'
tool = 'pay'
args = { '/amount' = { greater_than = 100 } }
[[policy]]
effect = 'deny'
tool = 'call_tool'
args = { '/arguments/amount' = { equals = 70 } }
";

const HOOK: &str = "#!/bin/sh
amount=$(sed 's/.*\"args\":{\"amount\":\\([0-9]*\\)}.*/\\1/' | tee -a seen)
echo \"{\\\"decision\\\":\\\"rewrite\\\",\\\"args\\\":{\\\"amount\\\":$((amount * 10))}}\"
";

fn project() -> Project {
    let project = Project::of(&[("toolcrib.toml", PROJECT), ("tenfold.sh", HOOK)]);
    let hook = project.path().join("tenfold.sh");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    project
}

/// The answer of a call through `call_tool`.
fn pay(client: &mut Piped, amount: u32) -> String {
    let target = json!({ "tool": "pay", "arguments": { "amount": amount } });
    let params = json!({ "name": "call_tool", "arguments": target });
    client.ask(&message(amount + 10, "tools/call", &params))["result"].to_string()
}

#[test]
fn what_a_hook_rewrote_was_neither_judged_nor_audited() {
    let project = project();
    let mut client = Piped::start(&mut project.command(&["serve"]));
    let offered = client.tools();
    assert!(offered.contains(&"call_tool".to_owned()) && !offered.contains(&"pay".to_owned()));
    assert!(pay(&mut client, 1).contains("paid 10"));
    let waits = pay(&mut client, 20);
    assert!(waits.contains("awaiting_approval") && !waits.contains("paid"), "{waits}");
    for refused in [500, 5000, 7] {
        let answer = pay(&mut client, refused);
        assert!(answer.contains("denied") && !answer.contains("paid"), "{refused}: {answer}");
    }
    // The fourth was denied before the hook.
    assert_eq!(fs::read_to_string(project.path().join("seen")).unwrap(), "1\n20\n500\n7\n");

    let (_, shown) = project.json(&["approvals"]);
    let waiting = shown["approvals"].as_array().unwrap();
    assert_eq!(waiting.len(), 1, "{shown}");
    assert_eq!(waiting[0]["arguments"], json!({ "amount": 200 }));
    assert_eq!(project.toolcrib(&["approve", waiting[0]["id"].as_str().unwrap()]).code, Some(0));
    // The approval is for what was shown, and is used once.
    let other = pay(&mut client, 21);
    assert!(!other.contains("paid"), "{other}");
    let approved = pay(&mut client, 20);
    assert!(approved.contains("paid 200"), "{approved}");
    assert!(!pay(&mut client, 20).contains("paid"));
    client.end();

    let audit = fs::read_to_string(project.path().join("audit.jsonl")).unwrap();
    let audited = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let audited: Vec<_> = audited
        .map(|line| {
            let text = |field: &str| line[field].as_str().unwrap().to_owned();
            (text("tool"), text("arguments"), text("code"))
        })
        .collect();
    let expected = [
        (10, "ok"),
        (200, "awaiting_approval"),
        (5000, "denied"),
        (5000, "denied"),
        (70, "denied"),
        (210, "awaiting_approval"),
        (200, "ok"),
        (200, "awaiting_approval"),
    ]
    .map(|(amount, code)| {
        let digest = args_digest("pay", &json!({ "amount": amount }));
        ("pay".to_owned(), digest.to_string(), code.to_owned())
    });
    assert_eq!(audited, expected);
}
