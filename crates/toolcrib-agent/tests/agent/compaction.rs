//! A conversation that exceeds the context window.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_agent::{Agent, EndReason, RunError, RunOptions, Session};
use toolcrib_core::{Message, ModelErrorClass, ModelRequest, SessionStore as _, ToolContext};
use toolcrib_store::SqliteStore;
use toolcrib_testing::{Answer, EventRecorder, TestModel, assert_replayable, model};

use crate::{
    sessions::new,
    support::{agent, builder, call, calls, says, skills},
};

/// The number of characters that the model's window has.
const WINDOW: usize = 3_000;

fn size(request: &ModelRequest) -> usize {
    let of = |message: &Message| match message {
        Message::User { text, .. }
        | Message::Assistant { text, .. }
        | Message::Tool { text, .. } => text.len(),
        _ => 0,
    };
    request.messages.iter().map(of).sum()
}

/// Reads pages until it has read all, as far as its window permits it.
fn reader(pages: usize) -> TestModel {
    model().always_with(move |request: &ModelRequest| {
        if size(request) > WINDOW {
            return Answer::text("").fails(ModelErrorClass::ContextOverflow, "too long");
        }
        let mut results = request.messages.iter().filter_map(|message| match message {
            Message::Tool { text, .. } => {
                text.strip_prefix("page ")?.split(' ').next()?.parse().ok()
            }
            _ => None,
        });
        let last: usize = results.next_back().unwrap_or_default();
        if last == pages {
            return says("All read.");
        }
        calls([call(&format!("p{}", last + 1), "read", json!({ "page": last + 1 }))])
    })
}

fn reading(model: &TestModel) -> Agent {
    let read = builder("read")
        .handler(|args: Value, _: ToolContext| async move {
            format!("page {} {}", args["page"], "x".repeat(500))
        })
        .unwrap();
    agent(model).tool(read).max_iterations(40).build().unwrap()
}

#[tokio::test]
async fn the_oldest_results_are_left_out_when_the_window_is_full_and_not_before() {
    let fits = reader(4);
    let outcome = reading(&fits).run("Read all", RunOptions::default()).await;
    assert_eq!(outcome.messages.len(), 1 + 2 * 4 + 1);

    let long = reader(20);
    let run = reading(&long).run("Read all", RunOptions::default());
    let seen = EventRecorder::new();
    run.on("agent.context_compacted", seen.listener()).unwrap();
    let outcome = run.await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    assert_eq!(outcome.tool_calls.len(), 20, "each page is read once");
    let events = seen.json_of("agent.context_compacted");
    assert!(events.len() >= 3, "{events:?}");
    for event in &events {
        assert!(event["bytes_after"].as_u64() < event["bytes_before"].as_u64(), "{event}");
    }
    assert_replayable(&outcome.messages);
    assert_eq!(outcome.messages[0], Message::user("Read all"));
    let notices = outcome.messages.iter().filter_map(Message::as_notice);
    assert!(notices.clone().count() >= 3);
    assert!(notices.into_iter().all(|notice| notice.starts_with("The context window was full.")));
}

#[tokio::test]
async fn a_session_keeps_everything_and_sends_the_rest_also_after_a_restart() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let session = Session::create(store.clone(), new()).await.unwrap();
    let id = Arc::clone(session.id());
    let long = reader(20);
    let outcome = reading(&long).run("Read all", RunOptions::default().session(&session)).await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    session.close().await.unwrap();
    let stored = store.read(&new().owner, &id).unwrap();
    let results = stored.messages.iter().filter(|one| matches!(one.message, Message::Tool { .. }));
    assert_eq!(results.count(), 20, "all results are in the store");
    let sent = stored.messages.iter().filter(|one| !one.left_out);
    let sent: Vec<_> = sent.map(|one| one.message.clone()).collect();
    assert_eq!(sent, *outcome.messages);

    // Another process, whose model uses an id again that was left out.
    let again = model()
        .then(calls([call("p1", "read", json!({ "page": 99 }))]))
        .always(says("Read once more."));
    let session = Session::open(store.clone(), &new().owner, &id).await.unwrap();
    let next = reading(&again).run("And?", RunOptions::default().session(&session)).await;
    assert_eq!(next.messages[..sent.len()], sent[..]);
    assert_replayable(&next.messages);
    assert_ne!(&*next.tool_calls[0].call_id, "p1");
    session.close().await.unwrap();
    assert_eq!(store.read(&new().owner, &id).unwrap().calls.len(), 21);
}

#[tokio::test]
async fn the_users_words_and_skills_stay_and_what_cannot_be_made_smaller_fails() {
    let long = "x".repeat(2 * WINDOW);
    let full = reader(1);
    let outcome = reading(&full).run(long.as_str(), RunOptions::default()).await;
    let error = outcome.error.unwrap();
    assert_eq!((error.code, outcome.end_reason), (RunError::MODEL_FAILED, EndReason::Failed));
    assert_eq!(error.class, Some(ModelErrorClass::ContextOverflow));
    assert_eq!(outcome.messages.len(), 1, "nothing was left out in vain");

    let skilled = model()
        .then(calls([call("s", "read_skill", json!({ "id": "billing" }))]))
        .then(calls([call("a", "read", json!({ "page": 1 }))]))
        .then(calls([call("b", "read", json!({ "page": 2 }))]))
        .then(Answer::text("").fails(ModelErrorClass::ContextOverflow, "too long"))
        .always(says("Done."));
    let read = builder("read")
        .handler(|args: Value, _: ToolContext| async move {
            format!("{} {}", args["page"], "x".repeat(900))
        })
        .unwrap();
    let agent = agent(&skilled).tool(read).skills(skills([("billing", &["read"][..])]));
    let outcome = agent.build().unwrap().run("Go", RunOptions::default()).await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    let texts: Vec<_> = outcome
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { call_id, .. } => Some(call_id.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["s", "b"], "the skill and the last result stay");
    assert_replayable(&outcome.messages);
}
