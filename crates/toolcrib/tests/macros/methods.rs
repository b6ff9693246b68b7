//! Methods as tools of a value that they share.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcrib::prelude::*;

use crate::support::{call, made, text};

/// A list of notes.
#[derive(Default)]
pub(crate) struct Notes {
    all: Mutex<Vec<String>>,
    /// Where they are kept.
    pub(crate) place: &'static str,
}

#[tool]
impl Notes {
    /// Adds a note.
    #[tool]
    pub(crate) async fn add(&self, text: String) -> usize {
        let mut all = self.all.lock().unwrap();
        all.push(text);
        all.len()
    }

    /// All notes.
    #[tool(read_only, name = "list_notes")]
    fn list(&self, cx: ToolContext) -> Vec<String> {
        assert_eq!(&**cx.call_id(), "call_1");
        self.all.lock().unwrap().clone()
    }

    /// Not there.
    #[cfg(any())]
    #[tool]
    fn absent(&self) {}

    /// Where notes are, slowly.
    #[tool]
    async fn r#where(&self) -> &'static str {
        tokio::task::yield_now().await;
        self.place
    }

    fn len(&self) -> usize {
        self.all.lock().unwrap().len()
    }
}

#[tokio::test]
async fn methods_share_the_value_that_they_are_made_of() {
    let notes = Arc::new(Notes { place: "here", ..Notes::default() });
    assert_eq!(text(notes.add_tool(), json!({ "text": "one" })).await, "1");
    assert_eq!(notes.add("two".into()).await, 2);
    let result = call(notes.list_tool(), json!({})).await;
    assert_eq!(result.structured, Some(json!(["one", "two"])));
    assert!(made(notes.list_tool()).annotations().read_only);
    assert_eq!(text(notes.where_tool(), json!({})).await, "here");
    assert_eq!(notes.len(), 2);
}

#[tokio::test]
async fn a_block_gives_all_its_tools_in_order() {
    let notes = Arc::new(Notes::default());
    let names: Vec<_> =
        notes.tools().into_iter().map(|tool| made(tool).name().to_string()).collect();
    assert_eq!(names, ["add", "list_notes", "where"]);
    let engine = Engine::builder().tools(notes.tools()).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call_1", "add", json!({ "text": "x" }))]).await;
    assert_eq!(notes.len(), 1);
}

/// Anything that can be told.
struct Told<T>(T);

impl<T: Clone + serde::Serialize + Send + Sync + 'static> Told<T> {
    /// Tells it.
    #[tool]
    async fn tell(&self, State(loud): State<bool>) -> T {
        assert!(loud);
        self.0.clone()
    }
}

#[tokio::test]
async fn the_type_may_be_generic_and_the_tool_have_state_beside_it() {
    assert_eq!(text(Arc::new(Told(vec![1])).tell_tool(true), json!({})).await, "[1]");
}
