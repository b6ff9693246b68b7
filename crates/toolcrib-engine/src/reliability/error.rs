//! How rules gave something up.

use std::{error::Error, fmt, sync::Arc};

use serde::Serialize;
use toolcrib_core::Stage;

/// Why nothing is tried any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GaveUpCode {
    /// A rule said so.
    FailFast,
    /// The attempts of the rule that holds are used up, or no rule holds any more.
    RetriesExhausted,
    /// The engine has made as many retries as its [`RetryBudget`](crate::RetryBudget) allows.
    RetryBudgetExhausted,
    /// More time is asked for than the rule would wait.
    WaitTooLong,
    /// There is nobody else to ask.
    NoOther,
    /// A rule would take what there is, and there is nothing.
    NothingToAccept,
    /// A part of the answer has been shown before it broke off; asked again, it would be shown twice.
    MidStream,
    /// The call must not be repeated: it may have had an effect.
    NotRepeatable,
}

impl GaveUpCode {
    /// The word as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FailFast => "fail_fast",
            Self::RetriesExhausted => "retries_exhausted",
            Self::RetryBudgetExhausted => "retry_budget_exhausted",
            Self::WaitTooLong => "wait_too_long",
            Self::NoOther => "no_other",
            Self::NothingToAccept => "nothing_to_accept",
            Self::MidStream => "mid_stream",
            Self::NotRepeatable => "not_repeatable",
        }
    }
}

impl fmt::Display for GaveUpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How rules gave something up that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GaveUp {
    /// Where it failed.
    pub stage: Stage,
    /// What the rule's author calls such failures; else as `code`.
    pub kind: Arc<str>,
    /// Why nothing is tried any more.
    pub code: GaveUpCode,
    /// Which rule: its label, else its number.
    pub rule: Arc<str>,
    /// Who failed last: a source's path, a model's name, a tool's name.
    pub provider: Arc<str>,
    /// How many attempts there were.
    pub attempts: u32,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, code, rule, attempts, .. } = self;
        let plural = if *attempts == 1 { "" } else { "s" };
        write!(f, "given up after {attempts} attempt{plural} by {rule}: ")?;
        if **kind == *code.as_str() { f.write_str(kind) } else { write!(f, "{kind} ({code})") }
    }
}

/// Something failed, and rules gave it up.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReliabilityError {
    /// How.
    pub gave_up: GaveUp,
    /// What the last attempt failed with.
    pub cause: Box<dyn Error + Send + Sync>,
}

impl ReliabilityError {
    pub(crate) fn new(gave_up: GaveUp, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { gave_up, cause: cause.into() }
    }

    /// What the rule's author calls such failures.
    pub fn kind(&self) -> &str {
        &self.gave_up.kind
    }

    /// The stable word for how it ended.
    pub fn code(&self) -> GaveUpCode {
        self.gave_up.code
    }

    /// How many attempts there were.
    pub fn attempts(&self) -> u32 {
        self.gave_up.attempts
    }
}

impl fmt::Display for ReliabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.cause, self.gave_up)
    }
}

impl Error for ReliabilityError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}
