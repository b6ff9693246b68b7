//! Patterns and paths of a model that determine the work of a search.

use std::{sync::mpsc, thread, time::Duration};

use serde_json::{Value, json};
use toolcrib_core::{CancellationToken, Identity, ToolContext, ToolContextParts};

use crate::support::{call, invalid, keep, keep_kind, query, turn};

/// Has thousands of states, and none is quickly excluded.
const SLOW: &str = "((a|b|c|[^d]){1,25}){1,25}z";

/// The maximum time of a search after its cancellation: some milliseconds on an idle machine, but
/// tests run unoptimized and concurrently. A search of a whole megabyte takes half an hour.
const AFTER_CANCELLATION: Duration = Duration::from_secs(60);

#[test]
fn a_search_with_a_slow_pattern_can_be_stopped_in_the_middle_of_a_line() {
    let turn = turn();
    keep(&turn, "a".repeat(2 * 1024 * 1024));
    let tools = turn.artifacts().tools().unwrap();
    let tool = tools.iter().find(|tool| **tool.name() == *"artifact_search").unwrap().clone();
    let cancellation = CancellationToken::new();
    let context = ToolContext::from(ToolContextParts {
        identity: std::sync::Arc::new(Identity::conversation("c1")),
        turn_id: "run-1".into(),
        cancellation: cancellation.clone(),
        ..ToolContextParts::detached()
    });
    let (done, searched) = mpsc::channel();
    thread::spawn(move || {
        let args = json!({ "id": "call", "pattern": SLOW });
        let _ = done.send(call(&tool, args, context));
    });
    let early = searched.recv_timeout(Duration::from_millis(200));
    assert!(early.is_err(), "it is no slow pattern: {early:?}");
    cancellation.cancel();
    let outcome = searched.recv_timeout(AFTER_CANCELLATION).expect("it goes on searching");
    assert!(outcome.is_err(), "{outcome:?}");
}

#[test]
fn a_path_cannot_compile_large_patterns_for_each_value() {
    let turn = turn();
    let rows: Vec<Value> =
        (0..2_000).map(|n| json!({ "n": n, "text": "a", "pattern": "(a{1000}){100}" })).collect();
    keep_kind(&turn, "json", json!({ "rows": rows }).to_string());
    for path in [
        "$.rows[?search(@.text, '((a|b|[^c]){40}){40}z')]",
        "$.rows[?match(@.text, @.pattern)]",
        "$.rows[?search(@.text, '(a|b)*c')]",
    ] {
        let text = invalid(query(&turn, "path", json!({ "path": path })));
        assert!(text.contains("may take too long"), "{path}: {text}");
    }
    assert!(query(&turn, "path", json!({ "path": "$.rows[?@.n > 1998].text" })).is_ok());
}
