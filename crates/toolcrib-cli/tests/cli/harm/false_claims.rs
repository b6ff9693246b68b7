//! What was said and was not so: of outputs, counts, patterns and costs.

use std::{process::Command, sync::Arc};

use serde_json::{Value, json};
use toolcrib_models::ScriptedModel;
use toolcrib_testbed::{ModelServer, Protocol};

use super::faults::{Client, project};
use crate::support::Project;

#[test]
fn an_output_that_breaks_its_schema_was_a_good_result() {
    let project = project("");
    for (tool, problem) in [("breaks", "`sum`"), ("omits", "there is no structured data")] {
        let (code, called) = project.json(&["call", &format!("mcp__f__{tool}")]);
        assert_eq!((code, &called["code"]), (Some(1), &json!("outcome_unknown")), "{called}");
        assert!(called["value"].as_str().unwrap().contains(problem), "{called}");
        assert_eq!(called["structured"], Value::Null);
        let result = Client::of(&project).call(tool).0["result"].clone();
        assert_eq!(result["isError"], json!(true), "{result}");
        assert_eq!(result["structuredContent"], Value::Null);
    }
    let result = Client::of(&project).call("keeps").0["result"].clone();
    assert_eq!(result["structuredContent"], json!({ "sum": 5 }), "{result}");
}

#[test]
fn a_project_of_servers_was_said_to_have_no_tools() {
    let project = project("");
    let checked = project.toolcrib(&["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert!(checked.stdout.contains("0 declared tools"), "{}", checked.stdout);
    assert!(checked.stdout.contains("the tools of 1 MCP server are not counted"));
    assert_eq!(project.json(&["check"]).1["sources_not_asked"], json!(1));
    let without = Project::of(&[("toolcrib.toml", "name = 'none'")]).toolcrib(&["check"]);
    assert!(!without.stdout.contains("not counted"), "{}", without.stdout);
}

#[test]
fn a_pattern_that_matches_nothing_was_silent() {
    let project = project("exclude = ['flod', 'zeta', 'nosuch_*']\ninclude = ['*', 'mcp__f__ids']");
    for args in [["mcp", "list"].as_slice(), &["mcp", "test", "f"], &["menu"], &["tools"]] {
        let told = project.toolcrib(args).stderr;
        assert!(told.contains("`flod` in `exclude`"), "{args:?}: {told}");
        assert!(told.contains("did you mean `flood`?"), "{args:?}: {told}");
        assert!(told.contains("`nosuch_*` in `exclude`"), "{args:?}: {told}");
        assert!(told.contains("`mcp__f__ids` in `include`"), "{args:?}: {told}");
        assert!(!told.contains("`zeta`") && !told.contains("`*`"), "{args:?}: {told}");
    }
    let listed = project.json(&["mcp", "test", "f"]).1;
    assert_eq!(listed["unmatched"].as_array().unwrap().len(), 3, "{listed}");
    let personality = "[[personality]]\nname = 'p'\nexclude = ['mcp__f__nosuch*', 'mcp__f__z*']";
    let told = super::faults::project(personality).toolcrib(&["tools"]).stderr;
    assert!(told.contains("`mcp__f__nosuch*` in `exclude` of personality p"), "{told}");
    assert!(!told.contains("z*"), "{told}");
}

#[test]
fn a_real_model_was_said_to_cost_nothing() {
    let script = "[[rule]]\nuser = '.*'\ntext = 'done'\n";
    let project = Project::of(&[("toolcrib.toml", "name = 'none'"), ("script.toml", script)]);
    let model = Arc::new(ScriptedModel::from_toml("script:script.toml", script).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = ModelServer::builder(model).key("key-01234567").model_name("m").start();
    let server = runtime.block_on(server).unwrap();
    let cost = |model: &str, change: &dyn Fn(&mut Command)| {
        let mut command = project.command(&["run", "go", "--json", "--model", model]);
        change(&mut command);
        let output = command.output().unwrap();
        let run: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(run["answer"], json!("done"), "{run}");
        run["usage"]["cost_usd"].clone()
    };
    for (protocol, model, url, key) in [
        (Protocol::OpenAi, "openai:m", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        (Protocol::Anthropic, "anthropic:m", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        (Protocol::Gemini, "gemini:m", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
        (Protocol::Ollama, "ollama:m", "OLLAMA_HOST", "OLLAMA_API_KEY"),
    ] {
        let at = server.base_url(protocol);
        let set = |command: &mut Command| {
            command.env(url, &at).env(key, "key-01234567");
        };
        assert_eq!(cost(model, &set), Value::Null, "{model}");
    }
    assert_eq!(cost("script:script.toml", &|_| {}), json!(0.0));
}

#[test]
fn a_rule_about_costs_that_nobody_knows_was_accepted_in_silence() {
    let rule = "[[reliability]]\nwhen = { cost_usd_below = 1.0 }\nthen = 'retry'\n";
    let with = |agent: &str| {
        let project = Project::of(&[("toolcrib.toml", &format!("{agent}\n{rule}"))]);
        project.write("script.toml", "[[rule]]\nuser = '.*'\ntext = 'ok'\n");
        project.toolcrib(&["check"]).stderr
    };
    let told = with("[agent]\nmodel = 'openai:gpt-5'");
    assert!(told.contains("cost_usd_below") && told.contains("tokens_below"), "{told}");
    let told = with("[agent]\nmodel = 'script:script.toml'");
    assert!(!told.contains("cost_usd_below"), "{told}");
}
