//! `/mcp/skill/S` and `--skill` activated a skill for a caller whom policy forbids to read it.

use std::process::Command;

use serde_json::{Value, json};

use super::served::{Answer, Piped, Served, initialize, message};
use crate::support::Project;

const TOKENS: [(&str, &str); 3] = [
    ("ANA", "ana-token-of-a-test-01"),
    ("BOB", "bob-token-of-a-test-01"),
    ("EVE", "eve-token-of-a-test-01"),
];
const ANA: &str = TOKENS[0].1;
const BOB: &str = TOKENS[1].1;
const EVE: &str = TOKENS[2].1;

/// Bob may not read the skill `vault`, which hides a tool, and Eve may read no skill at all.
fn project() -> Project {
    let mut file = String::from(
        r#"
        policy_default = "allow"
        [agent]
        model = "script:script.toml"
        [[policy]]
        effect = "deny"
        tool = "read_skill"
        principal = "bob"
        args = { "/id" = { equals = "vault" } }
        reason = "the vault is not for Bob"
        [[policy]]
        effect = "deny"
        tool = "read_skill"
        principal = "eve"
        [[tool]]
        kind = "command"
        name = "open_vault"
        description = "Opens the vault."
        read_only = true
        program = "echo"
        args = ["it is open"]
        [[tool]]
        kind = "command"
        name = "note"
        description = "Says a note."
        read_only = true
        program = "echo"
        args = ["noted"]
        "#,
    );
    for (name, _) in TOKENS {
        let principal = name.to_lowercase();
        file += &format!(
            "[[serve.token]]\nsecret = 'secret:{name}'\nprincipal = '{principal}'\n\
             [secrets.{name}]\nenv = 'TOOLCRIB_TEST_{name}'\n"
        );
    }
    let vault = "---\nname: vault\ndescription: The vault.\nmetadata:\n  toolcrib-tools: open_vault\n  \
                 toolcrib-tools-mode: hidden_until_active\n---\nHow to open it.\n";
    let desk =
        "---\nname: desk\ndescription: The desk.\nmetadata:\n  toolcrib-tools: note\n---\nNote.\n";
    Project::of(&[
        ("toolcrib.toml", &file),
        ("script.toml", "[[rule]]\ntext = \"done\"\n"),
        ("skills/vault/SKILL.md", vault),
        ("skills/desk/SKILL.md", desk),
    ])
}

fn command(project: &Project, args: &[&str]) -> Command {
    let mut command = project.command(args);
    command.envs(TOKENS.map(|(name, token)| (format!("TOOLCRIB_TEST_{name}"), token)));
    command
}

/// The same answer to a request for a skill that does not exist.
fn renamed(mut answer: Answer) -> Answer {
    answer.body = answer.body.replace("vaulx", "vault");
    answer
}

#[test]
fn a_url_activated_a_skill_that_policy_denies_its_caller() {
    let project = project();
    let served = Served::start(&project, &mut command(&project, &["serve"]));
    let call = json!({ "name": "open_vault", "arguments": {} });
    // Callers that may read the skill are offered its tool, and the tool runs.
    let listed = served.stateless("/mcp/skill/vault", ANA, "tools/list", json!({}));
    assert!(listed.tools().contains(&"open_vault".to_owned()), "{listed:?}");
    let ran = served.stateless("/mcp/skill/vault", ANA, "tools/call", call.clone());
    assert!(ran.body.contains("it is open"), "{ran:?}");
    let session = served.session("/mcp/skill/vault", ANA);
    let listed = served.post("/mcp", ANA, Some(&session), &message("tools/list", &json!({})));
    assert!(listed.tools().contains(&"open_vault".to_owned()), "{listed:?}");

    for token in [BOB, EVE] {
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", call.clone()),
            ("server/discover", json!({})),
            ("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })),
        ] {
            let at = |path| served.stateless(path, token, method, params.clone());
            let refused = at("/mcp/skill/vault");
            assert_eq!(refused.status, 404, "{method}: {refused:?}");
            assert_eq!(refused, renamed(at("/mcp/skill/vaulx")), "{method}");
            // Nor by another spelling of the path.
            assert_eq!(refused, at("/mcp/skill/%76ault"), "{method}");
        }
        let begin = |path| served.post(path, token, None, &initialize());
        let refused = begin("/mcp/skill/vault");
        assert_eq!((refused.status, refused.header("mcp-session-id")), (404, None));
        assert_eq!(refused, renamed(begin("/mcp/skill/vaulx")));
        // A session that began elsewhere gains nothing there either.
        let session = served.session("/mcp", token);
        let list = message("tools/list", &json!({}));
        assert_eq!(served.post("/mcp/skill/vault", token, Some(&session), &list).status, 404);
        let listed = served.post("/mcp", token, Some(&session), &list).tools();
        assert!(!listed.contains(&"open_vault".to_owned()), "{listed:?}");
    }
    // Another skill is Bob's, and none is Eve's.
    assert_eq!(served.stateless("/mcp/skill/desk", BOB, "tools/list", json!({})).status, 200);
    assert_eq!(served.stateless("/mcp/skill/desk", EVE, "tools/list", json!({})).status, 404);
}

