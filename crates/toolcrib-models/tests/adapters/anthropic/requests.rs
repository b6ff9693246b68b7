//! Requests for conversations and settings.

use serde_json::{Value, json};
use toolcrib_core::{ContentBlock, Message, ModelRequest, ToolCall, ToolChoice, ToolName};
use toolcrib_models::{ReasoningEffort, VendorModelBuilder};
use toolcrib_testbed::images;

use super::{PNG, assistant, find_order, hello, result, sent, sent_by, without_breakpoints};
use crate::support::{NO_ANSWER, request, tool};

#[tokio::test]
async fn a_rich_conversation_is_sent_as_the_vendor_takes_it() {
    let messages = vec![
        Message::user("Which orders are there?"),
        assistant("I look.", &[("toolu_1", json!({ "id": 1 })), ("toolu_2", json!({ "id": 2 }))]),
        result(
            "toolu_1",
            "One.\n[image image/png, 67 bytes]",
            false,
            vec![ContentBlock::image("image/png", PNG)],
        ),
        result("toolu_2", "no such order", true, Vec::new()),
        assistant("Order 1.", &[]),
        Message::user("Und größere?"),
    ];
    let mut asked = request(
        messages,
        vec![tool("list_orders", "All orders.", json!({ "type": "object" })), find_order()],
    );
    asked.tool_choice = ToolChoice::Tool(ToolName::new("list_orders").unwrap());
    let seen = sent_by(asked, |builder| builder.temperature(0.5).max_output_tokens(100)).await;

    assert_eq!(seen.line(), "POST /v1/messages");
    assert_eq!(seen.header("x-api-key"), Some("sk-ant-test"));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&seen.json()).unwrap());
}

#[tokio::test]
async fn clear_above_lets_the_vendor_clear_old_results() {
    let seen = sent_by(hello(), |builder| builder.clear_above(50_000)).await;
    assert_eq!(seen.header("anthropic-beta"), Some("context-management-2025-06-27"));
    let trigger = json!({ "type": "input_tokens", "value": 50_000 });
    let edit = json!({ "type": "clear_tool_uses_20250919", "trigger": trigger });
    assert_eq!(seen.json()["context_management"], json!({ "edits": [edit] }));
    let seen = sent_by(hello(), |builder| builder).await;
    assert_eq!(
        (seen.header("anthropic-beta"), seen.json().get("context_management")),
        (None, None)
    );
}

#[tokio::test]
async fn settings_are_said_in_the_vendors_words() {
    type Set = fn(VendorModelBuilder) -> VendorModelBuilder;
    let forced = ToolChoice::Tool(ToolName::new("find_order").unwrap());
    let thinking = json!({ "type": "adaptive", "display": "summarized" });
    let cases: Vec<(Set, ToolChoice, Value)> = vec![
        (|b| b, ToolChoice::Auto, json!({ "max_tokens": 8192 })),
        (
            |b| b.max_output_tokens(99).temperature(0.0),
            ToolChoice::None,
            json!({ "max_tokens": 99, "temperature": 0.0, "tool_choice": { "type": "none" } }),
        ),
        (
            |b| b.reasoning(ReasoningEffort::High).temperature(0.3),
            ToolChoice::None,
            json!({
                "max_tokens": 8192, "thinking": thinking, "output_config": { "effort": "high" },
                "tool_choice": { "type": "none" },
            }),
        ),
        // A model that must call does not think aloud.
        (
            |b| b.reasoning(ReasoningEffort::Low),
            ToolChoice::Required,
            json!({
                "max_tokens": 8192, "output_config": { "effort": "low" },
                "tool_choice": { "type": "any" },
            }),
        ),
        (
            |b| b.reasoning(ReasoningEffort::Medium),
            forced,
            json!({
                "max_tokens": 8192, "output_config": { "effort": "medium" },
                "tool_choice": { "type": "tool", "name": "find_order" },
            }),
        ),
    ];
    for (set, tool_choice, expected) in cases {
        let seen = sent_by(ModelRequest { tool_choice, ..hello() }, set).await;
        let mut found = seen.json();
        found.as_object_mut().unwrap().retain(|key, _| {
            !["model", "stream", "tools", "system", "messages"].contains(&key.as_str())
        });
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn without_tools_and_system_text_nothing_is_said_of_them() {
    let mut asked = request(vec![Message::user("Hello.")], Vec::new());
    asked.system = " \n".into();
    asked.tool_choice = ToolChoice::Required;
    let found = sent(asked).await;
    assert_eq!(
        found,
        json!({
            "model": "claude-test", "max_tokens": 8192, "stream": true,
            "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "Hello.", "cache_control": { "type": "ephemeral" } },
            ]}],
        })
    );
}

