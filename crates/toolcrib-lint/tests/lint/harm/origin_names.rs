//! Names of one source that differ only in case.

use serde_json::json;
use toolcrib_lint::{LintTool, lint};

fn tool(source: &str, name: &str) -> LintTool {
    LintTool::new(name, "", json!({ "type": "object" })).from_source(source)
}

fn found(tools: &[LintTool]) -> Vec<String> {
    let found = lint(tools).findings.into_iter();
    found.filter(|found| found.rule == "confusable-name").map(|found| found.message).collect()
}

#[test]
fn names_of_one_source_that_differ_in_case_were_many_findings() {
    let names = ["mcp__git__log", "mcp__git__Log", "mcp__git__LOG", "mcp__git__lOg"];
    let found = found(&names.map(|name| tool("mcp:git", name)));
    assert_eq!(
        found,
        [
            "`mcp__git__log` and `mcp__git__Log`, `mcp__git__LOG`, `mcp__git__lOg` differ only in case"
        ]
    );
}

#[test]
fn names_of_two_sources_are_still_told_apart() {
    let found = found(&[tool("mcp:a", "find_order"), tool("mcp:b", "Find_Order")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("easily mixed up"), "{found:?}");
}
