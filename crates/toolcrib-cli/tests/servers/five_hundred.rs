//! `examples/five-hundred`: a task with 550 tools, of which four are in view.

use serde_json::Value;

use crate::support::Project;

const TASK: &str = "Why did the nightly pipeline of shop/checkout fail? Open an issue, and tell the \
    person on call.";

const IN_VIEW: [&str; 4] = ["who_is_on_call", "log_incident", "search_tools", "call_tool"];

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn a_task_is_solved_with_four_tools_in_view() {
    let project = Project::copy_of("five-hundred");
    let (code, run) = project.json(&["run", TASK]);
    assert_eq!(code, Some(0), "{}", run["error"]);
    assert!(run["answer"].as_str().unwrap().contains("I opened issue 318 and told Noor"));
    for menu in run["menus"].as_array().unwrap() {
        assert_eq!(names(&menu["offered"]), IN_VIEW);
    }
    let called = run["tool_calls"].as_array().unwrap().iter();
    let called: Vec<_> = called.map(|call| call["name"].as_str().unwrap()).collect();
    for name in ["mcp__gitlab__create_issue", "mcp__slack__slack_post_message", "log_incident"] {
        assert!(called.contains(&name), "{called:?}");
    }

    // What the model reads of the tools, of what it would read without the search.
    let (_, menu) = project.json(&["menu"]);
    assert!(menu["deferred"].as_array().unwrap().len() >= 500);
    let (read, unread) = (&menu["chars"], &run["menus"][0]["deferred_chars"]);
    let (read, unread) = (read.as_u64().unwrap(), unread.as_u64().unwrap());
    assert!(read * 20 < read + unread, "at least 95 % fewer: {read} of {}", read + unread);

    let outcome = project.toolcrib(&["run", "--fresh", TASK]);
    assert!(outcome.stderr.contains("characters: the definitions of 5"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("deferred tools in 7 requests"), "{}", outcome.stderr);
}

#[test]
fn a_tool_that_a_rule_denies_is_not_found_and_the_rule_is_named() {
    let project = Project::copy_of("five-hundred");
    let (code, found) =
        project.json(&["find", "delete a branch", "--expect", "mcp__gitlab__delete_branch"]);
    assert_eq!(code, Some(1));
    assert_eq!(found["expected"]["is"], "withheld");
    let ranked = found["found"].as_array().unwrap();
    assert!(!ranked.is_empty());
    assert!(ranked.iter().all(|found| !found["tool"].as_str().unwrap().contains("delete_")));
}
