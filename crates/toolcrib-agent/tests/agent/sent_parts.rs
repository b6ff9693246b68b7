//! Requests of a session are written with the parts that were first sent.

use std::sync::Arc;

use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib_agent::{Agent, RunOptions, Session};
use toolcrib_core::{
    Digest, Message, Model, ModelChunk, ModelRequest, ModelResponse, ModelStream, SentPart,
    SessionStore as _, Tool,
};
use toolcrib_engine::Redactor;
use toolcrib_store::SqliteStore;
use toolcrib_testing::EventRecorder;

use crate::{
    sessions::new,
    support::{builder, tool},
};

/// A model whose requests have one part per user message, in the spelling of a version.
struct Spelling {
    version: u32,
    sent: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Model for Spelling {
    fn name(&self) -> &str {
        "spelling"
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        let first = request.sent_parts.as_ref().unwrap();
        let parts = request.messages.iter().filter_map(|message| match message {
            Message::User { text, .. } => {
                let key = Digest::of(&**text);
                let now = format!("{text}, version {}", self.version);
                let before = first.get(&key).map(|json| json.to_string());
                Some(before.unwrap_or_else(|| {
                    first.set(SentPart { key, json: now.as_str().into() });
                    now
                }))
            }
            _ => None,
        });
        self.sent.lock().push(parts.collect());
        let response = ModelResponse { text: "Yes.".to_owned(), ..ModelResponse::default() };
        Box::pin(stream::iter([Ok(ModelChunk::Done(response))]))
    }
}

fn agent(
    version: u32,
    redactor: &Redactor,
    tools: Vec<Tool>,
) -> (Agent, Arc<Mutex<Vec<Vec<String>>>>) {
    let sent = Arc::<Mutex<Vec<Vec<String>>>>::default();
    let model = Spelling { version, sent: Arc::clone(&sent) };
    let agent = Agent::builder()
        .model(model)
        .engine(|engine| engine.redactor(redactor.clone()))
        .tools(tools)
        .build()
        .unwrap();
    (agent, sent)
}

#[tokio::test]
async fn a_newer_program_sends_what_the_older_one_sent() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let (older, sent) = agent(1, &Redactor::default(), Vec::new());
    let session = Session::create(store.clone(), new()).await.unwrap();
    let id = Arc::clone(session.id());
    for message in ["One", "Two"] {
        older.run(message, RunOptions::default().session(&session)).await.into_answer().unwrap();
    }
    assert_eq!(sent.lock()[1], ["One, version 1", "Two, version 1"]);
    session.close().await.unwrap();

    let redactor = Redactor::default();
    let (newer, sent) = agent(2, &redactor, Vec::new());
    let owner = new().owner;
    let session = Session::open(store.clone(), &owner, &id).await.unwrap();
    newer.run("Three", RunOptions::default().session(&session)).await.into_answer().unwrap();
    assert_eq!(sent.lock()[0], ["One, version 1", "Two, version 1", "Three, version 2"]);
    session.close().await.unwrap();

    // A stored part with a secret that is known now is not sent.
    redactor.learn("Two, version").unwrap();
    let session = Session::open(store.clone(), &owner, &id).await.unwrap();
    newer.run("Four", RunOptions::default().session(&session)).await.into_answer().unwrap();
    let last = sent.lock()[1].clone();
    assert_eq!(last, ["One, version 1", "Two, version 2", "Three, version 2", "Four, version 2"]);
    session.close().await.unwrap();
    // Two, and its new spelling; the prefix.
    assert_eq!(store.sent(&owner, &id).unwrap().len(), 5);
}

#[tokio::test]
async fn a_changed_set_of_tools_is_reported_after_a_restart() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let run = async |tools: Vec<Tool>, id: Option<&Arc<str>>| {
        let (agent, _) = agent(1, &Redactor::default(), tools);
        let session = match id {
            None => Session::create(store.clone(), new()).await.unwrap(),
            Some(id) => Session::open(store.clone(), &new().owner, id).await.unwrap(),
        };
        let run = agent.run("Go", RunOptions::default().session(&session));
        let seen = EventRecorder::new();
        run.on("model.prefix_changed", seen.listener()).unwrap();
        run.await.into_answer().unwrap();
        let id = Arc::clone(session.id());
        session.close().await.unwrap();
        (id, seen.json_of("model.prefix_changed"))
    };
    let (id, first) = run(vec![tool("a"), tool("b"), tool("c")], None).await;
    let (_, same) = run(vec![tool("a"), tool("b"), tool("c")], Some(&id)).await;
    assert_eq!((first, same), (vec![], vec![]));
    let changed = builder("b").description("Other.").handler(|_: Value, _| async { "ok" }).unwrap();
    let (_, other) = run(vec![tool("d"), changed, tool("a")], Some(&id)).await;
    assert_eq!(other.len(), 1);
    for (key, expected) in [
        ("tools_added", json!(["d"])),
        ("tools_removed", json!(["c"])),
        ("tools_changed", json!(["b"])),
        ("tools_reordered", json!(true)),
    ] {
        assert_eq!(other[0][key], expected, "{other:?}");
    }
}
