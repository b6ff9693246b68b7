//! How rules give up a failed operation.

use std::{fmt, sync::Arc};

use serde::Serialize;
use toolcrib_core::Stage;

/// Why no further attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExhaustedReason {
    /// A rule said so.
    FailFast,
    /// The attempts of the matching rule are used up, or no rule matches any more.
    RetriesExhausted,
    /// The engine has made as many retries as its [`RetryBudget`](crate::RetryBudget) allows.
    RetryBudgetExhausted,
    /// The requested wait is longer than the rule allows.
    WaitTooLong,
    /// No other choice is left to try.
    NoOther,
    /// A rule would accept an incomplete result, and there is none.
    NothingToAccept,
    /// A part of the response was shown before it broke off; a retry would show it twice.
    MidStream,
    /// The call must not be repeated: it may have had an effect.
    NotRepeatable,
}

impl ExhaustedReason {
    /// The word in JSON.
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

impl fmt::Display for ExhaustedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How rules gave up a failed operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RetryExhausted {
    /// The stage that failed.
    pub stage: Stage,
    /// The rule author's name for such failures; without one, the word of `code`.
    pub kind: Arc<str>,
    /// Why no further attempt is made.
    pub code: ExhaustedReason,
    /// The rule: its label, or its number.
    pub rule: Arc<str>,
    /// The provider that failed last: a source's path, a model's name, a tool's name.
    pub provider: Arc<str>,
    /// The number of attempts.
    pub attempts: u32,
}

impl fmt::Display for RetryExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, code, rule, attempts, .. } = self;
        let plural = if *attempts == 1 { "" } else { "s" };
        write!(f, "given up after {attempts} attempt{plural} by {rule}: ")?;
        if **kind == *code.as_str() { f.write_str(kind) } else { write!(f, "{kind} ({code})") }
    }
}
