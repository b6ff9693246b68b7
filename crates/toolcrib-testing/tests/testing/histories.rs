//! Conversations that can and cannot be replayed.

use serde_json::json;
use toolcrib_core::{Message, ToolCall};
use toolcrib_testing::assert_replayable;

use crate::support::failure;

fn calls<const N: usize>(ids: [&str; N]) -> Message {
    let calls = ids.map(|id| ToolCall::new(id, "t", json!({})));
    Message::assistant("", calls)
}

fn result(id: &str) -> Message {
    crate::support::result(id, "t", "")
}

#[test]
fn a_history_that_vendors_take_passes() {
    assert_replayable(&[]);
    let user = || Message::user("Hi");
    assert_replayable(&[user(), calls(["a", "b"]), result("a"), result("b"), calls([]), user()]);
}

#[test]
fn each_way_in_which_vendors_refuse_a_history_is_named() {
    let user = || Message::user("Hi");
    for (history, problem) in [
        (vec![calls(["a"])], "the call `a` has no result"),
        (vec![calls(["a", "b"]), result("a"), user()], "message 2 appears before `b` has a result"),
        (
            vec![calls(["a"]), calls(["b"]), result("b")],
            "message 1 appears before `a` has a result",
        ),
        (
            vec![user(), result("a")],
            "message 1 is the result of `a`, which belongs to no open call",
        ),
        (vec![calls(["a"]), result("a"), result("a")], "which belongs to no open call"),
        (
            vec![calls(["a", "b"]), result("b"), result("a")],
            "message 1 is the result of `b`, where that of `a` was due",
        ),
        (vec![calls(["a", "a"]), result("a"), result("a")], "whose id `a` is empty or was used"),
        (vec![calls([""]), result("")], "whose id `` is empty or was used"),
    ] {
        let text = failure(|| assert_replayable(&history));
        assert!(text.contains(problem), "{problem}\n{text}");
    }
}
