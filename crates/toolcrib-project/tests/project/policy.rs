//! `[[role]]` and `[[policy]]`: what they come to, and what is wrong with them.

use serde_json::json;
use toolcrib_core::{ErrorCode, ToolCall};
use toolcrib_engine::TurnOptions;
use toolcrib_project::Project;

use crate::folder::{DATABASE, Folder, SKILL, block_on};

/// Two tools that take something.
const TOOLS: &str = r#"
[[tool]]
kind = "sql"
name = "pay"
description = "Pays."
statements = ["SELECT :amount AS amount, :to AS receiver"]
[tool.params]
amount = { type = "number", description = "How much." }
to = { type = "string", description = "Who.", optional = true }
[[tool]]
kind = "sql"
name = "look"
description = "Looks."
read_only = true
statements = ["SELECT 1 AS one"]
"#;

fn with(rules: &str) -> Folder {
    Folder::with(&format!("policy_default = 'allow'\n{DATABASE}{TOOLS}{rules}"))
        .skill("billing", SKILL)
}

/// The result of a call of `pay`: its code and cause.
fn paying(project: &Project, args: serde_json::Value) -> (Option<ErrorCode>, Option<String>) {
    let engine = project.engine_builder().build().unwrap();
    block_on(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let calls = vec![ToolCall::new("c", "pay", args)];
        let result = turn.iteration().await.unwrap().execute(calls).await.remove(0);
        (result.code, result.cause.map(|cause| cause.to_string()))
    })
}

#[test]
fn every_test_of_an_argument_can_be_written() {
    for (test, fits, other) in [
        ("equals = 7", json!({"amount": 7.0}), json!({"amount": 8})),
        ("one_of = [1, 7]", json!({"amount": 7}), json!({"amount": 8})),
        ("less_than = 7.5", json!({"amount": 7}), json!({"amount": 7.5})),
        ("greater_than = 7, less_than = 9", json!({"amount": 8}), json!({"amount": 9})),
        ("exists = true", json!({"amount": 0}), json!({})),
    ] {
        let project = with(&format!(
            "[[policy]]\neffect = 'deny'\ntool = 'pay'\nargs = {{ '/amount' = {{ {test} }} }}\n\
             reason = 'Too much.'\n"
        ))
        .load();
        let (code, cause) = paying(&project, fits);
        assert_eq!(code, Some(ErrorCode::Denied), "{test}");
        assert!(cause.unwrap().ends_with(": Too much."), "{test}");
        assert_ne!(paying(&project, other).0, Some(ErrorCode::Denied), "{test}");
    }
    for (test, fits, other) in [
        ("matches = '^a+$'", "aaa", "ab"),
        ("starts_with = '/etc'", "/etc/x", "/tmp"),
        ("equals = 'ann'", "ann", "Ann"),
    ] {
        let project =
            with(&format!("[[policy]]\neffect = 'deny'\nargs = {{ '/to' = {{ {test} }} }}\n"))
                .load();
        let code = |to: &str| paying(&project, json!({"amount": 1, "to": to})).0;
        assert_eq!(
            (code(fits), code(other) == Some(ErrorCode::Denied)),
            (Some(ErrorCode::Denied), false)
        );
        assert_ne!(paying(&project, json!({"amount": 1})).0, Some(ErrorCode::Denied));
    }
}

#[test]
fn roles_of_principals_tenants_and_claims_and_all_conditions_load() {
    let project = with(
        r#"
[[role]]
name = "trainee"
principals = ["intern"]
tenants = ["school"]
claims = { groups = ["trainees", "pupils"] }
[[policy]]
effect = "halt"
tool = "pay"
role = "trainee"
principal = ["intern", "bob"]
personality = "default"
iteration = { at_least = 2, at_most = 4 }
origin = "toolcrib.toml*"
model_message = "Stop."
[[policy]]
effect = "ask"
tool = "pay"
"#,
    )
    .load();
    let holders = project.policy().roles.holders("trainee").unwrap();
    assert_eq!(holders.principals.len() + holders.tenants.len(), 2);
    assert_eq!(holders.claims["groups"].len(), 2);
    let [halt, ask] = project.policy().rules.as_slice() else { panic!("two rules") };
    assert_eq!(halt.effect, toolcrib_core::Effect::Halt);
    assert_eq!(halt.model_message.as_deref(), Some("Stop."));
    assert_eq!(halt.when.principals.len(), 2);
    assert_eq!(&*halt.when.personalities[0], "default");
    assert_eq!(halt.tools.origins[0].as_str(), "toolcrib.toml*");
    let range = halt.when.iteration.unwrap();
    assert_eq!((range.at_least, range.at_most), (Some(2), Some(4)));
    assert_eq!(ask.effect, toolcrib_core::Effect::Ask);
}

