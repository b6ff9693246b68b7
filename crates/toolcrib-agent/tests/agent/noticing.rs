//! Notices to a model about failed sources, and their position in the conversation.

use serde_json::json;
use toolcrib_agent::{Agent, EndReason, RunOptions};
use toolcrib_core::{Message, static_tools};
use toolcrib_engine::OnFailure;
use toolcrib_testing::{
    Answer, Fault, FaultyProvider, TestModel, assert_replayable, faulty, model,
};

use crate::support::{agent, call, calls, says, tool};

fn down() -> Fault {
    Fault::Error("connection refused: token hunter22".into())
}

/// An agent whose source has the given faults, one per listing.
fn with(model: &TestModel, faults: impl IntoIterator<Item = Fault>, on: OnFailure) -> Agent {
    let hub = faults.into_iter().fold(faulty(static_tools([tool("remote")])), FaultyProvider::then);
    agent(model)
        .tool(tool("own"))
        .engine(|engine| engine.provider_with(hub.provider(), on))
        .build()
        .unwrap()
}

fn step(id: &str) -> Answer {
    calls([call(id, "own", json!({})), call(&format!("{id}2"), "own", json!({}))])
}

/// A conversation as one word per message, with the texts of notices.
fn shape(messages: &[Message]) -> Vec<&str> {
    let words = messages.iter().map(|message| match message {
        Message::User { text, .. } => message.as_notice().unwrap_or(text),
        Message::Assistant { .. } => "assistant",
        _ => "result",
    });
    words.collect()
}

const OMITTED: &str = "The tools of `faulty` cannot be used at the moment.";
const STALE: &str = "The tools of `faulty` may not work at the moment.";
const WELL: &str = "All offered tools work again.";

#[tokio::test]
async fn a_model_is_told_when_a_source_goes_and_when_it_comes_back() {
    let model = model().then(step("a")).then(step("b")).then(step("c")).always(says("Done."));
    let agent = with(&model, [Fault::None, down(), down(), Fault::None], OnFailure::Omit);
    let outcome = agent.run("Go", RunOptions::default()).await;
    assert_eq!(outcome.end_reason, EndReason::Answered);
    let step = ["assistant", "result", "result"];
    let story = [&["Go"][..], &step, &[OMITTED], &step, &step, &[WELL], &["assistant"]].concat();
    assert_eq!(shape(&outcome.messages), story);
    assert_replayable(&outcome.messages);
    // Sent messages stay a prefix of later requests.
    let sent: Vec<_> = model.requests().iter().map(|r| r.messages.len()).collect();
    assert_eq!(sent, [1, 5, 8, 12]);
    for request in model.requests() {
        assert!(outcome.messages.starts_with(&request.messages));
    }
    assert!(!format!("{:?}", outcome.messages).contains("refused"), "the cause is the operator's");
}

#[tokio::test]
async fn a_notice_in_the_history_is_not_repeated_by_the_next_run() {
    let model = model().always(says("Done."));
    let agent = with(&model, [down(), down(), Fault::None, Fault::None], OnFailure::Omit);
    let mut history = Vec::new();
    for _ in 0..4 {
        let options = RunOptions::default().history(history);
        history = agent.run("Go", options).await.messages.to_vec();
    }
    let turn = ["Go", "assistant"];
    let story = [&["Go", OMITTED, "assistant"][..], &turn, &["Go", WELL, "assistant"], &turn];
    assert_eq!(shape(&history), story.concat());
}

#[tokio::test]
async fn a_model_is_told_that_a_listing_is_old() {
    let model = model().then(step("a")).always(says("Done."));
    let agent = with(&model, [Fault::None, down()], OnFailure::Stale);
    let outcome = agent.run("Go", RunOptions::default()).await;
    let story = ["Go", "assistant", "result", "result", STALE, "assistant"];
    assert_eq!(shape(&outcome.messages), story);
    assert_eq!(outcome.menus[0], outcome.menus[1]);
}
