//! Answers of vendors and servers that deviate, up to the project's tools and the user.

use serde_json::{Value, json};
use toolcrib_models::Vendor;
use toolcrib_testbed::Reply;

use crate::{
    model_faults::wire::{self, Answer},
    models::{Prepared, notes, reply},
    support::{Outcome, Project},
    terminal::Terminal,
};

const PROJECT: &str = r#"
policy_default = "allow"
[agent]
model = "script:s.toml"
[[tool]]
kind = "sql"
name = "now"
description = "Time."
read_only = true
statements = ["SELECT 'T' AS t"]
[[tool]]
kind = "sql"
name = "noon"
description = "Withheld."
read_only = true
statements = ["SELECT 12 AS hour"]
[[policy]]
effect = "deny"
tool = "noon"
"#;

fn project_with(more: &str) -> Project {
    notes(&format!("{PROJECT}{more}"))
}

fn project() -> Project {
    project_with("")
}

/// The texts that calls of `add` have inserted.
fn rows(project: &Project) -> Vec<String> {
    let database = rusqlite::Connection::open(project.state().join("d.db")).unwrap();
    let mut select = database.prepare("SELECT text FROM n ORDER BY id").unwrap();
    select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn run(project: &Project, server: &Prepared, args: &[&str]) -> Outcome {
    let mut command = server.command(project, &["run", "--no-session"]);
    command.args(args).arg("go").output().unwrap().into()
}

fn run_json(project: &Project, server: &Prepared, args: &[&str]) -> (Option<i32>, Value) {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    let outcome = run(project, server, &args);
    let json = serde_json::from_str(&outcome.stdout);
    (outcome.code, json.unwrap_or_else(|error| panic!("{error}: {outcome:?}")))
}

fn answers(vendor: Vendor, said: impl IntoIterator<Item = Answer>) -> Prepared {
    Prepared::new(vendor, said.into_iter().map(|said| reply(vendor, &said)).collect())
}

fn cut_off(mut said: Answer) -> Answer {
    said.is_cut = true;
    said
}

fn adding(text: &str) -> Answer {
    Answer::default().calling("a", "add", &[&json!({ "text": text }).to_string()])
}

#[test]
fn no_call_of_an_answer_that_reached_the_output_limit_is_made() {
    for vendor in Vendor::ALL {
        let mut cut = adding("whole").calling("b", "add", &["{\"text\":\"abc\"}"]);
        if [Vendor::OpenAi, Vendor::Anthropic].contains(&vendor) {
            cut = cut.calling("c", "add", &["{\"text\":\"ab"]);
        }
        let calls = cut.calls.len();
        let project = project();
        let server = answers(vendor, [cut_off(cut), Answer::text(&["FINAL"])]);
        let (code, run) = run_json(&project, &server, &[]);
        assert_eq!((code, &run["answer"]), (Some(0), &json!("FINAL")), "{vendor}: {run}");
        assert_eq!(rows(&project), [""; 0], "{vendor}");
        let made = run["tool_calls"].as_array().unwrap();
        assert_eq!(made.len(), calls, "{vendor}");
        for call in made {
            assert_eq!(call["code"], "input_invalid", "{vendor}: {call}");
        }
        let sent = server.requests()[1].json().unwrap().to_string();
        for part in ["reached the output limit", "shorter arguments", "several calls"] {
            assert_eq!(sent.matches(part).count(), calls, "{vendor}: {sent}");
        }
    }
}

#[test]
fn an_answer_that_reached_the_output_limit_is_not_a_success() {
    for vendor in Vendor::ALL {
        let project = project();
        let cut = || cut_off(Answer::text(&["The begin"]));
        let server = answers(vendor, [cut(), cut()]);
        let outcome = run(&project, &server, &[]);
        assert_eq!(outcome.code, Some(5), "{vendor}: {outcome:?}");
        assert_eq!(outcome.stdout, "The begin\n", "{vendor}");
        let error = "error: the answer is cut off: it reached the model's output limit";
        assert!(outcome.stderr.contains(error), "{vendor}: {}", outcome.stderr);
        let (code, run) = run_json(&project, &server, &[]);
        let found = [&run["stopped"], &run["error"]["code"], &run["stop"], &run["answer"]];
        assert_eq!(
            (code, json!(found)),
            (Some(5), json!(["cut_off", "answer_cut_off", "max_tokens", "The begin"])),
            "{vendor}"
        );
    }
}

#[test]
fn a_replay_of_a_cut_answer_makes_no_call_and_ends_in_the_same_way() {
    let vendor = Vendor::OpenAi;
    let project = project();
    let said = [cut_off(adding("whole")), cut_off(Answer::text(&["The begin"]))];
    let server = answers(vendor, said);
    let args = ["run", "--session", "s", "--model", "openai:m", "go"];
    let outcome: Outcome = server.set(&mut project.command(&args)).output().unwrap().into();
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    let replayed = project.toolcrib(&["replay"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert_eq!(rows(&project), [""; 0]);
}

#[test]
fn a_typed_answer_that_reached_the_output_limit_is_requested_again() {
    let vendor = Vendor::OpenAi;
    let project = project();
    project.write("number.json", "{\"type\": \"integer\"}");
    let schema = project.path().join("number.json");
    let args = ["--schema", schema.to_str().unwrap()];
    // The beginning of a number is a number.
    let server = answers(vendor, [cut_off(Answer::text(&["12"])), Answer::text(&["1234"])]);
    let (code, run) = run_json(&project, &server, &args);
    assert_eq!((code, &run["value"]), (Some(0), &json!(1234)), "{run}");
    let sent = server.requests()[1].json().unwrap().to_string();
    assert!(sent.contains("it is cut off at the output limit"), "{sent}");
    let server = answers(vendor, [0; 3].map(|_| cut_off(Answer::text(&["12"]))));
    let (code, run) = run_json(&project, &server, &args);
    assert_eq!((code, &run["error"]["code"]), (Some(1), &json!("answer_invalid")), "{run}");
}

#[test]
fn a_chat_says_that_an_answer_is_cut_off() {
    let vendor = Vendor::OpenAi;
    let project = project();
    let server = answers(vendor, [cut_off(Answer::text(&["The begin"]))]);
    let mut command = project.command(&["chat", "--model", "openai:m"]);
    let mut terminal = Terminal::start(server.set(&mut command), 100);
    terminal.wait_for("new session");
    terminal.send("go\r");
    terminal.wait_for("error: the answer is cut off");
    assert!(terminal.shown().contains("The begin"), "{}", terminal.shown());
}

#[test]
fn an_agent_reads_that_the_answer_of_its_child_is_cut_off() {
    let vendor = Vendor::OpenAi;
    let project = project_with("[[tool]]\nkind = \"task\"\n");
    let gives = Answer::default().calling("a", "task", &["{\"prompt\":\"Look.\"}"]);
    let said = [gives, cut_off(Answer::text(&["The begin"])), Answer::text(&["FINAL"])];
    let server = answers(vendor, said);
    let (code, run) = run_json(&project, &server, &[]);
    assert_eq!((code, &run["answer"]), (Some(0), &json!("FINAL")), "{run}");
    let result = run["tool_calls"][0]["value"].as_str().unwrap();
    assert!(result.contains("cut off at its output limit"), "{result}");
}

/// The last chunk has the stop reason and the whole call.
#[test]
fn a_call_that_a_server_repeats_is_made_once() {
    let fragment = |call: Value, reason: Value| {
        let delta = json!({ "tool_calls": [call] });
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        wire::frame(Vendor::OpenAi, &json!({ "choices": [choice] }))
    };
    let function = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
    for id in [json!("a"), Value::Null] {
        let stream = [
            fragment(
                json!({ "index": 0, "id": id, "function": function("add", "{\"te") }),
                Value::Null,
            ),
            fragment(
                json!({ "index": 0, "function": { "arguments": "xt\":\"x\"}" } }),
                Value::Null,
            ),
            fragment(
                json!({ "index": 0, "id": id, "function": function("add", "{\"text\":\"x\"}") }),
                json!("tool_calls"),
            ),
        ];
        let project = project();
        let replies = vec![
            Reply::sse().piece(stream.concat()),
            reply(Vendor::OpenAi, &Answer::text(&["FINAL"])),
        ];
        let server = Prepared::new(Vendor::OpenAi, replies);
        let outcome = run(&project, &server, &[]);
        assert_eq!((outcome.code, rows(&project)), (Some(0), vec!["x".to_owned()]), "{id}");
    }
}

#[test]
fn a_model_may_write_a_vendors_prefix_or_blanks_around_a_name() {
    for name in [
        " now",
        "now\n",
        "functions.now",
        "functions:now",
        "default_api.now",
        "default_api:now",
        "tools.now",
        "tools/now",
        " functions. now ",
    ] {
        for vendor in [Vendor::OpenAi, Vendor::Gemini] {
            let project = project();
            let calling = Answer::default().calling("a", name, &["{}"]);
            let server = answers(vendor, [calling, Answer::text(&["FINAL"])]);
            // It is also the tool that had to be called.
            let (code, run) = run_json(&project, &server, &["--tool-choice", "now"]);
            assert_eq!((code, &run["answer"]), (Some(0), &json!("FINAL")), "{name:?}: {run}");
            let call = &run["tool_calls"][0];
            assert_eq!((&call["name"], &call["ok"]), (&json!("now"), &json!(true)), "{name:?}");
            let sent = server.requests()[1].json().unwrap().to_string();
            assert!(!sent.contains("unusable_name"), "{name:?}: {sent}");
            assert!(!sent.contains("functions") && !sent.contains("default_api"), "{sent}");
        }
    }
}

#[test]
fn a_name_of_another_tool_is_never_redirected_and_near_offered_names_are_told() {
    // (called, part of the result, what no result contains)
    let cases = [
        ("functions.noon", "unknown tool", "did you mean `noon`"),
        ("noon", "unknown tool", "did you mean `noon`"),
        ("functions.nov", "did you mean `now`?", "noon"),
        ("nwo", "did you mean `now`?", "noon"),
        ("mcp__x__now", "unknown tool", "noon"),
        ("functions.functions.now", "unknown tool", "noon"),
        ("functionsnow", "unknown tool", "noon"),
        ("NOW", "did you mean `now`?", "noon"),
    ];
    let vendor = Vendor::OpenAi;
    for (name, part, never) in cases {
        let project = project();
        let calling = Answer::default().calling("a", name, &["{}"]);
        let server = answers(vendor, [calling, Answer::text(&["FINAL"])]);
        let (code, run) = run_json(&project, &server, &[]);
        assert_eq!(code, Some(0), "{name}: {run}");
        let call = &run["tool_calls"][0];
        assert_eq!(call["code"], "not_available", "{name}: {call}");
        let text = call["value"].as_str().unwrap().replace(&format!("`{name}`"), "");
        assert!(call["value"].as_str().unwrap().contains(part), "{name}: {call}");
        assert!(!text.contains(never), "{name}: {text}");
    }
    // Other doors need the exact name.
    let outcome = project().toolcrib(&["call", "functions.now"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("did you mean `now`?"), "{outcome:?}");
}

#[test]
fn the_policy_judges_the_tool_that_a_prefixed_name_calls() {
    let deny = "[[policy]]\neffect = \"deny\"\ntool = \"add\"\n\
        args = { \"/text\" = { equals = \"x\" } }\n";
    let vendor = Vendor::OpenAi;
    let calling = |name: &str| Answer::default().calling("a", name, &["{\"text\":\"x\"}"]);
    let results = ["add", "functions.add"].map(|name| {
        let project = project_with(deny);
        let server = answers(vendor, [calling(name), Answer::text(&["FINAL"])]);
        let (_, run) = run_json(&project, &server, &[]);
        assert_eq!(rows(&project), [""; 0]);
        let call = &run["tool_calls"][0];
        (call["name"].clone(), call["code"].clone(), call["value"].clone())
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0].1, "denied");
}

#[test]
fn call_tool_needs_the_exact_name_of_its_target() {
    let defer = "[tool_search]\ndefer_above = 1\n";
    let vendor = Vendor::OpenAi;
    for (target, rows_after) in [("add", 1), ("functions.add", 0), (" add", 0)] {
        let project = project_with(defer);
        let arguments = json!({ "tool": target, "arguments": { "text": "x" } }).to_string();
        let calling = Answer::default().calling("a", "functions.call_tool", &[&arguments]);
        let server = answers(vendor, [calling, Answer::text(&["FINAL"])]);
        let (code, run) = run_json(&project, &server, &[]);
        assert_eq!((code, rows(&project).len()), (Some(0), rows_after), "{target}: {run}");
    }
}

#[test]
fn a_project_keeps_tags_of_reasoning_in_an_answer() {
    let project =
        project_with("[model.r]\nvendor = \"openai\"\nmodel = \"m\"\nthink_tags = false\n");
    let server = answers(Vendor::OpenAi, [Answer::text(&["<think>hm</think>Hi."])]);
    let mut command = project.command(&["run", "--no-session", "--json", "--model", "r", "go"]);
    let outcome: Outcome = server.set(&mut command).output().unwrap().into();
    let run: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(run["answer"], "<think>hm</think>Hi.");
}
