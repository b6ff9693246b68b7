//! Errors, and lists of models.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_core::{Message, ModelErrorClass};

use super::builder;
use crate::support::{Reply, Server, ask, request};

#[tokio::test]
async fn a_refusal_is_put_in_a_class() {
    let quota = |id: &str, value: &str| {
        json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.", "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id, "quotaValue": value}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "28.5s"},
        ]}})
    };
    let plain = |code: u16, status: &str, message: &str| json!({"error": {"code": code, "status": status, "message": message}});
    let wait = Some(Duration::from_millis(28_500));
    let too_long =
        "The input token count (1180042) exceeds the maximum number of tokens allowed (1048576).";
    let wrong_key = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "Wrong.", "details": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
    ]}});
    let cases = [
        (400, wrong_key, ModelErrorClass::Auth, None),
        (
            400,
            plain(400, "INVALID_ARGUMENT", "API key expired. Please renew it."),
            ModelErrorClass::Auth,
            None,
        ),
        (403, plain(403, "PERMISSION_DENIED", "no"), ModelErrorClass::Auth, None),
        (
            429,
            quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "10"),
            ModelErrorClass::RateLimit,
            wait,
        ),
        (
            429,
            quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "50"),
            ModelErrorClass::Quota,
            wait,
        ),
        (
            429,
            quota("GenerateContentInputTokensPerModelPerMinute-FreeTier", "0"),
            ModelErrorClass::Quota,
            wait,
        ),
        (
            429,
            plain(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
            ModelErrorClass::Quota,
            None,
        ),
        (
            429,
            plain(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted."),
            ModelErrorClass::RateLimit,
            None,
        ),
        (400, plain(400, "INVALID_ARGUMENT", too_long), ModelErrorClass::ContextOverflow, None),
        (
            400,
            plain(400, "INVALID_ARGUMENT", "contents is not specified"),
            ModelErrorClass::BadRequest,
            None,
        ),
        (
            400,
            plain(400, "FAILED_PRECONDITION", "User location is not supported."),
            ModelErrorClass::BadRequest,
            None,
        ),
        (404, plain(404, "NOT_FOUND", "models/x is not found"), ModelErrorClass::BadRequest, None),
        (
            500,
            plain(500, "INTERNAL", "An internal error has occurred."),
            ModelErrorClass::Server,
            None,
        ),
        (503, plain(503, "UNAVAILABLE", "overloaded"), ModelErrorClass::Overloaded, None),
        (504, plain(504, "DEADLINE_EXCEEDED", "too late"), ModelErrorClass::Overloaded, None),
        (503, json!([plain(503, "UNAVAILABLE", "in a list")]), ModelErrorClass::Overloaded, None),
        (502, json!("a proxy"), ModelErrorClass::Overloaded, None),
    ];
    for (status, body, class, retry_after) in cases {
        let server = Server::start([Reply::json(status, &body.to_string())]).await;
        let model = builder(&server, "gemini-3.8-flash").build().unwrap();
        let heard = ask(&Arc::new(model), request(vec![Message::user("Hi")], Vec::new())).await;
        let error = heard.outcome.unwrap_err();
        assert_eq!(error.class, class, "{body}");
        assert_eq!(error.status, Some(status));
        assert_eq!(error.retry_after, retry_after, "{body}");
        if let Some(words) = body["error"]["message"].as_str() {
            assert!(error.message.contains(words), "{}", error.message);
        }
    }
}

#[tokio::test]
async fn the_models_that_answer_are_listed() {
    let list = json!({"models": [
        {"name": "models/gemini-3.8-flash", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/gemini-embedding", "supportedGenerationMethods": ["embedContent"]},
        {"name": "tunedModels/mine"},
        {"displayName": "nameless"},
    ]});
    let server = Server::start([Reply::json(200, &list.to_string())]).await;
    let model = builder(&server, "gemini-3.8-flash").build().unwrap();
    assert_eq!(model.list_models().await.unwrap(), ["gemini-3.8-flash", "tunedModels/mine"]);
    assert_eq!(server.last().line(), "GET /v1/models?pageSize=1000");
    assert_eq!(server.last().header("x-goog-api-key"), Some("a-dummy-key"));
}
