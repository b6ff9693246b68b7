//! Reading streams.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{Message, ModelErrorClass, StopReason, ToolCall, VendorContent};

use super::{REASONED, builder, heard, lines, sent, tools};
use crate::support::{Reply, Server, ask, request};

#[tokio::test]
async fn text_reasoning_calls_and_usage_are_heard() {
    let heard = heard(&REASONED).await;
    assert_eq!(heard.text, "I look bÖth up.");
    assert_eq!(heard.reasoning, "I need both.");
    let response = heard.outcome.unwrap();
    assert_eq!(response.text, heard.text);
    assert_eq!(response.stop, StopReason::Finished);
    let counts = (response.usage.input_tokens, response.usage.output_tokens);
    assert_eq!(counts, (80, 34));
    let calls = [
        ToolCall::unparsed("", "find_order", r#"{"order_id":1042,"b":1}"#),
        ToolCall::unparsed("x", "find_order", r#"{"order_id":7}"#),
        ToolCall::unparsed("", "find_order", "{}"),
    ];
    assert_eq!(response.calls, calls);

    // Its thinking goes back, and to no other vendor's model.
    let said = |vendor| Message::Assistant { text: "So.".into(), calls: Vec::new(), vendor };
    let body = sent(request(vec![Message::user("Hi"), said(response.vendor)], tools())).await;
    let expected = json!({"role": "assistant", "content": "So.", "thinking": "I need both."});
    assert_eq!(body["messages"][2], expected);
    let foreign = VendorContent { vendor: "openai".into(), content: "I need both.".into() };
    let messages = vec![Message::user("Hi"), said(Some(Arc::new(foreign)))];
    let body = sent(request(messages, tools())).await;
    assert_eq!(body["messages"][2], json!({"role": "assistant", "content": "So."}));
}

#[tokio::test]
async fn an_answer_is_the_same_wherever_the_network_cuts_it() {
    // The last line may lack its end.
    let stream = lines(&REASONED).trim_end().to_owned();
    let whole = heard(&REASONED).await;
    let expected = whole.outcome.unwrap();
    let replies: Vec<_> = (1..stream.len()).map(|at| Reply::lines(&stream).cut_at(at)).collect();
    let cuts = replies.len();
    let server = Server::start(replies).await;
    let model = Arc::new(builder(&server).build().unwrap());
    for cut in 1..=cuts {
        let heard = ask(&model, request(vec![Message::user("Hi")], tools())).await;
        assert_eq!(heard.reasoning, whole.reasoning, "cut at {cut}");
        assert_eq!(heard.outcome.unwrap(), expected, "cut at {cut}");
    }
}

#[tokio::test]
async fn odd_streams_are_read() {
    let odd = [
        r#"{"status":"loading"}"#,
        r#"{"message":null,"done":null}"#,
        "",
        r#"{"message":{"role":"assistant","content":"","images":null,"tool_calls":null,"thinking":null},"done":false,"error":null}"#,
        r#"{"message":{"role":"assistant","content":null,"made_up":{"a":[1]},"tool_calls":[{}]},"remote_model":"x"}"#,
        r#"{"message":{"content":"Hi"}}"#,
        r#"{"message":{"content":" there."},"done":true,"done_reason":"stop","prompt_eval_count":null}"#,
        r#"{"message":{"content":"nobody reads this"}}"#,
    ];
    let response = heard(&odd).await.outcome.unwrap();
    assert_eq!(response.text, "Hi there.");
    assert_eq!(response.calls, []);
    assert_eq!(response.vendor, None);
}

#[tokio::test]
async fn why_the_model_stopped_is_told() {
    let stops = [
        (r#","done_reason":"stop""#, StopReason::Finished),
        (r#","done_reason":"length""#, StopReason::MaxTokens),
        (r#","done_reason":"load""#, StopReason::Other),
        ("", StopReason::Other),
    ];
    for (reason, expected) in stops {
        let line = format!(r#"{{"message":{{"content":"ok"}},"done":true{reason}}}"#);
        assert_eq!(heard(&[&line]).await.outcome.unwrap().stop, expected, "{reason}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let begun = r#"{"message":{"content":"The order"},"done":false}"#;
    let cases = [
        (
            r#"{"error":"an error was encountered while running the model"}"#,
            ModelErrorClass::Incomplete,
        ),
        (
            r#"{"error":"the input length exceeds the context length"}"#,
            ModelErrorClass::ContextOverflow,
        ),
        (r#"{"error":{"message":"as another vendor says it"}}"#, ModelErrorClass::Incomplete),
        (r#"{"message":{"content"#, ModelErrorClass::Protocol),
        (r#"{"message":{"content":7}}"#, ModelErrorClass::Protocol),
        ("", ModelErrorClass::Incomplete),
    ];
    for (line, class) in cases {
        let heard = heard(&[begun, line]).await;
        assert_eq!(heard.text, "The order");
        assert_eq!(heard.outcome.unwrap_err().class, class, "{line}");
    }
}

#[tokio::test]
async fn a_refusal_is_put_in_a_class() {
    let cases = [
        (
            400,
            r#"{"error":"registry.ollama.ai/library/m:latest does not support tools"}"#,
            ModelErrorClass::BadRequest,
        ),
        (
            400,
            r#"{"error":"the input length exceeds the context length"}"#,
            ModelErrorClass::ContextOverflow,
        ),
        (401, r#"{"error":"unauthorized"}"#, ModelErrorClass::Auth),
        (404, r#"{"error":"model 'm' not found"}"#, ModelErrorClass::BadRequest),
        (429, r#"{"error":"you've reached your hourly usage limit"}"#, ModelErrorClass::RateLimit),
        (
            500,
            r#"{"error":"llama runner process has terminated: signal: killed"}"#,
            ModelErrorClass::Server,
        ),
        (503, r#"{"error":"server busy, please try again."}"#, ModelErrorClass::Overloaded),
    ];
    for (status, body, class) in cases {
        let server = Server::start([Reply::json(status, body)]).await;
        let model = Arc::new(builder(&server).build().unwrap());
        let heard = ask(&model, request(vec![Message::user("Hi")], Vec::new())).await;
        let error = heard.outcome.unwrap_err();
        assert_eq!((error.class, error.status), (class, Some(status)), "{body}");
        let words = body.trim_start_matches(r#"{"error":""#).trim_end_matches(r#""}"#);
        assert!(error.message.contains(words), "{}", error.message);
    }
}

#[tokio::test]
async fn the_models_that_were_pulled_are_listed() {
    let list = r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b"},{"model":"nameless"}]}"#;
    let server = Server::start([Reply::json(200, list)]).await;
    let model = builder(&server).build().unwrap();
    assert_eq!(model.list_models().await.unwrap(), ["qwen3:8b"]);
    assert_eq!(server.last().line(), "GET /api/tags");
}