#[tokio::test]
async fn a_menu_that_has_become_empty_leaves_a_tool_that_cannot_be_called() {
    let messages = vec![
        Message::user("Hello."),
        assistant("", &[("toolu_1", json!({}))]),
        result("toolu_1", "1", false, Vec::new()),
    ];
    let found = sent(request(messages, Vec::new())).await;
    assert_eq!(found["tools"][0]["name"], "no_tool_is_offered");
    assert_eq!(found["tool_choice"], json!({ "type": "none" }));
}

#[tokio::test]
async fn texts_without_visible_characters_are_replaced() {
    let messages = vec![
        Message::user(" "),
        assistant("\n", &[]),
        Message::user("Go on."),
        assistant(" \n", &[("toolu_1", json!({})), ("toolu_2", json!({}))]),
        result("toolu_1", "", false, Vec::new()),
        result("toolu_2", " ", true, Vec::new()),
    ];
    let seen = sent_by(request(messages, vec![find_order()]), |b| b).await;
    let found: Value = serde_json::from_str(&without_breakpoints(&seen.body)).unwrap();
    let call =
        |id: &str| json!({ "type": "tool_use", "id": id, "name": "find_order", "input": {} });
    let said = [
        json!({ "role": "user", "content": [{ "type": "text", "text": "(no text)" }] }),
        json!({ "role": "assistant", "content": [{ "type": "text", "text": NO_ANSWER }] }),
        json!({ "role": "user", "content": [{ "type": "text", "text": "Go on." }] }),
        json!({ "role": "assistant", "content": [call("toolu_1"), call("toolu_2")] }),
        json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "toolu_1" },
            { "type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": [
                { "type": "text", "text": "(the call failed and said nothing)" },
            ]},
        ]}),
    ];
    assert_eq!(found["messages"], json!(said));
}

