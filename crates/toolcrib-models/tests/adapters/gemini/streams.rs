//! Reading streams.

use std::sync::Arc;

use toolcrib_core::{Message, ModelErrorClass, StopReason, ToolCall, Usage};

use super::{REASONED, builder, events, heard, tools};
use crate::support::{Reply, Server, ask, request};

#[tokio::test]
async fn text_reasoning_calls_and_usage_are_heard() {
    let heard = heard(&REASONED).await;
    assert_eq!(heard.text, "I look bÖth up.");
    assert_eq!(heard.reasoning, "I need both.");
    let response = heard.outcome.unwrap();
    assert_eq!(response.text, heard.text);
    assert_eq!(response.stop, StopReason::Finished);
    let usage =
        Usage { input_tokens: 85, cached_input_tokens: 64, output_tokens: 34, ..Usage::default() };
    assert_eq!(response.usage, usage);
    let calls = [
        ToolCall::unparsed("", "find_order", r#"{"order_id":1042}"#),
        ToolCall::unparsed("x", "3d_view", r#"{"kind":"wire","b":1}"#),
        ToolCall::unparsed("", "find_order", "{}"),
    ];
    assert_eq!(response.calls, calls);
}

#[tokio::test]
async fn an_answer_is_the_same_wherever_the_network_cuts_it() {
    let stream = events(&REASONED);
    let whole = heard(&REASONED).await;
    let expected = whole.outcome.unwrap();
    let replies: Vec<_> = (1..stream.len()).map(|at| Reply::events(&stream).cut_at(at)).collect();
    let cuts = replies.len();
    let server = Server::start(replies).await;
    let model = Arc::new(builder(&server, "gemini-3.8-flash").build().unwrap());
    for cut in 1..=cuts {
        let heard = ask(&model, request(vec![Message::user("Hi")], tools())).await;
        assert_eq!(heard.reasoning, whole.reasoning, "cut at {cut}");
        assert_eq!(heard.outcome.unwrap(), expected, "cut at {cut}");
    }
}

#[tokio::test]
async fn odd_streams_are_read() {
    let odd = [
        r#"{"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7},"modelVersion":"x"}"#,
        r#"{"candidates":[{"content":{"parts":[],"role":"model"},"index":0}]}"#,
        r#"{"candidates":[{"content":{"role":"model"},"index":0}],"promptFeedback":{}}"#,
        r#"{"candidates":[],"promptFeedback":{"safetyRatings":[]}}"#,
        r#"{"candidates":null,"promptFeedback":null,"usageMetadata":null,"error":null}"#,
        r#"{"candidates":[{"content":null},{"content":{"parts":null}}]}"#,
        r#"{}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":""},{"madeUp":{"a":[1]}},{}]},"safetyRatings":[],"index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"Hi","thought":false,"thoughtSignature":null}]},"avgLogprobs":-0.1}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"another candidate"}]},"index":1,"finishReason":"SAFETY"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":" there."}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}}"#,
        r#"{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":4,"thoughtsTokenCount":2}}"#,
    ];
    let heard = heard(&odd).await;
    let response = heard.outcome.unwrap();
    assert_eq!(response.text, "Hi there.");
    // Also of chunks after the stop reason.
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (7, 6));
    assert_eq!(response.vendor, None);
}

#[tokio::test]
async fn why_the_model_stopped_is_told() {
    let stops = [
        ("STOP", StopReason::Finished),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("CONTINUATION", StopReason::MaxTokens),
        ("OTHER", StopReason::Other),
        ("SOMETHING_NEW", StopReason::Other),
    ];
    for (reason, expected) in stops {
        let chunk = format!(r#"{{"candidates":[{{"finishReason":"{reason}"}}]}}"#);
        assert_eq!(heard(&[&chunk]).await.outcome.unwrap().stop, expected, "{reason}");
    }
    let refusals = [
        ("SAFETY", ModelErrorClass::ContentFilter),
        ("RECITATION", ModelErrorClass::ContentFilter),
        ("LANGUAGE", ModelErrorClass::ContentFilter),
        ("BLOCKLIST", ModelErrorClass::ContentFilter),
        ("PROHIBITED_CONTENT", ModelErrorClass::ContentFilter),
        ("SPII", ModelErrorClass::ContentFilter),
        ("PUP_LIMITED_DISABLED", ModelErrorClass::Auth),
        ("MALFORMED_FUNCTION_CALL", ModelErrorClass::Incomplete),
        ("UNEXPECTED_TOOL_CALL", ModelErrorClass::Incomplete),
        ("MISSING_THOUGHT_SIGNATURE", ModelErrorClass::BadRequest),
    ];
    for (reason, class) in refusals {
        let chunk = format!(
            r#"{{"candidates":[{{"finishReason":"{reason}","finishMessage":"as it is"}}]}}"#
        );
        let error = heard(&[&chunk]).await.outcome.unwrap_err();
        assert_eq!(error.class, class, "{reason}");
        assert!(error.message.contains(&format!("{reason}: as it is")), "{}", error.message);
    }
    let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":42}}"#;
    let error = heard(&[blocked]).await.outcome.unwrap_err();
    assert_eq!(error.class, ModelErrorClass::ContentFilter);
    assert!(error.message.contains("PROHIBITED_CONTENT"), "{}", error.message);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let begun = r#"{"candidates":[{"content":{"parts":[{"text":"The order"}]}}]}"#;
    let heard_of = heard(&[begun]).await;
    assert_eq!(heard_of.text, "The order");
    assert_eq!(heard_of.outcome.unwrap_err().class, ModelErrorClass::Incomplete);

    let errors = [
        (
            r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#,
            ModelErrorClass::Overloaded,
        ),
        (
            r#"{"error":{"code":500,"message":"sorry","status":"INTERNAL"}}"#,
            ModelErrorClass::Server,
        ),
        (
            r#"{"error":{"code":499,"message":"cancelled","status":"CANCELLED"}}"#,
            ModelErrorClass::Incomplete,
        ),
        (r#"{"error":"odd"}"#, ModelErrorClass::Incomplete),
        (r#"{"candidates":[{"content"#, ModelErrorClass::Protocol),
        (r#"{"candidates":7}"#, ModelErrorClass::Protocol),
    ];
    for (chunk, class) in errors {
        let heard = heard(&[begun, chunk]).await;
        assert_eq!(heard.text, "The order");
        assert_eq!(heard.outcome.unwrap_err().class, class, "{chunk}");
    }
}
