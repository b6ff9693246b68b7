//! Anthropic's Messages.

mod blocks;
mod reply;
mod request;

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

pub(crate) use self::{
    reply::{stream, whole},
    request::read,
};
use crate::{
    reading::{Fault, FaultKind, Place},
    refusal::{Refusal, RefusalKind},
    vendor::{bearer, header},
};

/// A version of the protocol, one of which every request must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// `2023-06-01`.
    First,
    /// `2026-10-21`, which has no sampling parameters.
    Second,
}

pub(crate) fn check_key(headers: &HeaderMap, key: &str) -> Result<(), Refusal> {
    match header(headers, "x-api-key").or_else(|| bearer(headers)) {
        Some(given) if given == key => Ok(()),
        Some(_) => Err(Refusal::new(RefusalKind::WrongKey, "invalid x-api-key")),
        None => Err(Refusal::new(RefusalKind::NoKey, "x-api-key header is required")),
    }
}

pub(crate) fn version(headers: &HeaderMap) -> Result<Version, Refusal> {
    let invalid = |sentence: String| Err(Refusal::new(RefusalKind::Invalid, sentence));
    match header(headers, "anthropic-version") {
        Some("2023-06-01") => Ok(Version::First),
        Some("2026-10-21") => Ok(Version::Second),
        Some(other) => invalid(format!("anthropic-version: \"{other}\" is not a valid version")),
        None => invalid("anthropic-version: header is required".to_owned()),
    }
}

pub(crate) fn models(model: &str) -> Value {
    json!({
        "data": [{
            "type": "model", "id": model, "display_name": model,
            "created_at": "2026-01-01T00:00:00Z", "lifecycle": "active",
        }],
        "has_more": false, "first_id": model, "last_id": model,
    })
}

pub(crate) fn refused(fault: &Fault) -> Refusal {
    Refusal::of_fault(fault, Place::dotted, described, |_| None)
}

fn described(place: &str, kind: &FaultKind) -> String {
    match kind {
        FaultKind::Missing => format!("{place}: Field required"),
        FaultKind::Unknown => format!("{place}: Extra inputs are not permitted"),
        FaultKind::Type(expected) => format!("{place}: Input should be a valid {expected}"),
        FaultKind::Value(sentence, _) if place.is_empty() => sentence.clone(),
        FaultKind::Value(sentence, _) => format!("{place}: {sentence}"),
    }
}

pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    match refusal.kind {
        RefusalKind::Quota => StatusCode::PAYMENT_REQUIRED,
        RefusalKind::Overloaded => {
            StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
        }
        _ => refusal.usual_status(),
    }
}

/// The body of a refusal.
pub(crate) fn error(refusal: &Refusal, id: &str) -> Value {
    let kind = match refusal.kind {
        RefusalKind::Invalid | RefusalKind::ContextOverflow | RefusalKind::ContentFilter => {
            "invalid_request_error"
        }
        RefusalKind::NoKey | RefusalKind::WrongKey => "authentication_error",
        RefusalKind::NotFound | RefusalKind::Method => "not_found_error",
        RefusalKind::RateLimit => "rate_limit_error",
        RefusalKind::Quota => "billing_error",
        RefusalKind::Overloaded => "overloaded_error",
        RefusalKind::Server => "api_error",
    };
    // Nothing else tells it from other bad requests.
    let begin = match refusal.kind {
        RefusalKind::ContextOverflow => "prompt is too long: ",
        _ => "",
    };
    json!({
        "type": "error",
        "error": { "type": kind, "message": format!("{begin}{}", refusal.message) },
        "request_id": format!("req_{id}"),
    })
}
