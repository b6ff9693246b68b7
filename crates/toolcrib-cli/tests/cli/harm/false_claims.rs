//! Untrue statements about counts, patterns and costs.

use serde_json::{Value, json};

use super::faults::project;
use crate::support::Project;

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

#[test]
fn a_result_without_its_data_was_a_whole_one() {
    let declared = r#"
policy_default = "allow"
[database.d]
file = "d.db"
seed = "seed.sql"
[[tool]]
kind = "sql"
name = "count"
description = "Counts."
read_only = true
max_rows = 5000
max_result_chars = 8000
statements = ["WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < :n) SELECT n FROM c"]
[tool.params]
n = { type = "integer" }
[[tool]]
kind = "command"
name = "write"
description = "Writes."
max_result_chars = 8000
program = "head"
args = ["-c", "{n}", "seed.sql"]
inherit_env = ["PATH"]
[tool.params]
n = { type = "integer" }
"#;
    let seed = format!("CREATE TABLE a (x); -- {}", "x".repeat(60_000));
    let project = Project::of(&[("toolcrib.toml", declared), ("seed.sql", &seed)]);
    let (code, whole) = project.json(&["call", "count", "n=3"]);
    let rows = whole["structured"]["rows"].as_array().map(Vec::len);
    assert_eq!((code, rows, &whole["truncated"]), (Some(0), Some(3), &Value::Null), "{whole}");

    let (code, cut) = project.json(&["call", "count", "n=4000"]);
    assert_eq!(code, Some(0), "{cut}");
    let truncated = &cut["truncated"];
    assert_eq!((&truncated["value"], &truncated["structured"]), (&json!(true), &json!(true)));
    if cut["structured"].is_null() {
        assert!(truncated["structured_chars"].as_u64() > Some(20_000), "{truncated}");
    }
    assert!(truncated["help"].as_str().unwrap().contains("max_result_chars"), "{truncated}");

    let (_, cut) = project.json(&["call", "write", "n=50000"]);
    assert_eq!(cut["truncated"]["structured"], json!(true), "its texts are cut: {cut}");
    assert_eq!(project.json(&["call", "write", "n=500"]).1["truncated"], Value::Null);
}

#[test]
fn warnings_of_imported_files_were_missing_in_json() {
    let file = super::faults::file(&json!({ "autoApprove": ["flood"] }), &json!({}));
    for args in [&["mcp", "list"] as &[&str], &["menu"], &["tools"], &["mcp", "test", "f"]] {
        let mut command = crate::support::toolcrib();
        let import = ["--import", "file.json", "--allow-stray-children", "--json"];
        let output = command.args(args).args(import).current_dir(file.path()).output().unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let warnings = printed["warnings"].as_array().unwrap();
        let told = |one: &Value| one["message"].as_str().unwrap().contains("autoApprove");
        assert!(warnings.iter().any(told), "{args:?}: {printed}");
    }
}
