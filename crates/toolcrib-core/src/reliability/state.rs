//! What a rule looks at.

use std::time::Duration;

use super::Stage;

/// What is known after a failed attempt: what rules decide on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReliabilityState<'a> {
    /// Where it failed.
    pub stage: Stage,
    /// Who failed: a source's path, a model's name, a tool's name.
    pub provider: &'a str,
    /// Who failed inside of a source that is made of several: its id. Else as `provider`.
    pub leaf: &'a str,
    /// How many attempts there were, those with others included: 1 after the first.
    pub attempt: u32,
    /// The class of the error: of a source `source`, `timeout`, `panic`, `gate`, `cancelled`; of a model
    /// the words of [`ModelErrorClass`](crate::ModelErrorClass), of a tool those of
    /// [`ErrorCode`](crate::ErrorCode); of all three `breaker_open`, when nobody was asked because it
    /// failed too often before.
    pub error_class: &'a str,
    /// What a source itself calls the error, or a tool's code.
    pub code: Option<&'a str>,
    /// What happened, for the operator.
    pub message: &'a str,
    /// The status of an HTTP answer.
    pub http_status: Option<u16>,
    /// How long is asked to wait; of an open breaker, how long it stays open.
    pub retry_after: Option<Duration>,
    /// What is wrong with an answer that came whole and is of no use: a model that did not keep to what
    /// it must call, a tool that refuses its arguments.
    pub validation_error: Option<&'a str>,
    /// Since the first attempt began.
    pub elapsed: Duration,
    /// What models read and wrote so far in the run, in tokens.
    pub tokens: u64,
    /// What models and tools cost so far in the run, in US dollars; none where that is not known,
    /// which compares as less than every cost.
    pub cost_usd: Option<f64>,
}

impl<'a> ReliabilityState<'a> {
    /// The names that errors have.
    pub const ERROR_NAMES: [&'static str; 5] =
        ["AbortError", "TimeoutError", "DiscoveryError", "ModelError", "ToolError"];

    /// The state after a first attempt of which nothing is known but who failed.
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

    /// The error's name as the seeds have it: `AbortError` for the class `cancelled`, `TimeoutError`
    /// for `timeout`, else `DiscoveryError`, `ModelError` or `ToolError` after the stage.
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
