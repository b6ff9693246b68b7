//! Limits of a turn: how each ends it, and what is said.

use serde_json::json;
use toolcrib_agent::{AgentBuilder, EndReason, RunError, RunOptions, RunOutcome, TurnLimits};
use toolcrib_core::{ErrorCode, Message, Policy, Rule};
use toolcrib_testing::{TestModel, assert_replayable, model};

use crate::support::{agent, call, calls, says, tool};

const NONE: TurnLimits = TurnLimits::NONE;

/// A model that calls `t` and `u` in each of some responses, with other arguments each time.
fn restless(responses: usize) -> TestModel {
    let mut model = model();
    for n in 0..responses {
        let (t, u) = (format!("t{n}"), format!("u{n}"));
        model =
            model.then(calls([call(&t, "t", json!({ "n": n })), call(&u, "u", json!({ "n": n }))]));
    }
    model.always(says("That is all I have."))
}

async fn run(model: &TestModel, change: impl FnOnce(AgentBuilder) -> AgentBuilder) -> RunOutcome {
    let agent = change(agent(model).tool(tool("t")).tool(tool("u"))).build().unwrap();
    let outcome = agent.run("Go", RunOptions::default()).await;
    assert_replayable(&outcome.messages);
    outcome
}

fn error(outcome: &RunOutcome) -> &str {
    assert_eq!(outcome.end_reason, EndReason::LimitReached, "{outcome:?}");
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(error.code, RunError::LIMIT_REACHED);
    &error.message
}

/// The calls that ran, and those that were refused.
fn made(outcome: &RunOutcome) -> (usize, usize) {
    let refused = outcome.tool_calls.iter().filter(|call| call.code == Some(ErrorCode::Denied));
    let refused = refused.count();
    (outcome.tool_calls.len() - refused, refused)
}

#[tokio::test]
async fn calls_beyond_a_limit_are_refused_and_the_model_answers_with_what_it_has() {
    let cases = [
        (TurnLimits { max_calls: Some(3), ..NONE }, 2, (3, 1), "3 calls"),
        (TurnLimits { max_calls_per_tool: Some(2), ..NONE }, 3, (4, 2), "2 calls of `t`"),
    ];
    for (limits, responses, expected, text) in cases {
        let model = restless(responses);
        let outcome = run(&model, |agent| agent.turn_limits(limits.clone())).await;
        assert!(error(&outcome).ends_with(text), "{}", error(&outcome));
        assert_eq!(made(&outcome), expected, "{limits:?}");
        assert_eq!(outcome.answer.as_deref(), Some("That is all I have."));
        let requests = model.requests();
        let last = requests.last().unwrap();
        let told = last.messages.last().and_then(Message::as_notice).unwrap();
        assert!(told.contains(text) && told.contains("Answer now"), "{told}");
        assert_eq!(last.tool_choice, toolcrib_core::ToolChoice::None);
    }
}

#[tokio::test]
async fn a_row_of_identical_calls_ends_and_others_do_not_count() {
    let same = || calls([call("", "t", json!({ "a": 1, "b": 2 }))]);
    let limits = TurnLimits { max_identical_calls: Some(2), ..NONE };
    let stuck = model().then(same()).then(same()).then(same()).always(says("I give up."));
    let outcome = run(&stuck, |agent| agent.turn_limits(limits.clone())).await;
    assert!(error(&outcome).contains("2 identical calls of `t` in a row"));
    assert_eq!((made(&outcome), outcome.answer.as_deref()), ((2, 1), Some("I give up.")));
    let other = calls([call("", "u", json!({}))]);
    let moving = model().then(same()).then(same()).then(other).then(same()).always(says("Done."));
    let outcome = run(&moving, |agent| agent.turn_limits(limits)).await;
    assert_eq!(outcome.end_reason, EndReason::Answered);
}

#[tokio::test]
async fn denials_end_a_turn() {
    // Without an approver such a call is denied.
    let policy = Policy::of([Rule::ask("asks").tools(["t"])]);
    let limits = TurnLimits { max_denials: Some(2), ..NONE };
    let outcome = run(&restless(2), |agent| agent.turn_limits(limits).policy(policy)).await;
    assert!(error(&outcome).ends_with("2 denied calls"));
}

#[tokio::test]
async fn at_a_limit_of_cost_nothing_more_is_requested_and_the_answer_says_so() {
    let cost = TurnLimits { max_cost_usd: Some(0.4), ..NONE };
    let tokens = TurnLimits { max_tokens: Some(20), ..NONE };
    for (limits, text) in [(cost, "0.4 US dollars (0.5000 were spent)"), (tokens, "20 tokens (24")]
    {
        let model = restless(3);
        let outcome = run(&model, |agent| agent.turn_limits(limits)).await;
        assert!(error(&outcome).contains(text), "{}", error(&outcome));
        // The calls of the second response are not made.
        assert_eq!((model.requests().len(), made(&outcome)), (2, (2, 2)));
        let answer = outcome.answer.unwrap();
        assert!(answer.starts_with("I stopped before I had an answer"), "{answer}");
        assert_eq!(outcome.messages.last(), Some(&Message::assistant(answer, [])));
    }
}
