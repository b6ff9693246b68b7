//! What a run came to.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Serialize, Serializer};
use toolcrib_core::{
    Digest, Menu, Message, ModelErrorClass, StopReason, ToolName, ToolResult, Usage, millis,
};
use toolcrib_engine::{GaveUp, Halt};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stopped {
    /// The model answered.
    Answered,
    /// The cap on iterations was reached; the answer is the wrap-up's.
    MaxIterations,
    /// The turn's time was up.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// A provider or the model failed.
    Failed,
}

impl Stopped {
    /// The word as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::MaxIterations => "max_iterations",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a run came to, on every way out: nothing that happened before is lost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The run's id.
    pub run_id: Arc<str>,
    /// How it ended.
    pub stopped: Stopped,
    /// The answer; there when it answered or wrapped up.
    pub answer: Option<Arc<str>>,
    /// What went wrong; there when it failed or timed out.
    pub error: Option<RunError>,
    /// How many iterations there were.
    pub iterations: u32,
    /// Every call, in order.
    pub tool_calls: Vec<ToolResult>,
    /// What models and tools used and cost.
    pub usage: Usage,
    /// Why the model stopped, if it answered or wrapped up: an answer may be cut.
    pub stop: Option<StopReason>,
    /// What was offered, one entry per iteration.
    pub menus: Vec<MenuSummary>,
    /// The whole conversation, fit to be sent to a model again: each call has one result.
    pub messages: Arc<Vec<Message>>,
    /// How long it took.
    pub duration: Duration,
}

/// How much of what tools gave a model read, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ResultChars {
    /// What the model read: the texts of all results, fences included.
    pub read: u64,
    /// What there was: see [`ToolResult::produced_chars`].
    pub produced: u64,
}

impl RunOutcome {
    /// How much of what tools gave the model read. Artifacts make the difference, and what was cut.
    pub fn result_chars(&self) -> ResultChars {
        let calls = self.tool_calls.iter();
        ResultChars {
            read: calls.clone().map(|result| result.text.chars().count() as u64).sum(),
            produced: calls.map(|result| result.produced_chars).sum(),
        }
    }

    /// The answer, or why there is none.
    ///
    /// # Errors
    /// The run's own error; for a cancelled run one that says so.
    pub fn into_answer(self) -> Result<Arc<str>, RunError> {
        match (self.answer, self.error) {
            (Some(answer), _) => Ok(answer),
            (None, Some(error)) => Err(error),
            (None, None) => Err(RunError::new(
                self.stopped.as_str(),
                format!("the run ended without an answer: {}", self.stopped),
            )),
        }
    }
}

/// What was offered in one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MenuSummary {
    /// The menu's fingerprint.
    pub fingerprint: Digest,
    /// The names, in order; shared by iterations that were offered the same.
    pub offered: Arc<[ToolName]>,
    /// How many known tools were withheld.
    pub withheld_count: usize,
}

impl MenuSummary {
    pub(crate) fn new(menu: &Menu, withheld_count: usize, before: Option<&Self>) -> Self {
        let fingerprint = menu.fingerprint();
        let unchanged = before.filter(|before| before.fingerprint == fingerprint);
        let offered = unchanged
            .map_or_else(|| menu.names().cloned().collect(), |before| Arc::clone(&before.offered));
        Self { fingerprint, offered, withheld_count }
    }
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RunError {
    /// The stable class: `discovery_failed`, `name_collision`, `model_failed`, `unknown_skill`,
    /// `timeout`, `halted`, `middleware_failed`, `turn_failed`.
    pub code: &'static str,
    /// What happened, for the operator.
    pub message: String,
    /// Who failed: the provider's path or the model's name; of a run that a policy rule ended, the rule.
    #[serde(rename = "source")]
    pub component: Option<String>,
    /// The class of a model's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ModelErrorClass>,
    /// How long a model's vendor asks to wait before the next attempt; in milliseconds in JSON.
    #[serde(
        rename = "retry_after_ms",
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_millis"
    )]
    pub retry_after: Option<Duration>,
    /// What the author of the reliability rule that gave it up calls such failures, else the word for
    /// how it ended; see [`GaveUp`]. There when rules were about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// How many attempts there were. There when rules were about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

impl RunError {
    /// An error of a code, of nobody in particular.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            component: None,
            class: None,
            retry_after: None,
            kind: None,
            attempts: None,
        }
    }

    /// The same after rules gave it up.
    pub(crate) fn given_up(self, gave_up: &GaveUp) -> Self {
        Self { kind: Some(Arc::clone(&gave_up.kind)), attempts: Some(gave_up.attempts), ..self }
    }
}

impl RunError {
    /// A policy rule ended the run at a call.
    pub(crate) fn halted(halt: &Halt) -> Self {
        Self { component: Some(halt.rule.to_string()), ..Self::new("halted", halt.to_string()) }
    }
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn write_millis<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(millis).serialize(serializer)
}
