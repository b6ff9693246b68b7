//! Google's Gemini: generateContent and streamGenerateContent.

mod contents;
mod names;
mod reply;
mod request;
mod schema;

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

pub(crate) use self::{
    reply::{stream, whole},
    request::read,
};
use crate::{
    reading::{Fault, FaultKind, Place},
    refusal::{Refusal, RefusalKind},
    vendor::{header, set},
};

/// The key stands in a header, or in the query.
pub(crate) fn check_key(headers: &HeaderMap, query: &str, key: &str) -> Result<(), Refusal> {
    let in_query = || query.split('&').find_map(|pair| pair.strip_prefix("key="));
    match header(headers, "x-goog-api-key").or_else(in_query) {
        Some(given) if given == key => Ok(()),
        Some(_) => Err(Refusal::new(
            RefusalKind::WrongKey,
            "API key not valid. Please pass a valid API key.",
        )),
        None => Err(Refusal::new(
            RefusalKind::NoKey,
            "Method doesn't allow unregistered callers: use an API key.",
        )),
    }
}

pub(crate) fn models(model: &str) -> Value {
    json!({ "models": [{
        "name": format!("models/{model}"),
        "version": "001",
        "displayName": model,
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent"],
    }] })
}

pub(crate) fn refused(fault: &Fault) -> Refusal {
    Refusal::of_fault(fault, Place::bracketed, described, |_| None)
}

fn described(place: &str, kind: &FaultKind) -> String {
    match kind {
        FaultKind::Missing => format!("* GenerateContentRequest.{place}: required, and not there"),
        FaultKind::Unknown => {
            let (at, name) = place.rsplit_once('.').unwrap_or(("", place));
            let at = if at.is_empty() { String::new() } else { format!(" at '{at}'") };
            format!(
                "Invalid JSON payload received. Unknown name \"{name}\"{at}: Cannot find field."
            )
        }
        FaultKind::Type(expected) => {
            format!("Invalid value at '{place}': it must be of type {expected}")
        }
        FaultKind::Value(sentence, _) if place.is_empty() => sentence.clone(),
        FaultKind::Value(sentence, _) => format!("* GenerateContentRequest.{place}: {sentence}"),
    }
}

/// A key that is wrong is a bad request here.
pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    match refusal.kind {
        RefusalKind::WrongKey => StatusCode::BAD_REQUEST,
        RefusalKind::NoKey => StatusCode::FORBIDDEN,
        _ => refusal.usual_status(),
    }
}

/// The body of a refusal. When to try again is said in it, and not in a header.
pub(crate) fn error(refusal: &Refusal) -> Value {
    let kind = match refusal.kind {
        RefusalKind::NoKey => "PERMISSION_DENIED",
        RefusalKind::NotFound | RefusalKind::Method => "NOT_FOUND",
        RefusalKind::RateLimit | RefusalKind::Quota => "RESOURCE_EXHAUSTED",
        RefusalKind::Overloaded => "UNAVAILABLE",
        RefusalKind::Server => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    let begin = match refusal.kind {
        RefusalKind::ContextOverflow => {
            "The input token count exceeds the maximum number of tokens allowed: "
        }
        RefusalKind::Quota => "You exceeded your current quota: ",
        _ => "",
    };
    let mut details = Vec::new();
    if refusal.kind == RefusalKind::WrongKey {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID", "domain": "googleapis.com",
        }));
    }
    if let Some(place) = &refusal.place {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{ "field": place, "description": refusal.message }],
        }));
    }
    if refusal.kind == RefusalKind::Quota {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{ "quotaId": "GenerateRequestsPerDayPerProjectPerModel" }],
        }));
    }
    if let Some(wait) = refusal.retry_after {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}s", wait.as_secs_f64()),
        }));
    }
    let mut error = json!({
        "code": status(refusal).as_u16(),
        "message": format!("{begin}{}", refusal.message),
        "status": kind,
    });
    if !details.is_empty() {
        set(&mut error, "details", details);
    }
    json!({ "error": error })
}
