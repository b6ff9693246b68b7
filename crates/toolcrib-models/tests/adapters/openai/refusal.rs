//! Errors, and failed responses.

use super::*;

#[tokio::test]
async fn errors_in_a_stream_have_a_class() {
    use ModelErrorClass as Class;
    let named = |error: Value| event(&json!({ "error": error }));
    let cases = [
        (
            named(json!({ "message": "It failed.", "type": "server_error", "code": null })),
            Class::Server,
        ),
        (
            named(json!({ "message": "It failed.", "code": "rate_limit_exceeded" })),
            Class::RateLimit,
        ),
        (named(json!({ "message": "It failed.", "code": 429 })), Class::RateLimit),
        (named(json!({ "message": "It failed.", "code": "502" })), Class::Overloaded),
        (named(json!({ "message": "It failed.", "code": 200 })), Class::Incomplete),
        (
            named(json!({ "message": "It failed. The context length is 10", "code": 400 })),
            Class::ContextOverflow,
        ),
        (named(json!({ "message": "It failed: maximum context length" })), Class::ContextOverflow),
        (named(json!({ "message": "It failed.", "type": "insufficient_quota" })), Class::Quota),
        (named(json!("It failed.")), Class::Incomplete),
        (event(&json!({ "object": "error", "message": "It failed.", "code": 500 })), Class::Server),
        ("event: error\ndata: {\"message\":\"It failed.\"}\n\n".to_owned(), Class::Incomplete),
        (
            choice(&json!({ "delta": { "content": "" }, "finish_reason": "error",
            "error": { "code": 503, "message": "It failed." } })),
            Class::Overloaded,
        ),
    ];
    for (error, class) in cases {
        let heard = heard(&format!("{}{error}{DONE}", text("The order"))).await;
        assert_eq!(heard.text, "The order");
        let found = heard.outcome.unwrap_err();
        assert_eq!(found.class, class, "{error}");
        assert!(found.message.contains("It failed"), "{}", found.message);
    }
    let error = heard("data: {\"choices\": [\n\n").await.outcome.unwrap_err();
    assert_eq!(error.class, Class::Protocol);
}

#[tokio::test]
async fn refusals_have_a_class_the_vendors_words_and_how_long_to_wait() {
    use ModelErrorClass as Class;
    let error = |error: Value| json!({ "error": error }).to_string();
    let retry = r#"[{"error":{"code":429,"message":"Slow down.","status":"RESOURCE_EXHAUSTED","details":[{},{"retryDelay":"34.5s"}]}}]"#;
    let seconds = Duration::from_secs_f64;
    let cases = [
        (
            401,
            error(json!({ "message": "Incorrect API key", "code": "invalid_api_key" })),
            Class::Auth,
            "Incorrect API key",
            None,
        ),
        (
            400,
            error(
                json!({ "message": "Please pass a valid API key.", "status": "INVALID_ARGUMENT" }),
            ),
            Class::Auth,
            "pass a valid",
            None,
        ),
        (
            403,
            error(json!({ "message": "Not allowed", "code": "model_not_found" })),
            Class::Auth,
            "Not allowed",
            None,
        ),
        (
            404,
            error(json!({ "message": "No such model", "code": "model_not_found" })),
            Class::BadRequest,
            "No such model",
            None,
        ),
        (
            429,
            error(
                json!({ "message": "You exceeded your current quota", "code": "insufficient_quota" }),
            ),
            Class::Quota,
            "current quota",
            None,
        ),
        (
            402,
            error(json!({ "message": "Insufficient credits", "code": 402 })),
            Class::Quota,
            "credits",
            None,
        ),
        (
            429,
            error(
                json!({ "message": "Rate limit reached. Please try again in 6m1.5s. Visit", "type": "tokens" }),
            ),
            Class::RateLimit,
            "Rate limit",
            Some(seconds(361.5)),
        ),
        (429, retry.to_owned(), Class::RateLimit, "Slow down.", Some(seconds(34.5))),
        (
            400,
            error(json!({ "message": "Too long", "code": "context_length_exceeded" })),
            Class::ContextOverflow,
            "Too long",
            None,
        ),
        (
            400,
            error(
                json!({ "message": "Too long", "type": "exceed_context_size_error", "code": 400 }),
            ),
            Class::ContextOverflow,
            "Too long",
            None,
        ),
        (
            400,
            error(json!({ "message": "This model's maximum context length is 10 tokens" })),
            Class::ContextOverflow,
            "maximum",
            None,
        ),
        (
            400,
            error(json!({ "message": "Filtered", "code": "content_filter" })),
            Class::ContentFilter,
            "Filtered",
            None,
        ),
        (
            400,
            error(
                json!({ "message": "Blocked", "type": "x", "misalignment": { "error_type": "other" } }),
            ),
            Class::ContentFilter,
            "Blocked",
            None,
        ),
        (
            400,
            error(json!({ "message": "Unknown field", "type": "invalid_request_error" })),
            Class::BadRequest,
            "Unknown field",
            None,
        ),
        (
            400,
            error(
                json!({ "message": "Provider returned error", "metadata": { "raw": "bad tool" } }),
            ),
            Class::BadRequest,
            "error: bad tool",
            None,
        ),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"Extra inputs"}]}"#.to_owned(),
            Class::BadRequest,
            "Extra inputs",
            None,
        ),
        (
            400,
            r#"{"object":"error","message":"Bad thing","code":400}"#.to_owned(),
            Class::BadRequest,
            "Bad thing",
            None,
        ),
        (
            400,
            r#"{"error":"no model loaded"}"#.to_owned(),
            Class::BadRequest,
            "no model loaded",
            None,
        ),
        (
            500,
            error(json!({ "message": "Oops", "type": "server_error" })),
            Class::Server,
            "Oops",
            None,
        ),
        (
            503,
            error(json!({ "message": "Loading model", "type": "unavailable_error" })),
            Class::Overloaded,
            "Loading",
            None,
        ),
        (502, "<html>Bad Gateway</html>".to_owned(), Class::Overloaded, "Bad Gateway", None),
        (418, "{}".to_owned(), Class::BadRequest, "{}", None),
    ];
    for (status, body, class, words, wait) in cases {
        let found = heard_of(Reply::json(status, &body)).await.outcome.unwrap_err();
        assert_eq!((found.class, found.status), (class, Some(status)), "{body}");
        assert!(found.message.contains(words), "{}", found.message);
        assert_eq!(found.retry_after, wait, "{body}");
    }
    // The header has precedence over the message.
    let body = error(json!({ "message": "Please try again in 20s." }));
    let reply = Reply::json(429, &body).header("retry-after-ms", "1500");
    let found = heard_of(reply).await.outcome.unwrap_err();
    assert_eq!(found.retry_after, Some(Duration::from_millis(1500)));
}
