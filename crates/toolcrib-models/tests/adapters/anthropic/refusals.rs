//! Errors, and their classes.

use serde_json::{Value, json};
use toolcrib_core::{ModelError, ModelErrorClass};

use super::{event, heard, hello, model, started, stopped, text};
use crate::support::{Reply, Server, ask};

#[tokio::test]
async fn errors_in_a_stream_are_told_by_their_class() {
    let error = |kind: &str, message: &str| {
        event(&json!({ "type": "error", "error": { "type": kind, "message": message } }))
    };
    let declined = |details: Value| {
        event(&json!({ "type": "message_delta", "delta": {
            "stop_reason": "refusal", "stop_details": details,
        }}))
    };
    let cases = [
        (error("overloaded_error", "Overloaded"), ModelErrorClass::Overloaded, "Overloaded"),
        (error("api_error", "Internal"), ModelErrorClass::Server, "Internal"),
        (error("rate_limit_error", "Slow down"), ModelErrorClass::RateLimit, "Slow down"),
        (error("invalid_request_error", "No"), ModelErrorClass::BadRequest, "No"),
        (error("made_up_error", "Hm"), ModelErrorClass::Incomplete, "Hm"),
        (
            "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}\n\n".to_owned(),
            ModelErrorClass::Server,
            "the vendor failed",
        ),
        (
            "event: error\ndata: upstream gone\n\n".to_owned(),
            ModelErrorClass::Incomplete,
            "upstream gone",
        ),
        (
            "event: content_block_delta\ndata: {\"type\":\n\n".to_owned(),
            ModelErrorClass::Protocol,
            "cannot be read",
        ),
        (
            declined(json!({ "category": "cyber", "explanation": "Not that." })),
            ModelErrorClass::ContentFilter,
            "Not that.; category cyber",
        ),
        (declined(json!(null)), ModelErrorClass::ContentFilter, "refuses to answer"),
    ];
    for (bad, class, words) in cases {
        let stream = format!("{}{}{bad}{}", started(), text(0, "So far"), stopped("end_turn"));
        let heard = heard(&stream).await;
        assert_eq!(heard.text, "So far");
        let error = heard.outcome.unwrap_err();
        assert_eq!(error.class, class, "{bad}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn refusals_are_told_by_their_class() {
    use ModelErrorClass::{
        Auth, BadRequest, ContentFilter, ContextOverflow, Overloaded, Quota, RateLimit, Server,
    };
    let cases = [
        (
            400,
            "invalid_request_error",
            "messages: text content blocks must be non-empty",
            BadRequest,
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 209042 tokens > 200000",
            ContextOverflow,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            ContextOverflow,
        ),
        (400, "invalid_request_error", "Your credit balance is too low to access", Quota),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", Quota),
        (400, "invalid_request_error", "Output blocked by content filtering policy", ContentFilter),
        (401, "authentication_error", "invalid x-api-key", Auth),
        (402, "billing_error", "no payment method", Quota),
        (403, "permission_error", "not allowed", Auth),
        (404, "not_found_error", "model: claude-none", BadRequest),
        (413, "request_too_large", "Request exceeds the maximum size", ContextOverflow),
        (429, "rate_limit_error", "too many tokens", RateLimit),
        (500, "api_error", "Internal server error", Server),
        (504, "timeout_error", "took too long", Overloaded),
        (529, "overloaded_error", "Overloaded", Overloaded),
        (418, "made_up_error", "a teapot", BadRequest),
    ];
    for (status, kind, words, class) in cases {
        let body = json!({ "type": "error", "error": { "type": kind, "message": words } });
        let error = refused(Reply::json(status, &body.to_string())).await;
        assert_eq!(error.class, class, "{status} {kind} {words}");
        assert_eq!(error.status, Some(status));
        assert!(error.message.contains(words), "{error}");
    }
    let spent = json!({ "type": "error", "error": {
        "type": "rate_limit_error", "message": "No.",
        "details": { "error_code": "enforced_spend_limit_reached" },
    }});
    assert_eq!(refused(Reply::json(429, &spent.to_string())).await.class, Quota);
    let page = refused(Reply::json(529, "<html>busy, sk-ant-test</html>")).await;
    assert_eq!(page.class, Overloaded);
    assert!(page.message.contains("busy") && !page.message.contains("sk-ant-test"), "{page}");
    let wait = refused(Reply::json(429, "{}").header("retry-after", "7")).await;
    assert_eq!(wait.retry_after.unwrap().as_secs(), 7);
}

async fn refused(reply: Reply) -> ModelError {
    let server = Server::start([reply]).await;
    ask(&model(&server, |builder| builder), hello()).await.outcome.unwrap_err()
}

#[tokio::test]
async fn models_are_listed_but_for_retired_ones() {
    let list = json!({ "has_more": false, "data": [
        { "type": "model", "id": "claude-a", "lifecycle": "active" },
        { "type": "model", "id": "claude-b", "lifecycle": "retired" },
        { "type": "model", "id": "claude-c" },
        { "type": "model" },
    ]});
    let server = Server::start([Reply::json(200, &list.to_string())]).await;
    let names = model(&server, |builder| builder).list_models().await.unwrap();
    assert_eq!(names, ["claude-a", "claude-c"]);
    assert_eq!(server.last().line(), "GET /v1/models?limit=1000");
    assert_eq!(server.last().header("x-api-key"), Some("sk-ant-test"));
}
