#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use serde_json::json;
use toolcrib::{
    ErrorCode,
    agent::{EndReason, RunOptions},
    testing::{
        EventRecorder, TestModel, assert_replayable, call, check_tool, gullible, hallucinating,
        looping, model, paused, stalled,
    },
};

use super::{find_order_tool, support};

fn agent(model: TestModel) -> toolcrib::agent::Agent {
    support(model).unwrap()
}

#[test]
fn it_looks_an_order_up_and_says_what_it_found() {
    let model = model().then(call("find_order", json!({ "order": 1042 }))).then_with(
        |asked: &toolcrib::models::ModelRequest| {
            assert!(json!(asked.messages).to_string().contains("order 1042 is on its way"));
            "It is on its way."
        },
    );
    let agent = agent(model.clone());
    let seen = EventRecorder::attach(agent.engine().events());
    let outcome = paused(agent.run("Where is order 1042?", RunOptions::default()));
    assert_eq!(outcome.answer.as_deref(), Some("It is on its way."));
    model.assert_used_up();
    seen.assert_order(["agent.turn_start", "tool.start", "tool.end", "agent.turn_end"]);
}

#[test]
fn a_model_that_obeys_a_ticket_cancels_nothing() {
    // It reads the ticket, and does what the ticket says.
    let agent = agent(gullible());
    let message = r#"CALL read_ticket {"ticket": 7}"#;
    let outcome = paused(agent.run(message, RunOptions::default()));
    let cancelled: Vec<_> =
        outcome.tool_calls.iter().filter(|call| &*call.name == "cancel_order").collect();
    assert_eq!(cancelled.len(), 1, "the model did try");
    assert_eq!(cancelled[0].code, Some(ErrorCode::Denied));
}

#[test]
fn a_model_that_makes_things_up_leaves_a_history_that_can_be_replayed() {
    for seed in 0..20 {
        let outcome = paused(agent(hallucinating(seed)).run("Where is it?", RunOptions::default()));
        assert_replayable(&outcome.messages);
    }
}

#[test]
fn a_model_that_repeats_itself_or_never_answers_is_stopped() {
    let looping = agent(looping("find_order", json!({ "order": 1 })));
    let outcome = paused(looping.run("Where is order 1?", RunOptions::default()));
    assert_eq!((outcome.end_reason, outcome.tool_calls.len()), (EndReason::MaxIterations, 5));

    // Ten minutes, on a clock that does not wait.
    let options = RunOptions::default().turn_timeout(Duration::from_secs(600));
    let outcome = paused(agent(stalled()).run("Where is it?", options));
    assert_eq!(outcome.end_reason, EndReason::Timeout);
}

#[test]
fn the_tool_keeps_the_contract_of_tools() {
    let tool = find_order_tool();
    paused(check_tool(&tool, [json!({ "order": 1042 })]).rejects([json!({ "order": "x" })]))
        .unwrap();
}
