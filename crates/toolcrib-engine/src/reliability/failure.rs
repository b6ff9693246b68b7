//! A failed attempt, as rules and breakers see it.

use std::time::Duration;

use toolcrib_core::{
    Annotations, BreakerOpenError, DiscoveryError, DiscoveryErrorClass, ErrorCode, ModelError,
    ModelErrorClass,
};

use super::ExhaustedReason;

/// A failed attempt's evidence about the provider's health, for breakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Health {
    /// It responded, possibly with a refusal: a breaker does not count it as a failure.
    Healthy,
    /// It did not respond, or not validly: a breaker counts it.
    Unhealthy,
    /// No evidence: it was not tried, or not to the end.
    #[default]
    Unknown,
}

/// A failed attempt: the facts for rules, and the actions that they may take.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedAttempt<'a> {
    /// The provider that failed inside a composed source.
    pub leaf: Option<&'a str>,
    /// The class of the error.
    pub error_class: &'a str,
    /// A source's error code, or a tool's code.
    pub code: Option<&'a str>,
    /// What happened, for the operator.
    pub message: &'a str,
    /// The status of an HTTP response.
    pub http_status: Option<u16>,
    /// The requested time to wait.
    pub retry_after: Option<Duration>,
    /// Whether it is a complete response that is not valid.
    pub validation_error: bool,
    /// The evidence about the provider's health.
    pub health: Health,
    /// Whether there is an incomplete result that a rule may accept.
    pub acceptable: bool,
    /// Why neither this provider nor another may be tried again, if so.
    pub unrepeatable: Option<ExhaustedReason>,
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

    /// The failure of a source. It can be omitted.
    pub fn of_discovery(error: &'a DiscoveryError) -> Self {
        use DiscoveryErrorClass::{Gate, Panic, Source, Timeout};
        let health = match error.class() {
            // It was not listed because the identity is missing.
            Source if error.code() == Some(IDENTITY_MISSING) => Health::Unknown,
            Source | Timeout | Panic => Health::Unhealthy,
            Gate => Health::Healthy,
            // No source was listed, or the caller did not wait for the listing.
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

    /// The failure of a model. The caller knows whether a part of its response exists or was shown;
    /// here there is none.
    pub fn of_model(error: &'a ModelError) -> Self {
        use ModelErrorClass::{
            Auth, BadRequest, ContentFilter, ContextOverflow, EmptyAnswer, Incomplete, Network,
            Overloaded, Protocol, Quota, RateLimit, Server, Timeout, ToolChoiceIgnored,
        };
        let health = match error.class {
            Incomplete | Network | Overloaded | Protocol | RateLimit | Server | Timeout => {
                Health::Unhealthy
            }
            Auth | BadRequest | ContentFilter | ContextOverflow | EmptyAnswer | Quota
            | ToolChoiceIgnored => Health::Healthy,
            _ => Health::Unknown,
        };
        Self {
            http_status: error.status,
            retry_after: error.retry_after,
            validation_error: matches!(error.class, EmptyAnswer | ToolChoiceIgnored),
            health,
            acceptable: false,
            ..Self::new(error.class.as_str(), &error.message)
        }
    }

    /// The failure of a call. A retry is allowed if it is safe: the tool only reads or is
    /// idempotent, or reports that it did nothing at all (`not_available`). A `broken` one did not
    /// report the failure itself, such as a body that panicked.
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
                NotAvailable | OutcomeUnknown | Timeout => Health::Unhealthy,
                _ if broken => Health::Unhealthy,
                // A tool that refuses, for example because an order does not exist, is healthy.
                _ => Health::Healthy,
            },
            unrepeatable: (!is_repeatable).then_some(ExhaustedReason::NotRepeatable),
            ..Self::new(code.as_str(), message)
        }
    }

    /// The same, as an attempt that was not made because a breaker is open.
    pub(crate) fn not_made(mut self, open: BreakerOpenError) -> Self {
        self.error_class = BREAKER_OPEN;
        self.retry_after = open.retry_in;
        self.health = Health::Unknown;
        self.unrepeatable = None;
        self
    }
}

const BREAKER_OPEN: &str = "breaker_open";

/// A source's code for a missing tenant or principal.
const IDENTITY_MISSING: &str = "identity_missing";
