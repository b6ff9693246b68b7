//! A tool can be made with something that no model sees.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde_json::json;
use toolcrib::prelude::*;

use crate::support::{made, text};

#[derive(Clone, Default)]
struct Counter(Arc<AtomicU32>);

/// Counts.
#[tool]
async fn count(
    State(counter): State<Counter>,
    by: u32,
    State(unit): State<&'static str>,
) -> String {
    let before = counter.0.fetch_add(by, Ordering::Relaxed);
    format!("{} {unit}", before + by)
}

#[tokio::test]
async fn state_is_passed_once_and_shared_by_all_calls() {
    let counter = Counter::default();
    let tool = made(count_tool(counter.clone(), "orders"));
    let properties = tool.input_schema()["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["by"]);
    assert_eq!(text(tool.clone(), json!({ "by": 2 })).await, "2 orders");
    assert_eq!(text(tool, json!({ "by": 3 })).await, "5 orders");
    assert_eq!(count(State(counter), 1, State("more")).await, "6 more");
}

/// Every parameter that is not an argument, and none that is.
#[tool]
fn bare(state: State<Vec<u8>>, _: State<u8>, cx: ToolContext) -> String {
    format!("{} {}", state.0.len(), cx.call_id())
}

/// What the macro calls its own is nobody else's.
#[tool]
async fn names(
    State(context): State<u8>,
    arguments: u8,
    State(returned): State<u8>,
    State(this): State<u8>,
    cx: ToolContext,
) -> String {
    format!("{context} {arguments} {returned} {this} {}", cx.call_id())
}

#[tokio::test]
async fn state_parameters_may_have_any_pattern_and_name() {
    assert_eq!(text(bare_tool(vec![1, 2], 0), json!({})).await, "2 call_1");
    assert_eq!(text(names_tool(1, 3, 4), json!({ "arguments": 2 })).await, "1 2 3 4 call_1");
}