#[test]
fn a_caller_who_may_read_no_skill_was_told_to_call_read_skill() {
    let project = project();
    let served = Served::start(&project, &mut command(&project, &["serve"]));
    let told = |token| {
        let begun = served.post("/mcp", token, None, &initialize()).message();
        begun["result"]["instructions"].as_str().unwrap().contains("`read_skill`")
    };
    assert_eq!([ANA, BOB, EVE].map(told), [true, true, false]);
}

#[test]
fn the_log_says_which_rule_refused_a_skill() {
    let project = project();
    let log = project.path().join("access.jsonl");
    let log_to = format!("--access-log={}", log.display());
    let served = Served::start(&project, &mut command(&project, &["serve", &log_to]));
    served.stateless("/mcp/skill/vault", BOB, "tools/list", json!({}));
    drop(served);
    let entry: Value = serde_json::from_str(std::fs::read_to_string(log).unwrap().trim()).unwrap();
    assert_eq!(entry["status"], 404);
    assert!(entry["error"].as_str().unwrap().contains("the vault is not for Bob"), "{entry}");
}

#[test]
fn an_option_of_a_command_activated_a_skill_that_policy_denies_its_caller() {
    let project = project();
    let run = |words: &[&str], who: &str| {
        let args = [words, &["--skill", "vault", "--as", who]].concat();
        command(&project, &args).output().unwrap()
    };
    for words in [
        &["menu"][..],
        &["menu", "--why"],
        &["explain", "open_vault"],
        &["call", "open_vault"],
        &["run", "go"],
        &["serve"],
    ] {
        for who in ["bob", "eve"] {
            let refused = run(words, who);
            let said = String::from_utf8(refused.stderr).unwrap();
            assert_ne!(refused.status.code(), Some(0), "{words:?} {who}: {said}");
            let rule = if who == "bob" { "policy rule 1 (" } else { "policy rule 2 (" };
            assert!(said.contains("`vault`") && said.contains(rule), "{words:?} {who}: {said}");
            let shown = String::from_utf8(refused.stdout).unwrap();
            assert!(!shown.contains("open"), "{words:?} {who}: {shown}");
        }
        let allowed = run(words, "ana");
        assert_eq!(allowed.status.code(), Some(0), "{words:?}: {allowed:?}");
    }
    // As an unknown skill does, for those that read exit codes.
    let code = |skill: &str| {
        let args = ["menu", "--as", "bob", "--skill", skill];
        command(&project, &args).output().unwrap().status.code()
    };
    assert_eq!(code("vault"), code("vaulx"));
}

#[test]
fn a_server_of_tokens_started_with_a_skill_that_one_of_them_may_not_read() {
    let project = project();
    let refused =
        command(&project, &["serve", "--skill", "vault", "--http", "0"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("the vault is not for Bob"), "{said}");
    let mut client =
        Piped::start(&mut command(&project, &["serve", "--skill", "vault", "--as", "ana"]));
    client.ask(&initialize());
    let listed = client.ask(&message("tools/list", &json!({}))).to_string();
    assert!(listed.contains("open_vault"), "{listed}");
}
