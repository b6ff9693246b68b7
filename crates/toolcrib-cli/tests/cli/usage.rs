//! Tokens and money: prices, sums over runs, budgets across processes.

use serde_json::{Value, json};

use crate::{live::SlowModel, model_faults::wire::Answer, support::Project};

const FILE: &str = r#"
prices = "prices.toml"
policy_default = "allow"
[agent]
model = "script:script.toml"
[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "echo"
args = ["seen"]
read_only = true
"#;

const SCRIPT: &str = r#"
[[rule]]
step = 1
calls = [{ tool = "look" }]
usage = { input_tokens = 1000, cached_input_tokens = 400, cache_write_tokens = 100, output_tokens = 20 }
[[rule]]
text = "I have seen it."
usage = { input_tokens = 1100, cached_input_tokens = 1000, output_tokens = 30 }
"#;

/// 500 x 2 + 400 x 0.2 + 100 x 2.5 + 20 x 10 and 100 x 2 + 1000 x 0.2 + 30 x 10 millionths.
const COST: f64 = 0.00223;

const PRICES: &str = r#"
[price."script:script.toml"]
input = 2
cached_input = 0.2
cache_write = 2.5
output = 10
"#;

fn project(more: &str) -> Project {
    let file = format!("{FILE}{more}");
    Project::of(&[("toolcrib.toml", &file), ("script.toml", SCRIPT), ("prices.toml", PRICES)])
}

fn run(project: &Project, who: &str, session: &str) -> Value {
    let (code, run) = project.json(&["run", "Look", "--as", who, "--session", session]);
    assert_eq!(code, Some(0), "{run}");
    run
}

/// The text without the day.
fn shown(project: &Project, args: &[&str]) -> String {
    let outcome = project.toolcrib(args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let text = format!("{}{}", outcome.stdout, outcome.stderr);
    regex::Regex::new(r"\d{4}-\d\d-\d\d").unwrap().replace_all(&text, "[day]").into_owned()
}

fn is_near(found: &Value, expected: f64) -> bool {
    found.as_f64().is_some_and(|found| (found - expected).abs() < 1e-9)
}

#[test]
fn tokens_and_money_are_summed_up_by_day_session_principal_model_and_tool() {
    let project = project("");
    let first = run(&project, "ann", "one");
    assert!(is_near(&first["usage"]["cost_usd"], COST), "{first}");
    assert_eq!(first["usage"]["cache_write_tokens"], 100);
    run(&project, "ann", "one");
    run(&project, "bob", "two");
    insta::assert_snapshot!(shown(&project, &["usage"]));
    insta::assert_snapshot!(shown(&project, &["usage", "--by", "principal"]));
    insta::assert_snapshot!(shown(&project, &["usage", "--by", "model"]));
    insta::assert_snapshot!(shown(&project, &["usage", "--by", "tool", "--principal", "bob"]));

    let (_, all) = project.json(&["usage", "--by", "session", "--since", "2020-01-01"]);
    assert_eq!((&all["by"], &all["since"]), (&json!("session"), &json!("2020-01-01")));
    let lines = all["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    let of_one = lines.iter().find(|line| line["name"] == first["session"]).unwrap();
    assert!(is_near(&of_one["cost_usd"], 2.0 * COST), "{of_one}");
    assert_eq!((&of_one["model_requests"], &of_one["calls"]), (&json!(4), &json!(2)));
    assert!(is_near(&all["total"]["cost_usd"], 3.0 * COST), "{all}");
    assert_eq!(all["total"]["input_tokens"], 3 * 2_100);

    let session = first["session"].as_str().unwrap();
    for (args, requests) in [
        (vec!["--session", "one", "--principal", "ann"], 4),
        (vec!["--session", session], 4),
        (vec!["--principal", "bob"], 2),
        (vec!["--principal", "eve"], 0),
        (vec!["--model", "script:script.toml"], 6),
        (vec!["--model", "openai:gpt-5"], 0),
        (vec!["--tenant", "t"], 0),
        (vec!["--since", "0d"], 6),
    ] {
        let (_, found) = project.json(&[&["usage"], &args[..]].concat());
        assert_eq!(found["total"]["model_requests"], requests, "{args:?}: {found}");
    }
    let none = project.toolcrib(&["usage", "--session", "three"]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("there is no session `three`"), "{}", none.stderr);

    // The sums outlive the session.
    assert_eq!(project.toolcrib(&["sessions", "delete", "two", "--as", "bob"]).code, Some(0));
    let (_, found) = project.json(&["usage", "--principal", "bob"]);
    assert!(is_near(&found["total"]["cost_usd"], COST), "{found}");
}

#[test]
fn without_a_price_there_is_no_cost_and_the_table_can_be_replaced() {
    let project = project("");
    let model = SlowModel::saying(&[
        Answer::text(&["One."]),
        Answer::text(&["Two."]),
        Answer::text(&["Three."]),
    ]);
    (0..40).for_each(|_| model.open());
    let run = || -> Value {
        let out = model.command(&project, &["run", "Hi", "--json"]).output().unwrap();
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let first = run();
    assert_eq!(
        (&first["stopped"], &first["usage"]["cost_usd"]),
        (&json!("answered"), &Value::Null)
    );
    let (_, usage) = project.json(&["usage", "--by", "model"]);
    let line = &usage["lines"][0];
    assert_eq!((&line["name"], &line["cost_usd"]), (&json!("openai:test"), &Value::Null));
    assert_eq!((&line["unknown_costs"], &line["known_cost_usd"]), (&json!(1), &json!(0.0)));

    project.write("prices.toml", "[price.\"openai:test\"]\ninput = 100\noutput = 100\n");
    let priced = run();
    let tokens = &priced["usage"];
    let sum = tokens["input_tokens"].as_u64().unwrap() + tokens["output_tokens"].as_u64().unwrap();
    assert!(sum > 0 && is_near(&tokens["cost_usd"], sum as f64 / 1e4), "{priced}");
    // The project's own price has precedence.
    project
        .write("toolcrib.toml", &format!("{FILE}[price.\"openai:test\"]\ninput = 0\noutput = 0\n"));
    assert_eq!(run()["usage"]["cost_usd"], 0.0);

    // A sum with an unknown part is unknown.
    let (_, usage) = project.json(&["usage"]);
    assert_eq!(usage["total"]["cost_usd"], Value::Null);
    assert!(is_near(&usage["total"]["known_cost_usd"], sum as f64 / 1e4), "{usage}");
    let text = shown(&project, &["usage"]);
    assert!(text.contains("unknown cost of 1 request; $"), "{text}");
}

#[test]
fn a_budget_counts_all_processes_and_ends_a_run_with_an_answer() {
    let project =
        project("[budget.day]\nmax_cost_usd = 0.005\n[budget.principal]\nmax_tokens = 4300\n");
    run(&project, "ann", "one");
    run(&project, "ann", "one");
    let spent = project.toolcrib(&["run", "Look", "--as", "ann"]);
    assert_eq!(spent.code, Some(1), "{}", spent.stdout);
    let said = "the budget is spent: 4300 tokens per day of this principal";
    assert!(spent.stdout.contains(said), "{}", spent.stdout);
    assert!(spent.stderr.contains(&format!("error: {said}")), "{}", spent.stderr);
    // Another principal may go on, and its second request is the last of the day.
    let (code, last) = project.json(&["run", "Look", "--as", "bob", "--no-session"]);
    assert_eq!(code, Some(1), "{last}");
    assert_eq!(
        (&last["stopped"], &last["error"]["code"]),
        (&json!("limit_reached"), &json!("limit_reached"))
    );
    let answer = last["answer"].as_str().unwrap();
    assert!(answer.contains("0.005 US dollars per day of all principals"), "{answer}");
    assert!(answer.contains("I made 1 call; its result is in the conversation"), "{answer}");
    assert_eq!(last["tool_calls"][0]["ok"], true, "{last}");

    let (_, usage) = project.json(&["usage", "--principal", "ann"]);
    assert_eq!(
        (&usage["budget"][1]["of"], &usage["budget"][1]["max_tokens"]),
        (&json!("ann"), &json!(4300))
    );
    assert!(usage["budget"][0]["cost_usd"].as_f64() > Some(0.005), "{usage}");
    let (_, trace) = project.json(&["trace", "--as", "ann"]);
    let events = trace.to_string();
    assert!(
        events.contains("agent.limit_reached") && events.contains("budget.principal.max_tokens")
    );
    assert_eq!(trace["end"]["stopped"], "limit_reached");
    // A replay from the journal costs nothing.
    let replay =
        project.toolcrib(&["replay", &format!("{}/1", run_name(&project, "ann")), "--as", "ann"]);
    assert_eq!(replay.code, Some(0), "{}{}", replay.stdout, replay.stderr);
}

/// The first session of a principal.
fn run_name(project: &Project, who: &str) -> String {
    let (_, runs) = project.json(&["runs", "--as", who]);
    let runs = runs["runs"].as_array().unwrap().clone();
    runs.last().unwrap()["session"].as_str().unwrap().to_owned()
}

#[test]
fn invalid_prices_and_limits_that_cannot_be_kept_are_refused_at_load() {
    let project = Project::of(&[
        (
            "toolcrib.toml",
            "prices = 'prices.toml'\n[agent]\nmodel = 'openai:gpt-5'\n[limits]\nmax_cost_usd = 1\n\
             [budget.day]\nmax_cost_usd = 0\nmax_token = 5\n[budget.principal]\nmax_cost_usd = 2\n\
             [price.'openai:gpt-4']\ninput = -1\n",
        ),
        ("prices.toml", "[price.a]\ninput = 1\noutput = 'much'\n[prices.b]\ninput = 1\n"),
    ]);
    let check = project.toolcrib(&["check"]);
    assert_eq!(check.code, Some(2));
    insta::assert_snapshot!(check.stderr);
    project.write(
        "toolcrib.toml",
        "[agent]\nmodel = 'openai:gpt-5'\n[limits]\nmax_cost_usd = 1\n\
         [price.'openai:gpt-5']\ninput = 1\noutput = 8\n",
    );
    assert_eq!(project.toolcrib(&["check"]).code, Some(0));
}

#[test]
fn a_page_has_the_same_bars_by_day_model_tool_and_principal_without_script() {
    let project = project("[budget.day]\nmax_tokens = 100000\n");
    run(&project, "ann", "one");
    run(&project, "<b>bob</b>", "two");
    let path = project.path().join("usage.html");
    let file = path.to_str().unwrap();
    assert_eq!(project.toolcrib(&["usage", "--html", file]).code, Some(0));
    let page = std::fs::read_to_string(&path).unwrap();
    let has = ["By day", "By model", "By tool", "By principal", "script:script.toml", ">look<br>"];
    for text in has.into_iter().chain(["of 100,000 tokens", "&lt;b&gt;bob", "aria-label=\"100%\""])
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    for absent in ["<script", "http://", "https://", " style=", "<link", "<img", "<b>bob"] {
        assert!(!page.contains(absent), "{absent}: {page}");
    }
    let again = project.toolcrib(&["usage", "--html", file]);
    assert!(again.code == Some(2) && again.stderr.contains("already exists"), "{}", again.stderr);
    let both = project.toolcrib(&["usage", "--html", file, "--by", "tool"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}
