//! Ollama's own chat.

mod reply;
mod request;

use axum::http::HeaderMap;
use serde_json::{Value, json};

pub(crate) use self::{
    reply::{stream, whole},
    request::read,
};
use crate::{
    reading::{Fault, FaultKind, Place},
    refusal::{Refusal, RefusalKind},
    vendor::bearer,
};

/// A server on one's own machine asks for no key; one that is given all the same must be right,
/// as with the hosted service.
pub(crate) fn check_key(headers: &HeaderMap, key: &str) -> Result<(), Refusal> {
    match bearer(headers) {
        Some(given) if given != key => Err(Refusal::new(RefusalKind::WrongKey, "unauthorized")),
        _ => Ok(()),
    }
}

pub(crate) fn models(model: &str) -> Value {
    json!({ "models": [{
        "name": model,
        "model": model,
        "modified_at": "2026-01-01T00:00:00Z",
        "size": 0,
        "digest": "0000000000000000000000000000000000000000000000000000000000000000",
        "details": {
            "parent_model": "", "format": "gguf", "family": "testbed", "families": ["testbed"],
            "parameter_size": "0", "quantization_level": "F16",
        },
    }] })
}

pub(crate) fn refused(fault: &Fault) -> Refusal {
    Refusal::of_fault(fault, Place::bracketed, described, |_| None)
}

fn described(place: &str, kind: &FaultKind) -> String {
    match kind {
        FaultKind::Missing => format!("{place} is required"),
        FaultKind::Unknown => format!("{place} is unknown"),
        FaultKind::Type(expected) => format!("json: cannot unmarshal {place} into {expected}"),
        FaultKind::Value(sentence, _) => format!("{place}: {sentence}"),
    }
}

/// The body of a refusal.
pub(crate) fn error(refusal: &Refusal) -> Value {
    json!({ "error": refusal.message })
}
