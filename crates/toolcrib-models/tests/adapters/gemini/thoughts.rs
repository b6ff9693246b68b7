//! Content that Gemini requires back with its answers.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{Message, ToolCall, VendorContent};

use super::{REASONED, answered, heard, kept, result, sent, sent_by, tools};
use crate::support::request;

#[tokio::test]
async fn what_the_model_thought_goes_back_in_its_parts() {
    let response = heard(&REASONED).await.outcome.unwrap();
    let kept = kept(response);
    let asked = |answer: Message| {
        let results = (0..3).map(|n| result(&format!("call_{n}"), "find_order", "none"));
        let messages = [Message::user("Hi"), answer].into_iter().chain(results).collect();
        request(messages, tools())
    };
    let calls = json!([
        {"functionCall": {"id": "call_0", "name": "find_order", "args": {"order_id": 1042}}, "thoughtSignature": "Q2lRQg=="},
        {"functionCall": {"id": "call_1", "name": "_3d_view", "args": {"kind": "wire", "b": 1}}},
        {"functionCall": {"id": "call_2", "name": "find_order", "args": {}}},
    ]);
    let with_calls = |parts: Value| {
        let parts = parts.as_array().unwrap().iter().chain(calls.as_array().unwrap());
        json!({"parts": parts.collect::<Vec<_>>(), "role": "model"})
    };

    let body = sent(asked(kept.clone())).await;
    let expected = with_calls(json!([
        {"text": "I need both.", "thought": true},
        {"text": "I look bÖth up."},
        {"text": "", "thoughtSignature": "c2lnbmVk"},
    ]));
    assert_eq!(body["contents"][1], expected);
    // The results of a batch are one content.
    assert_eq!(body["contents"].as_array().unwrap().len(), 3);
    assert_eq!(body["contents"][2]["parts"].as_array().unwrap().len(), 3);

    // A text that was redacted goes back as it is now, in one piece.
    let Message::Assistant { calls: known, vendor, .. } = kept else { panic!("an answer") };
    let redacted = answered("I look [redacted]", known.clone(), vendor.clone());
    let expected = with_calls(json!([
        {"text": "I need both.", "thought": true},
        {"text": "I look [redacted]"},
        {"text": "", "thoughtSignature": "c2lnbmVk"},
    ]));
    assert_eq!(sent(asked(redacted)).await["contents"][1], expected);

    // Where the calls are others, or the content another vendor's, text and calls are what is left.
    let fewer = answered("I look", known[..1].to_vec(), vendor.clone());
    let foreign = VendorContent { vendor: "anthropic".into(), content: json!([]) };
    let foreign = answered("I look", known[..1].to_vec(), Some(Arc::new(foreign)));
    let broken = VendorContent { vendor: "gemini".into(), content: json!([{"part": 7}]) };
    let broken = answered("I look", known[..1].to_vec(), Some(Arc::new(broken)));
    for other in [fewer, foreign, broken] {
        let messages = vec![Message::user("Hi"), other, result("call_0", "find_order", "none")];
        let expected = json!([
            {"text": "I look"},
            {"functionCall": {"id": "call_0", "name": "find_order", "args": {"order_id": 1042}}, "thoughtSignature": "skip_thought_signature_validator"},
        ]);
        assert_eq!(sent(request(messages, tools())).await["contents"][1]["parts"], expected);
    }
}

#[tokio::test]
async fn nothing_is_kept_where_text_and_calls_are_all() {
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"find_order","args":{}}},{"text":"b"}]},"finishReason":"STOP"}]}"#;
    let response = heard(&[chunk]).await.outcome.unwrap();
    assert_eq!((response.text.as_str(), response.calls.len()), ("ab", 1));
    assert_eq!(response.vendor, None);
}

#[tokio::test]
async fn calls_of_another_model_have_the_stand_in_for_a_signature_where_one_is_required() {
    let stand_in = json!("skip_thought_signature_validator");
    for (model, expected) in [
        ("gemini-3.8-flash", &stand_in),
        ("gemini-2.5-flash", &Value::Null),
        ("some-model", &Value::Null),
    ] {
        let calls = ["c1", "c2"].map(|id| ToolCall::new(id, "find_order", json!({})));
        let messages = vec![
            Message::user("Hi"),
            Message::assistant("", calls),
            result("c1", "find_order", "none"),
            result("c2", "find_order", "none"),
        ];
        let body = sent_by(model, |builder| builder, request(messages, tools())).await.json();
        let parts = &body["contents"][1]["parts"];
        assert_eq!(&parts[0]["thoughtSignature"], expected, "{model}");
        assert_eq!(parts[1]["thoughtSignature"], Value::Null, "{model}");
    }
}
