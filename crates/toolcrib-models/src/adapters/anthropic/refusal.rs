//! Classifies the vendor's errors.

use serde_json::Value;
use toolcrib_core::ModelErrorClass;

use crate::adapters::{
    failure::{is_no_credit, says_context_overflow, says_no_credit},
    protocol::Refusal,
};

/// Reads `{"type":"error","error":{…}}`: the body of an error response, or an event of a stream.
pub(super) fn read(body: &Value) -> Refusal {
    let text = |path: &str| body.pointer(path).and_then(Value::as_str);
    let message = text("/error/message");
    let code = text("/error/details/error_code").unwrap_or_default();
    let kind = text("/error/type").unwrap_or_default();
    Refusal {
        class: class(kind, code, message.unwrap_or_default()),
        message: message.map(str::to_owned),
        retry_after: None,
    }
}

/// The same for an error in the stream of a response, which has no status.
pub(super) fn in_stream(event: &Value) -> Refusal {
    let refusal = read(event);
    let kind = event.pointer("/error/type").and_then(Value::as_str);
    let class = refusal.class.or_else(|| match kind? {
        "invalid_request_error" | "not_found_error" => Some(ModelErrorClass::BadRequest),
        _ => None,
    });
    Refusal { class, ..refusal }
}

fn class(kind: &str, code: &str, message: &str) -> Option<ModelErrorClass> {
    let is_about_money =
        is_no_credit(code) || says_no_credit(message) || says(message, &["usage limits"]);
    match kind {
        "billing_error" => Some(ModelErrorClass::Quota),
        "invalid_request_error" | "rate_limit_error" if is_about_money => {
            Some(ModelErrorClass::Quota)
        }
        "invalid_request_error" if says(message, &["content filtering policy"]) => {
            Some(ModelErrorClass::ContentFilter)
        }
        "invalid_request_error"
            if says_context_overflow(message) || says(message, &["exceed context limit"]) =>
        {
            Some(ModelErrorClass::ContextOverflow)
        }
        // The request has more bytes than allowed.
        "request_too_large" => Some(ModelErrorClass::ContextOverflow),
        "authentication_error" | "permission_error" => Some(ModelErrorClass::Auth),
        "rate_limit_error" => Some(ModelErrorClass::RateLimit),
        "overloaded_error" | "timeout_error" => Some(ModelErrorClass::Overloaded),
        "api_error" => Some(ModelErrorClass::Server),
        _ => None,
    }
}

fn says(message: &str, phrases: &[&str]) -> bool {
    let message = message.to_lowercase();
    phrases.iter().any(|phrase| message.contains(phrase))
}
