//! `--personality`: a run that reaches no more than its personality.

use std::fs;

use serde_json::Value;

use crate::support::Project;

const PROJECT: &str = r#"
[agent]
model = "script:everyday.toml"
system = "You help."

[database.desk]
file = "desk.db"
seed = "seed.sql"

[[tool]]
kind = "sql"
name = "list_orders"
description = "Lists orders."
toolset = "orders"
read_only = true
statements = ["SELECT id FROM orders"]

[[tool]]
kind = "sql"
name = "drop_orders"
description = "Forgets all orders."
toolset = "danger"
statements = ["DELETE FROM orders"]

[[personality]]
name = "clerk"
model = "script:clerk.toml"
system = "You look orders up."
toolset = ["orders"]
"#;

fn project() -> Project {
    Project::of(&[
        ("toolcrib.toml", PROJECT),
        ("seed.sql", "CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1);"),
        ("everyday.toml", "[[rule]]\ntext = \"everyday\"\n"),
        ("clerk.toml", "[[rule]]\ntext = \"clerk\"\n"),
    ])
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn menu_and_call_are_limited_by_the_personality() {
    let project = project();
    let (_, open) = project.json(&["menu"]);
    assert_eq!(names(&open["offered"]), ["list_orders", "drop_orders"]);
    let (code, menu) = project.json(&["menu", "--personality", "clerk"]);
    assert_eq!(code, Some(0));
    assert_eq!(names(&menu["offered"]), ["list_orders"]);
    assert_eq!(menu["withheld"][0]["by"], "personality");

    let (code, refused) = project.json(&["call", "drop_orders", "--personality", "clerk"]);
    assert_eq!((code, &refused["code"]), (Some(1), &"not_available".into()), "{refused}");
    let (code, listed) = project.json(&["call", "list_orders", "--personality=clerk"]);
    assert_eq!((code, &listed["ok"]), (Some(0), &true.into()), "{listed}");
}

#[test]
fn a_run_has_the_model_and_the_events_the_name_of_its_personality() {
    let project = project();
    let (_, everyday) = project.json(&["run", "hello"]);
    assert_eq!(
        (&everyday["answer"], &everyday["model"]),
        (&"everyday".into(), &"script:everyday.toml".into())
    );
    let events = project.path().join("events.jsonl");
    let file = events.to_str().unwrap();
    let (code, clerk) = project.json(&["run", "hello", "--personality", "clerk", "--events", file]);
    assert_eq!(code, Some(0), "{clerk}");
    assert_eq!((&clerk["answer"], &clerk["model"]), (&"clerk".into(), &"script:clerk.toml".into()));
    let events = fs::read_to_string(events).unwrap();
    let start: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&start["type"], &start["personality"]),
        (&"agent.turn_start".into(), &"clerk".into())
    );

    // The model of the command line replaces every model of the project.
    let args = ["run", "hello", "--personality", "clerk", "--model", "script:everyday.toml"];
    assert_eq!(project.json(&args).1["answer"], "everyday");
}

#[test]
fn a_personality_with_a_model_runs_in_a_project_without_one() {
    let project = project();
    let without = PROJECT.replace("model = \"script:everyday.toml\"\n", "");
    project.write("toolcrib.toml", &without);
    let (code, run) = project.json(&["run", "hello", "--personality", "clerk"]);
    assert_eq!((code, &run["answer"]), (Some(0), &"clerk".into()), "{run}");
}

#[test]
fn an_unknown_personality_is_a_usage_error() {
    let project = project();
    for command in [&["menu"][..], &["call", "list_orders"], &["run", "x"], &["serve"]] {
        let args: Vec<_> = command.iter().chain(&["--personality", "klerk"]).copied().collect();
        let refused = project.toolcrib(&args);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let said = "unknown personality `klerk`; did you mean `clerk`?";
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let refused = project.toolcrib(&["menu", "--personality", "x"]);
    assert!(refused.stderr.contains("`default`, `clerk`"), "{}", refused.stderr);
}
