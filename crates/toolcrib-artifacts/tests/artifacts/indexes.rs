//! Indexes of kinds: built once per content, and reused.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use toolcrib_artifacts::{
    Answer, ArtifactKind, ArtifactLimits, ArtifactSource, Artifacts, Content, Index, MemoryStore,
    Query, QueryRequest, TurnArtifacts,
};
use toolcrib_core::{CancellationToken, ToolError};

use crate::support::{ask, turn_of};

/// A kind whose index is its name and the content; counts the builds.
struct Indexed {
    name: &'static str,
    made: Arc<AtomicUsize>,
}

impl ArtifactKind for Indexed {
    fn name(&self) -> &str {
        self.name
    }

    fn queries(&self) -> Vec<Query> {
        vec![Query::new("index", "What was made of it.")]
    }

    fn index(&self, content: &Content, _: &CancellationToken) -> Result<Index, ToolError> {
        self.made.fetch_add(1, Ordering::SeqCst);
        let bytes = content.read(0..content.bytes())?;
        Ok(Index::new(format!("{} {}", self.name, String::from_utf8_lossy(&bytes))))
    }

    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let index = asked.index.get::<String>();
        Ok(Answer::text(index.cloned().unwrap_or_default()))
    }
}

fn index_of(turn: &TurnArtifacts, id: &str) -> String {
    ask(turn, "artifact_query", json!({ "id": id, "query": "index" })).unwrap()
}

#[test]
fn an_index_is_of_one_content_and_one_kind_and_the_last_eight_are_found_again() {
    let made = Arc::<AtomicUsize>::default();
    let kinds: [Arc<dyn ArtifactKind>; 2] =
        ["one", "two"].map(|name| Arc::new(Indexed { name, made: Arc::clone(&made) }) as _);
    let store = Arc::new(MemoryStore::new());
    let artifacts = Artifacts::with(store, kinds.into(), ArtifactLimits::default());
    let turn = turn_of(&artifacts, "c1");
    let keep = |id: &str, kind: &str, content: &str| {
        turn.keep(ArtifactSource::of("tests", id).kind(kind), content.as_bytes()).unwrap();
    };
    keep("a", "one", "same");
    keep("b", "two", "same");
    keep("c", "one", "same");
    for (id, index) in [("a", "one same"), ("b", "two same"), ("c", "one same"), ("a", "one same")]
    {
        assert_eq!(index_of(&turn, id), index);
    }
    assert_eq!(made.load(Ordering::SeqCst), 2, "of one content there is one per kind");
    for n in 0..6 {
        keep(&format!("n{n}"), "one", &n.to_string());
        assert_eq!(index_of(&turn, &format!("n{n}")), format!("one {n}"));
    }
    assert_eq!(index_of(&turn, "a"), "one same");
    assert_eq!(made.load(Ordering::SeqCst), 8, "all eight are there");
    keep("ninth", "one", "ninth");
    assert_eq!(index_of(&turn, "ninth"), "one ninth");
    assert_eq!(index_of(&turn, "a"), "one same");
    assert_eq!(made.load(Ordering::SeqCst), 9, "the least recently used went, and no other");
    assert_eq!(index_of(&turn, "b"), "two same");
    assert_eq!(made.load(Ordering::SeqCst), 10);
}
