//! What becomes of a model that fails.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_core::{Model, ModelError, ModelErrorClass, ModelRequest, ModelStream};
use toolcrib_testbed::{ModelServer, Protocol};

use crate::answers::{ask, body, user};

/// Fails as it is told.
struct Failing(ModelErrorClass);

impl Model for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn respond(self: Arc<Self>, _: ModelRequest) -> ModelStream {
        let mut error = ModelError::new(self.0, "so it is");
        error.retry_after = Some(Duration::from_secs(3));
        Box::pin(futures_util::stream::iter([Err(error)]))
    }
}

#[tokio::test]
async fn a_models_failure_is_the_vendors() {
    use ModelErrorClass::{ContextOverflow, NoRule, Overloaded, Quota, RateLimit};
    let cases = [
        (Protocol::OpenAi, RateLimit, 429, "rate_limit_exceeded"),
        (Protocol::OpenAi, Quota, 429, "insufficient_quota"),
        (Protocol::OpenAi, Overloaded, 503, "server_error"),
        (Protocol::OpenAi, ContextOverflow, 400, "context_length_exceeded"),
        (Protocol::OpenAi, NoRule, 500, "so it is"),
        (Protocol::Anthropic, RateLimit, 429, "rate_limit_error"),
        (Protocol::Anthropic, Quota, 402, "billing_error"),
        (Protocol::Anthropic, Overloaded, 529, "overloaded_error"),
        (Protocol::Anthropic, ContextOverflow, 400, "prompt is too long"),
        (Protocol::Anthropic, NoRule, 500, "api_error"),
        (Protocol::Gemini, RateLimit, 429, "\"retryDelay\":\"3s\""),
        (Protocol::Gemini, Quota, 429, "exceeded your current quota"),
        (Protocol::Gemini, Overloaded, 503, "UNAVAILABLE"),
        (Protocol::Gemini, ContextOverflow, 400, "input token count"),
        (Protocol::Gemini, NoRule, 500, "INTERNAL"),
        (Protocol::Ollama, Overloaded, 503, "so it is"),
    ];
    for (protocol, class, status, words) in cases {
        let server = ModelServer::start(Arc::new(Failing(class))).await.unwrap();
        let came = ask(&server, protocol, &body(protocol, &json!([user(protocol, "hello")]))).await;
        let shown = format!("{protocol:?} {class:?}: {} {}", came.status, came.text());
        assert!(came.status == status && came.text().contains(words), "{shown}");
        let in_header = came.head.contains("retry-after: 3");
        assert_eq!(in_header, protocol != Protocol::Gemini, "{shown}");
    }
}
