//! Thinking, and when it goes back.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{Message, Tool, ToolCall, VendorContent};

use super::{call, find_order, result, rich, sent, spoken, stream, text, thought};
use crate::support::{NO_ANSWER, request, tool};

/// The blocks that go back for a message instead of an answer to [`hello`].
async fn goes_back(said: Message, tools: Vec<Tool>) -> Value {
    let Message::Assistant { calls, .. } = &said else { panic!("no answer") };
    let results: Vec<_> =
        calls.iter().map(|call| result(&call.id, "1", false, Vec::new())).collect();
    let mut messages = vec![Message::user("Hello."), said];
    messages.extend(results);
    messages.push(Message::user("Go on."));
    sent(request(messages, tools)).await["messages"][1].take()
}

#[tokio::test]
async fn thinking_is_sent_back_unchanged() {
    let back = goes_back(spoken(&rich()).await, vec![find_order()]).await;
    let call = |id: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": "find_order", "input": input });
    assert_eq!(
        back["content"],
        json!([
            { "type": "thinking", "thinking": "First the order; größer.", "signature": "sig/1==" },
            { "type": "text", "text": "Ich schaue nach 👀." },
            call("toolu_1", json!({ "id": 1042 })),
            { "type": "redacted_thinking", "data": "c2VjcmV0" },
            call("toolu_2", json!({})),
        ])
    );
}

#[tokio::test]
async fn texts_stay_where_they_stood_among_thoughts() {
    let cases = [
        (
            vec![text(0, "ä"), thought(1, "", "s"), text(2, "bc"), call(3, "toolu_1", &[])],
            vec!["text ä", "thinking ", "text bc", "tool_use"],
        ),
        // Neither a blank text nor a thought at the end is taken.
        (
            vec![
                thought(0, "a", "s"),
                text(1, "\n"),
                call(2, "toolu_1", &[]),
                thought(3, "b", "t"),
            ],
            vec!["thinking a", "tool_use"],
        ),
        (vec![text(0, "a"), thought(1, "b", "t"), text(2, " ")], vec!["text a"]),
    ];
    for (blocks, expected) in cases {
        let back = goes_back(spoken(&stream(&blocks, "end_turn")).await, vec![find_order()]).await;
        let blocks = back["content"].as_array().unwrap().iter();
        let found: Vec<_> = blocks
            .map(|block| match block["type"].as_str().unwrap() {
                kind @ ("text" | "thinking") => format!("{kind} {}", block[kind].as_str().unwrap()),
                kind => kind.to_owned(),
            })
            .collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_message_of_nothing_but_thoughts_is_sent_as_a_note() {
    let said = spoken(&stream(&[thought(0, "Hm.", "s")], "max_tokens")).await;
    let back = goes_back(said, vec![find_order()]).await;
    assert_eq!(back["content"], json!([{ "type": "text", "text": NO_ANSWER }]));
}

#[tokio::test]
async fn thinking_is_left_out_after_a_change_in_it_or_before_it() {
    let Message::Assistant { text, calls, vendor } = spoken(&rich()).await else { panic!() };
    let kept = vendor.unwrap();
    let said = |text: &str, calls: &[ToolCall], vendor: &VendorContent| Message::Assistant {
        text: text.into(),
        calls: calls.to_vec(),
        vendor: Some(Arc::new(vendor.clone())),
    };
    let renamed = |content: Value| VendorContent { vendor: "anthropic".into(), content };
    let mut redacted = kept.content.clone();
    redacted["blocks"][0]["thinking"] = "First [redacted]".into();
    let foreign = VendorContent { vendor: "gemini".into(), content: kept.content.clone() };
    let other = tool("other", "Another tool.", json!({}));
    let cases = [
        (said(&text, &calls, &kept), vec![find_order(), other.clone()]),
        (said(&text, &calls, &kept), Vec::new()),
        (said("Ich [redacted].", &calls, &kept), vec![find_order()]),
        (said(&text, &calls[..1], &kept), vec![find_order()]),
        (said(&text, &calls, &renamed(redacted)), vec![find_order()]),
        (said(&text, &calls, &foreign), vec![find_order()]),
        (said(&text, &calls, &renamed(json!(null))), vec![find_order()]),
        (said(&text, &calls, &renamed(json!({ "made": 1, "blocks": {} }))), vec![find_order()]),
    ];
    for (case, (said, tools)) in cases.into_iter().enumerate() {
        let back = goes_back(said.clone(), tools).await;
        let Message::Assistant { calls, .. } = said else { panic!() };
        let blocks = back["content"].as_array().unwrap().iter();
        let kinds: Vec<_> = blocks.map(|block| block["type"].as_str().unwrap()).collect();
        let expected = ["text", "tool_use", "tool_use"];
        assert_eq!(kinds, expected[..=calls.len()], "case {case}");
    }
    // The ids and arguments are the message's own.
    let mut changed = calls.clone();
    changed[0] = ToolCall::new("call_7", "find_order", json!({ "id": "[redacted]" }));
    let back = goes_back(said(&text, &changed, &kept), vec![find_order()]).await;
    assert_eq!(back["content"][0]["type"], "thinking");
    assert_eq!(back["content"][2]["id"], "call_7");
    assert_eq!(back["content"][2]["input"], json!({ "id": "[redacted]" }));
}