#[test]
fn what_no_rule_can_mean_is_told_with_its_place_and_a_suggestion() {
    let folder = with(
        r#"
[[role]]
name = "a"
claims = {}
[[policy]]
effect = "dney"
personality = "defualt"
iteration = { at_lest = 3 }
[[policy]]
effect = "deny"
tool = "pay"
args = { "/amuont" = { greater_then = 3 }, "to" = { equals = "x" } }
[[policy]]
effect = "deny"
args = { "/x" = "y", "/y" = {}, "/z" = { exists = false, equals = 1 }, "/p" = { matches = "(" } }
mcp_server = "gti"
origin = "mcp:gti"
plugin = "calendar"
iteration = { at_least = 5, at_most = 3 }
[[policy]]
effect = "deny"
tool = "pay"
args = { "/amount" = { less_than = "3" }, "/to" = { one_of = [] } }
[[policy]]
effect = "deny"
tool = "pay"
args = {}
"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:24:10: `claims` is empty
        help: write for example groups = ["trainees"]
    toolcrib.toml:26:10: `effect` cannot be `dney`
        help: did you mean `deny`?
    toolcrib.toml:27:15: unknown personality `defualt`
        help: did you mean `default`?
    toolcrib.toml:28:13: `iteration` has no effect
        help: write for example { at_least = 3 }
    toolcrib.toml:28:15: unknown key `at_lest` in `iteration`
        help: did you mean `at_least`?
    toolcrib.toml:32:22: the condition contains no test
        help: write for example { exists = true }
    toolcrib.toml:32:24: unknown key `greater_then` in the test of `/amuont`
        help: did you mean `greater_than`?
    toolcrib.toml:32:44: `to` is not a valid JSON pointer; write `/` and the argument's name, such as `/path`
        help: did you mean "/to"?
    toolcrib.toml:35:17: unknown test of an argument
        help: write { equals = … }, or another of the tests one_of, matches, starts_with, exists, less_than, greater_than
    toolcrib.toml:35:29: the condition contains no test
        help: write for example { exists = true }
    toolcrib.toml:35:40: an absent argument cannot pass another test
        help: write `exists = false` alone, in a separate rule
    toolcrib.toml:35:91: `(` is not a valid regular expression: unclosed group
    toolcrib.toml:36:14: unknown MCP server `gti`
        help: no MCP servers exist
    toolcrib.toml:37:10: unknown MCP server `gti`
        help: no MCP servers exist
    toolcrib.toml:38:10: unknown plugin `calendar`
        help: no plugins exist
    toolcrib.toml:39:13: no iteration is from 5 to 3
    toolcrib.toml:43:36: `less_than` must be a number
    toolcrib.toml:43:62: `one_of` is an empty list
        help: write at least one value in it
    toolcrib.toml:47:8: `args` is empty
        help: write for example "/path" = { starts_with = "/etc" }
    "#);
}

#[test]
fn an_origin_names_a_hub_that_there_is() {
    let folder = with(
        r#"
[hub.crm]
url = "https://tools.example/"
key = []
ttl = "60s"
call = { method = "POST", url = "https://tools.example/{tool}" }
[[policy]]
effect = "deny"
origin = ["hub:crm", "hub:*", "hub:cmr"]
"#,
    );
    let problems = folder.problems().to_string();
    assert!(problems.contains("unknown hub `cmr`\n    help: did you mean `crm`?"), "{problems}");
    assert_eq!(problems.lines().count(), 2, "{problems}");
}

#[test]
fn words_that_no_model_reads_are_warned_about() {
    let folder = with(
        "[[policy]]\neffect = 'deny'\ntool = 'pay'\nmodel_message = 'no'\n\
         [[policy]]\neffect = 'allow'\ntool = 'pay'\nmodel_message = 'no'\n\
         [[policy]]\neffect = 'deny'\ntool = 'pay'\nargs = { '/to' = { exists = true } }\n\
         model_message = 'no'\n[[policy]]\neffect = 'ask'\ntool = 'pay'\nmodel_message = 'no'\n",
    );
    let warnings = folder.load().warnings().to_string();
    insta::assert_snapshot!(warnings, @r#"
    toolcrib.toml:24:17: warning: no model ever receives this: the rule hides its tools, so the model cannot call them
    toolcrib.toml:28:17: warning: no model ever receives this: the rule refuses nothing
    "#);
}
