//! The stable parts of requests.

use serde_json::json;
use toolcrib_core::{ContentBlock, Message, ToolChoice};
use toolcrib_models::{ReasoningEffort, VendorModelBuilder};

use super::{PNG, assistant, find_order, result, rich, sent, sent_by, spoken, without_breakpoints};
use crate::support::request;

#[tokio::test]
async fn each_body_begins_as_the_one_before_ended() {
    let blocks = vec![ContentBlock::image("image/png", PNG)];
    let mut all = vec![Message::user("Hello."), spoken(&rich()).await];
    all.push(result("toolu_1", "One.", false, blocks));
    all.push(result("toolu_2", "failed", true, Vec::new()));
    all.push(assistant("And?", &[("toolu_3", json!({ "id": 3 }))]));
    all.push(result("toolu_3", "Three.", false, Vec::new()));
    all.push(assistant("Done.", &[]));
    all.push(Message::user("Thanks."));
    let asked_at = [1, 4, 6, 8];
    let mut before = String::new();
    for (turn, length) in asked_at.into_iter().enumerate() {
        let mut asked = request(all[..length].to_vec(), vec![find_order()]);
        // Per-request parts come after the messages.
        asked.tool_choice = if turn % 2 == 0 { ToolChoice::None } else { ToolChoice::Auto };
        let set = |b: VendorModelBuilder| b.reasoning(ReasoningEffort::Low);
        let body = sent_by(asked, set).await.body;
        let breakpoints = body.matches("cache_control").count();
        assert_eq!(breakpoints, if turn == 0 { 3 } else { 4 }, "{body}");
        // Only the breakpoints move along.
        let body = without_breakpoints(&body);
        assert!(body.starts_with(&before), "{before}\n{body}");
        let end = body.rfind(r#"],"thinking""#).unwrap();
        body[..end].clone_into(&mut before);
    }
}

#[tokio::test]
async fn breakpoints_stand_at_the_ends_of_the_users_last_two_messages() {
    let messages = vec![
        Message::user("1"),
        assistant("", &[("toolu_1", json!({})), ("toolu_2", json!({}))]),
        result("toolu_1", "2", false, Vec::new()),
        result("toolu_2", "2", false, Vec::new()),
        assistant("3", &[]),
        Message::user("4"),
    ];
    let found = sent(request(messages, vec![find_order()])).await;
    let marked = |message: usize| {
        let blocks = found["messages"][message]["content"].as_array().unwrap();
        blocks.iter().map(|block| block.get("cache_control").is_some()).collect::<Vec<_>>()
    };
    let all: Vec<_> = (0..5).map(marked).collect();
    assert_eq!(all, [vec![false], vec![false; 2], vec![false, true], vec![false], vec![true]]);
}
