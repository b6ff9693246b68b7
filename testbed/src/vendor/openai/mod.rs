//! OpenAI's Chat Completions; its Responses, in `responses`, share much of it.

mod reply;
mod request;
mod schema;

use axum::http::HeaderMap;
use serde_json::{Value, json};

pub(crate) use self::{
    reply::{stream, whole},
    request::{function_name, not_empty, only, read},
    schema::check as check_schema,
};
use crate::{
    reading::{Fault, FaultKind, Place},
    refusal::{Refusal, RefusalKind},
    vendor::bearer,
};

/// When everything here was made, in seconds. It never changes, so that the same requests get the
/// same bytes.
pub(crate) const CREATED: u64 = 1_767_225_600;

pub(crate) fn check_key(headers: &HeaderMap, key: &str) -> Result<(), Refusal> {
    match bearer(headers) {
        Some(given) if given == key => Ok(()),
        Some(given) => Err(Refusal::new(
            RefusalKind::WrongKey,
            format!("Incorrect API key provided: {}.", veiled(given)),
        )),
        None => Err(Refusal::new(
            RefusalKind::NoKey,
            "You didn't provide an API key: use an Authorization header with `Bearer YOUR_KEY`.",
        )),
    }
}

/// A key as the vendor quotes it back: clients must not pass such a message on.
fn veiled(key: &str) -> String {
    let start: String = key.chars().take(8).collect();
    format!("{start}***")
}

pub(crate) fn models(model: &str) -> Value {
    json!({
        "object": "list",
        "data": [{ "id": model, "object": "model", "created": CREATED, "owned_by": "testbed" }],
    })
}

pub(crate) fn refused(fault: &Fault) -> Refusal {
    Refusal::of_fault(fault, Place::bracketed, described, code)
}

fn described(place: &str, kind: &FaultKind) -> String {
    match kind {
        FaultKind::Missing => format!("Missing required parameter: '{place}'."),
        FaultKind::Unknown => format!("Unknown parameter: '{place}'."),
        FaultKind::Type(expected) => {
            format!("Invalid type for '{place}': expected {expected}.")
        }
        FaultKind::Value(sentence, _) => format!("Invalid '{place}': {sentence}."),
    }
}

fn code(kind: &FaultKind) -> Option<&'static str> {
    match kind {
        FaultKind::Missing => Some("missing_required_parameter"),
        FaultKind::Unknown => Some("unknown_parameter"),
        FaultKind::Type(_) => Some("invalid_type"),
        FaultKind::Value(_, code) => *code,
    }
}

/// The body of a refusal.
pub(crate) fn error(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.kind {
        RefusalKind::Invalid | RefusalKind::NoKey | RefusalKind::Method => {
            ("invalid_request_error", None)
        }
        RefusalKind::WrongKey => ("invalid_request_error", Some("invalid_api_key")),
        RefusalKind::NotFound => ("invalid_request_error", Some("model_not_found")),
        RefusalKind::RateLimit => ("requests", Some("rate_limit_exceeded")),
        RefusalKind::Quota => ("insufficient_quota", Some("insufficient_quota")),
        RefusalKind::ContextOverflow => ("invalid_request_error", Some("context_length_exceeded")),
        RefusalKind::ContentFilter => ("invalid_request_error", Some("content_policy_violation")),
        RefusalKind::Overloaded | RefusalKind::Server => ("server_error", None),
    };
    json!({ "error": {
        "message": refusal.message,
        "type": kind,
        "param": refusal.place,
        "code": refusal.code.or(code),
    } })
}
