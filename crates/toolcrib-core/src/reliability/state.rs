//! The facts that reliability rules depend on.

use std::time::Duration;

use super::Stage;

/// The facts about a failed attempt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReliabilityState<'a> {
    /// The stage that failed.
    pub stage: Stage,
    /// The path of the source, or the name of the model or tool, that failed.
    pub provider: &'a str,
    /// The id of the failed part, for a source that is made of several. Otherwise as `provider`.
    pub leaf: &'a str,
    /// The number of attempts, including those with alternatives: 1 after the first.
    pub attempt: u32,
    /// The error class: of a source `source`, `timeout`, `panic`, `gate`, `cancelled`; of a model
    /// the words of [`ModelErrorClass`](crate::ModelErrorClass), of a tool those of
    /// [`ErrorCode`](crate::ErrorCode); of all three `breaker_open`, if no request was made because
    /// of repeated failures.
    pub error_class: &'a str,
    /// The source's error code, or a tool's code.
    pub code: Option<&'a str>,
    /// The message, for the operator.
    pub message: &'a str,
    /// The HTTP status.
    pub http_status: Option<u16>,
    /// The requested retry delay; for an open breaker, the time until it half-opens.
    pub retry_after: Option<Duration>,
    /// The problem of a complete but unusable response: a model that ignored a required call, a
    /// tool that rejects its arguments.
    pub validation_error: Option<&'a str>,
    /// Time since the first attempt began.
    pub elapsed: Duration,
    /// Tokens that models read and wrote so far in the run.
    pub tokens: u64,
    /// The cost of models and tools so far in the run, in US dollars; `None` if unknown, which
    /// compares as less than every cost.
    pub cost_usd: Option<f64>,
}

impl<'a> ReliabilityState<'a> {
    /// The names of all errors that rules can match.
    pub const ERROR_NAMES: [&'static str; 5] =
        ["AbortError", "TimeoutError", "DiscoveryError", "ModelError", "ToolError"];

    /// The state after a first attempt with no facts but the name.
    pub fn new(stage: Stage, provider: &'a str) -> Self {
        Self {
            stage,
            provider,
            leaf: provider,
            attempt: 1,
            error_class: "",
            code: None,
            message: "",
            http_status: None,
            retry_after: None,
            validation_error: None,
            elapsed: Duration::ZERO,
            tokens: 0,
            cost_usd: Some(0.0),
        }
    }

    /// The error's name as in the seeds: `AbortError` for the class `cancelled`, `TimeoutError` for
    /// `timeout`, else by stage `DiscoveryError`, `ModelError` or `ToolError`.
    pub fn error_name(&self) -> &'static str {
        match (self.error_class, self.stage) {
            ("cancelled", _) => "AbortError",
            ("timeout", _) => "TimeoutError",
            (_, Stage::Discover) => "DiscoveryError",
            (_, Stage::Model) => "ModelError",
            (_, Stage::Tool) => "ToolError",
        }
    }
}
