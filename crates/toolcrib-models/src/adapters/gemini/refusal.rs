//! Classifies Gemini's errors.

use std::time::Duration;

use serde_json::Value;
use toolcrib_core::ModelErrorClass;

use crate::adapters::{
    failure::{says_context_overflow, says_no_credit},
    protocol::Refusal,
};

/// The error of a response body.
pub(super) fn of_body(body: &Value) -> Refusal {
    // Outside of SSE, it is a list of one.
    let body = body.get(0).unwrap_or(body);
    body.get("error").map(of_error).unwrap_or_default()
}

/// The error itself, or one in a chunk of a response.
pub(super) fn of_error(error: &Value) -> Refusal {
    let message = error.get("message").unwrap_or(error).as_str();
    let details = error.get("details").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let status = error.get("status").and_then(Value::as_str).unwrap_or_default();
    Refusal {
        class: class(status, message.unwrap_or_default(), details),
        message: message.map(str::to_owned),
        retry_after: retry_after(details),
    }
}

fn class(status: &str, message: &str, details: &[Value]) -> Option<ModelErrorClass> {
    let class = match status {
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => ModelErrorClass::Auth,
        "RESOURCE_EXHAUSTED" if is_used_up(message, details) => ModelErrorClass::Quota,
        "RESOURCE_EXHAUSTED" => ModelErrorClass::RateLimit,
        "UNAVAILABLE" | "DEADLINE_EXCEEDED" => ModelErrorClass::Overloaded,
        "INTERNAL" | "UNKNOWN" | "DATA_LOSS" => ModelErrorClass::Server,
        // Gemini reports a wrong key as a bad request.
        "INVALID_ARGUMENT" if is_about_key(message, details) => ModelErrorClass::Auth,
        "INVALID_ARGUMENT" if says_context_overflow(message) => ModelErrorClass::ContextOverflow,
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" | "NOT_FOUND" => {
            ModelErrorClass::BadRequest
        }
        _ => return None,
    };
    Some(class)
}

fn is_about_key(message: &str, details: &[Value]) -> bool {
    let reasons = details.iter().filter_map(|detail| detail.get("reason")?.as_str());
    reasons.into_iter().any(|reason| reason.starts_with("API_KEY_"))
        || message.starts_with("API key")
}

/// Whether the exhausted quota does not recover within minutes. After the delay that it names, the
/// same error would occur again.
fn is_used_up(message: &str, details: &[Value]) -> bool {
    let violations =
        details.iter().filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    let text = |violation: &Value, field: &str| {
        violation.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    says_no_credit(message)
        || violations.into_iter().any(|violation| {
            text(violation, "quotaId").contains("PerDay") || text(violation, "quotaValue") == "0"
        })
}

/// `google.rpc.RetryInfo`: seconds with an `s`.
fn retry_after(details: &[Value]) -> Option<Duration> {
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}
