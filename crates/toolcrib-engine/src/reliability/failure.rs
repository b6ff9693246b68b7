//! A failed attempt, as rules and breakers see it.

use std::time::Duration;

use toolcrib_core::{
    Annotations, DiscoveryError, DiscoveryErrorClass, ErrorCode, ModelError, ModelErrorClass,
};

use super::GaveUpCode;
use crate::breaker::BreakerOpen;

/// What a failed attempt says of who was asked: what a breaker goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Health {
    /// It answered, if only with a no: no failure to a breaker.
    Well,
    /// It did not answer, or not sensibly: a breaker counts it.
    Unwell,
    /// Nothing: it was not asked at all, or not to the end.
    #[default]
    Unknown,
}

/// A failed attempt: what rules look at, and what they may do about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedAttempt<'a> {
    /// Who failed inside of a source that is made of several.
    pub leaf: Option<&'a str>,
    /// The class of the error.
    pub error_class: &'a str,
    /// What a source calls the error, or a tool's code.
    pub code: Option<&'a str>,
    /// What happened, for the operator.
    pub message: &'a str,
    /// The status of an HTTP answer.
    pub http_status: Option<u16>,
    /// How long is asked to wait.
    pub retry_after: Option<Duration>,
    /// Whether it is an answer that came whole and is of no use.
    pub validation_error: bool,
    /// What it says of who was asked.
    pub health: Health,
    /// Whether there is something that a rule may accept.
    pub acceptable: bool,
    /// Why neither this one nor anybody else may be asked again, if so.
    pub unrepeatable: Option<GaveUpCode>,
}

impl<'a> FailedAttempt<'a> {
    fn new(error_class: &'a str, message: &'a str) -> Self {
        Self {
            leaf: None,
            error_class,
            code: None,
            message,
            http_status: None,
            retry_after: None,
            validation_error: false,
            health: Health::Unknown,
            acceptable: true,
            unrepeatable: None,
        }
    }

    /// A source that failed. It can be left out.
    pub fn of_discovery(error: &'a DiscoveryError) -> Self {
        use DiscoveryErrorClass::{Gate, Panic, Source, Timeout};
        let health = match error.class() {
            // It was not asked, for want of somebody to ask for.
            Source if error.code() == Some(IDENTITY_MISSING) => Health::Unknown,
            Source | Timeout | Panic => Health::Unwell,
            Gate => Health::Well,
            // Nobody was asked, or nobody waited for the answer.
            _ => Health::Unknown,
        };
        Self {
            leaf: error.leaf(),
            code: error.code(),
            http_status: error.http_status(),
            retry_after: error.retry_after(),
            health,
            ..Self::new(error.class().as_str(), error.message())
        }
    }

    /// A model that failed. Whether a part of its answer is there, or was shown, is known to whoever
    /// asked; here there is none.
    pub fn of_model(error: &'a ModelError) -> Self {
        use ModelErrorClass::{
            Auth, BadRequest, ContentFilter, ContextOverflow, Incomplete, Network, Overloaded,
            Protocol, Quota, RateLimit, Server, Timeout, ToolChoiceIgnored,
        };
        let health = match error.class {
            Incomplete | Network | Overloaded | Protocol | RateLimit | Server | Timeout => {
                Health::Unwell
            }
            Auth | BadRequest | ContentFilter | ContextOverflow | Quota | ToolChoiceIgnored => {
                Health::Well
            }
            _ => Health::Unknown,
        };
        Self {
            http_status: error.status,
            retry_after: error.retry_after,
            validation_error: error.class == ToolChoiceIgnored,
            health,
            acceptable: false,
            ..Self::new(error.class.as_str(), &error.message)
        }
    }

    /// A call that failed. It may be repeated where that is safe: the tool only reads or is
    /// idempotent, or says that it did nothing at all (`not_available`). A `broken` one did not say
    /// itself that it failed, such as a body that panicked.
    pub(crate) fn of_tool(
        code: ErrorCode,
        message: &'a str,
        annotations: Annotations,
        broken: bool,
    ) -> Self {
        use ErrorCode::{Cancelled, ExecutionFailed, NotAvailable, OutcomeUnknown, Timeout};
        let is_repeatable = match code {
            NotAvailable => true,
            ExecutionFailed | Timeout => annotations.read_only || annotations.idempotent,
            _ => false,
        };
        Self {
            code: Some(code.as_str()),
            validation_error: code == ErrorCode::InputInvalid,
            health: match code {
                Cancelled => Health::Unknown,
                NotAvailable | OutcomeUnknown | Timeout => Health::Unwell,
                _ if broken => Health::Unwell,
                // A tool that says no, as one that finds no such order does, is well.
                _ => Health::Well,
            },
            unrepeatable: (!is_repeatable).then_some(GaveUpCode::NotRepeatable),
            ..Self::new(code.as_str(), message)
        }
    }

    /// The same, seen as an attempt that was not made because a breaker is open.
    pub(crate) fn not_made(mut self, open: BreakerOpen) -> Self {
        self.error_class = BREAKER_OPEN;
        self.retry_after = open.retry_in;
        self.health = Health::Unknown;
        self.unrepeatable = None;
        self
    }
}

const BREAKER_OPEN: &str = "breaker_open";

/// What a source calls it that it cannot be asked for want of a tenant or a principal.
const IDENTITY_MISSING: &str = "identity_missing";

impl BreakerOpen {
    /// As an error of the source that was not asked.
    pub(crate) fn into_discovery_error(self) -> DiscoveryError {
        let error = DiscoveryError::new(DiscoveryErrorClass::BreakerOpen, self.to_string());
        match self.retry_in {
            Some(time) => error.with_retry_after(time),
            None => error,
        }
    }

    /// As an error of the model that was not asked.
    pub fn into_model_error(self) -> ModelError {
        let mut error = ModelError::new(ModelErrorClass::BreakerOpen, self.to_string());
        error.retry_after = self.retry_in;
        error
    }
}
