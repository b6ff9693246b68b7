//! Why a request gets no answer, before a vendor's shape is put on it.

use std::time::Duration;

use axum::http::StatusCode;
use toolcrib_core::{ModelError, ModelErrorClass};

use crate::reading::{Fault, FaultKind, Place};

/// Why a request gets no answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    pub(crate) message: String,
    /// Where in the request, in the vendor's spelling.
    pub(crate) place: Option<String>,
    /// The vendor's own code, where the kind does not imply it.
    pub(crate) code: Option<&'static str>,
    pub(crate) retry_after: Option<Duration>,
}

/// What kind of refusal it is. The vendors differ in the status and the words of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// The request is not as the vendor takes it.
    Invalid,
    /// There is no key.
    NoKey,
    /// The key is wrong.
    WrongKey,
    /// There is no such model, or no such path.
    NotFound,
    /// The path takes another method.
    Method,
    RateLimit,
    Quota,
    Overloaded,
    ContextOverflow,
    ContentFilter,
    /// The server itself failed; a script without a rule counts as that.
    Server,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, code: None, retry_after: None }
    }

    /// The refusal of a fault; places are spelled by the one function, and what they are said to
    /// be by the other.
    pub(crate) fn of_fault(
        fault: &Fault,
        spell: fn(&Place) -> String,
        describe: fn(&str, &FaultKind) -> String,
        code: fn(&FaultKind) -> Option<&'static str>,
    ) -> Self {
        let place = spell(&fault.place);
        Self {
            message: describe(&place, &fault.kind),
            code: code(&fault.kind),
            place: Some(place).filter(|place| !place.is_empty()),
            ..Self::new(RefusalKind::Invalid, "")
        }
    }

    /// The refusal that a model's own failure becomes.
    pub(crate) fn of_model(error: &ModelError) -> Self {
        let kind = match error.class {
            ModelErrorClass::Auth => RefusalKind::WrongKey,
            ModelErrorClass::Quota => RefusalKind::Quota,
            ModelErrorClass::RateLimit => RefusalKind::RateLimit,
            ModelErrorClass::Overloaded => RefusalKind::Overloaded,
            ModelErrorClass::ContextOverflow => RefusalKind::ContextOverflow,
            ModelErrorClass::ContentFilter => RefusalKind::ContentFilter,
            ModelErrorClass::BadRequest => RefusalKind::Invalid,
            _ => RefusalKind::Server,
        };
        Self { retry_after: error.retry_after, ..Self::new(kind, &error.message) }
    }

    /// The status of most vendors; each says where it differs.
    pub(crate) fn usual_status(&self) -> StatusCode {
        match self.kind {
            RefusalKind::Invalid | RefusalKind::ContextOverflow | RefusalKind::ContentFilter => {
                StatusCode::BAD_REQUEST
            }
            RefusalKind::NoKey | RefusalKind::WrongKey => StatusCode::UNAUTHORIZED,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Method => StatusCode::METHOD_NOT_ALLOWED,
            RefusalKind::RateLimit | RefusalKind::Quota => StatusCode::TOO_MANY_REQUESTS,
            RefusalKind::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            RefusalKind::Server => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