#[tokio::test]
async fn arguments_are_an_object_whatever_the_model_wrote() {
    let data = json!({ "b": 1, "a": [2.50] });
    let text = |text: &str| ToolCall::unparsed("toolu_1", "find_order", text);
    let cases = [
        (ToolCall::new("toolu_1", "find_order", data), r#"{"b":1,"a":[2.5]}"#),
        (ToolCall::new("toolu_1", "find_order", json!([1])), r#"{"INVALID_JSON":"[1]"}"#),
        // As it was written, so that it is what the vendor has cached.
        (text(" {\"b\": 1e3,\"a\":2.50}\n"), r#"{"b": 1e3,"a":2.50}"#),
        (text(""), "{}"),
        (text("{\"id\": 10"), r#"{"INVALID_JSON":"{\"id\": 10"}"#),
        (text("null"), r#"{"INVALID_JSON":"null"}"#),
        (text("{} {}"), r#"{"INVALID_JSON":"{} {}"}"#),
    ];
    for (call, expected) in cases {
        let messages = vec![
            Message::user("Hello."),
            Message::assistant("", [call]),
            result("toolu_1", "1", false, Vec::new()),
        ];
        let body = sent_by(request(messages, vec![find_order()]), |b| b).await.body;
        assert!(body.contains(&format!(r#""input":{expected}}}"#)), "{expected} in {body}");
    }
}

#[tokio::test]
async fn ids_of_other_vendors_are_written_in_characters_that_are_taken() {
    let messages = vec![
        Message::user("Hello."),
        assistant(
            "",
            &[("functions.find:0", json!({})), ("größe", json!({})), ("a-B_9", json!({}))],
        ),
        result("functions.find:0", "1", false, Vec::new()),
        result("größe", "2", false, Vec::new()),
        result("a-B_9", "3", false, Vec::new()),
    ];
    let found = sent(request(messages, vec![find_order()])).await;
    let ids = |message: usize, key: &str| {
        let blocks = found["messages"][message]["content"].as_array().unwrap();
        blocks.iter().map(|block| block[key].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let called = ids(1, "id");
    assert_eq!(called, ids(2, "tool_use_id"));
    assert_eq!(called[2], "a-B_9");
    assert_ne!(called[0], called[1]);
    let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    assert!(called.iter().all(|id| !id.is_empty() && id.chars().all(is_taken)), "{called:?}");
}

#[tokio::test]
async fn supported_blocks_of_a_result_are_sent() {
    let pdf: &[u8] = b"%PDF-1.7";
    let image = json!({ "type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": images::PNG_BASE64,
    }});
    let document = json!({ "type": "document", "source": {
        "type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc=",
    }});
    let typed = |media_type: &str| json!([{ "type": "image", "media_type": media_type }]);
    let noted = |bytes: &str, why: &str| {
        let text =
            format!("Image 1 of this message, [image image/png, {bytes}], is not shown: {why}.");
        json!([{ "type": "text", "text": text }])
    };
    let large = [PNG, &[0; 4_000_000]].concat();
    let too_large =
        "it has 4000067 bytes; the model's vendor accepts 3932160; make a smaller copy of it";
    let cases = [
        // Its bytes count, not its declared type.
        (ContentBlock::image("image/PNG; q=1", PNG), json!([image])),
        (ContentBlock::image("image/png", images::JPEG), typed("image/jpeg")),
        (ContentBlock::image("image/png", images::GIF), typed("image/gif")),
        (ContentBlock::image("image/png", images::WEBP), typed("image/webp")),
        (ContentBlock::image("image/png", *b"<svg/>"), noted("6 bytes", "it is not an image")),
        (ContentBlock::image("image/png", *b""), noted("0 bytes", "it is not an image")),
        (ContentBlock::image("image/png", large), noted("4000067 bytes", too_large)),
        (ContentBlock::audio("audio/wav", *b"RIFF"), json!([])),
        (ContentBlock::text("file:///a", "A"), json!([])),
        (ContentBlock::binary("file:///a.pdf", pdf), json!([document])),
        (ContentBlock::binary("file:///a.bin", *b"\0\x01"), json!([])),
        (ContentBlock::link("https://a.example/x.png", "x"), json!([])),
    ];
    let sent_of = async |block: &ContentBlock, is_error: bool, blocks: Option<bool>| {
        let messages = vec![
            Message::user("Hello."),
            assistant("", &[("toolu_1", json!({}))]),
            result("toolu_1", "Named.", is_error, vec![block.clone()]),
        ];
        let asked = request(messages, vec![find_order()]);
        let found = sent_by(asked, |b| match blocks {
            Some(send) => b.result_blocks(send),
            None => b,
        });
        let content = found.await.json()["messages"][2]["content"][0]["content"].take();
        let Value::Array(mut parts) = content else { panic!("no content") };
        assert_eq!(parts.remove(0), json!({ "type": "text", "text": "Named." }));
        parts
    };
    for (block, expected) in cases {
        let mut found = sent_of(&block, false, None).await;
        for part in &mut found {
            if expected[0].get("media_type").is_some() && part["type"] == "image" {
                *part = json!({ "type": part["type"], "media_type": part["source"]["media_type"] });
            }
        }
        assert_eq!(json!(found), expected, "{block:?}");
        assert_eq!(sent_of(&block, true, None).await, [] as [Value; 0], "failed: {block:?}");
        assert_eq!(sent_of(&block, false, Some(false)).await, [] as [Value; 0], "off: {block:?}");
    }
}

#[tokio::test]
async fn a_damaged_image_in_a_result_is_a_text_and_the_images_around_it_are_sent() {
    let damaged = ContentBlock::image("image/png", images::damaged_png());
    let good = || ContentBlock::image("image/png", PNG);
    let messages = vec![
        Message::user("Hello."),
        assistant("", &[("toolu_1", json!({}))]),
        result("toolu_1", "Three.", false, vec![good(), damaged, good()]),
    ];
    let body = sent_by(request(messages, vec![find_order()]), |b| b).await.json();
    let content = body["messages"][2]["content"][0]["content"].as_array().unwrap();
    let types: Vec<_> = content.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["text", "image", "image", "text"]);
    let note = content[3]["text"].as_str().unwrap();
    assert!(
        note.starts_with("Image 2 of this message, [image image/png, 508 bytes], is"),
        "{note}"
    );
}
