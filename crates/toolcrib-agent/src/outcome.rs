//! The outcome of a run.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use humantime::{format_duration, format_rfc3339_seconds};
use serde::{Serialize, Serializer};
use toolcrib_core::{
    __internal::millis, Digest, ImageNotice, Menu, Message, ModelError, ModelErrorClass,
    StopReason, ToolName, ToolResult, Usage,
};
use toolcrib_engine::{RetryExhausted, TurnError};

/// The reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model answered.
    Answered,
    /// The iteration limit was reached; the answer is the wrap-up's.
    MaxIterations,
    /// The answer reached the model's output limit: it is only the beginning, and the error says so.
    /// The wrap-up's answer too.
    CutOff,
    /// Another [limit](crate::TurnLimits) of the run was reached; the answer says what was done, and
    /// the error which limit it was.
    LimitReached,
    /// Calls wait for approval. Only in a [session](crate::Session): the turn stays open, and a
    /// resumed run continues it.
    AwaitingApproval,
    /// The turn's timeout expired.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// A provider or the model failed.
    Failed,
}

impl EndReason {
    /// The reason as written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::MaxIterations => "max_iterations",
            Self::CutOff => "cut_off",
            Self::LimitReached => "limit_reached",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a run ended, as its outcome says.
pub(crate) struct RunEnd {
    pub(crate) end_reason: EndReason,
    pub(crate) answer: Option<Arc<str>>,
    pub(crate) error: Option<RunError>,
}

impl RunEnd {
    pub(crate) fn answered(end_reason: EndReason, answer: Arc<str>) -> Self {
        Self { end_reason, answer: Some(answer), error: None }
    }

    /// The same end; another one if the model's output limit cut off the answer.
    pub(crate) fn unless_cut_off(self, stop: Option<StopReason>) -> Self {
        let is_answer = matches!(self.end_reason, EndReason::Answered | EndReason::MaxIterations);
        if stop != Some(StopReason::MaxTokens) || !is_answer || self.answer.is_none() {
            return self;
        }
        let message = "the answer is cut off: it reached the model's output limit; raise \
            `max_output_tokens` of the model, or ask for less";
        let error = Some(RunError::new(RunError::ANSWER_CUT_OFF, message));
        Self { end_reason: EndReason::CutOff, error, ..self }
    }

    pub(crate) fn cancelled() -> Self {
        Self { end_reason: EndReason::Cancelled, answer: None, error: None }
    }

    pub(crate) fn awaiting_approval() -> Self {
        Self { end_reason: EndReason::AwaitingApproval, answer: None, error: None }
    }

    /// An end without another request; the loop adds the answer.
    pub(crate) fn over_limit() -> Self {
        Self { end_reason: EndReason::LimitReached, answer: None, error: None }
    }

    pub(crate) fn timed_out(allowed: Duration) -> Self {
        let message = format!("the run did not end within {allowed:?} and was stopped");
        Self { end_reason: EndReason::Timeout, ..RunError::new(RunError::TIMEOUT, message).into() }
    }
}

impl From<RunError> for RunEnd {
    fn from(error: RunError) -> Self {
        Self { end_reason: EndReason::Failed, answer: None, error: Some(error) }
    }
}

/// The outcome of a run, including everything that happened before a failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The run's id.
    pub turn_id: Arc<str>,
    /// The reason why it ended.
    pub end_reason: EndReason,
    /// The answer; set if the model answered or wrapped up, and at a limit. Only the beginning of one
    /// if the run [stopped](EndReason::CutOff) at the output limit.
    pub answer: Option<Arc<str>>,
    /// The error; set if the run failed, timed out or reached a limit, and if the answer is cut off.
    pub error: Option<RunError>,
    /// The number of iterations.
    pub iterations: u32,
    /// Every call, in order.
    pub tool_calls: Vec<ToolResult>,
    /// Usage and cost of models and tools.
    pub usage: Usage,
    /// The model's finish reason, if it answered or wrapped up.
    pub stop: Option<StopReason>,
    /// The menus, one entry per iteration.
    pub menus: Vec<MenuSummary>,
    /// The images that the model may not see.
    pub image_notices: Vec<ImageNotice>,
    /// The whole conversation, valid to be sent to a model again: each call has one result.
    pub messages: Arc<Vec<Message>>,
    /// Duration.
    pub duration: Duration,
}

/// The amount of tool output that a model read, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ResultChars {
    /// The characters that the model read: the texts of all results, fences included.
    pub read: u64,
    /// The characters that tools produced: see [`ToolResult::produced_chars`].
    pub produced: u64,
}

impl RunOutcome {
    /// The share of tool output that the model read. Artifacts and truncation make the difference.
    pub fn result_chars(&self) -> ResultChars {
        let calls = self.tool_calls.iter();
        ResultChars {
            read: calls.clone().map(|result| result.text.chars().count() as u64).sum(),
            produced: calls.map(|result| result.produced_chars).sum(),
        }
    }

    /// Adds an earlier turn of the same run: its calls, iterations, usage and duration.
    pub(crate) fn add_earlier(&mut self, earlier: Self) {
        self.iterations += earlier.iterations;
        self.usage += earlier.usage;
        self.duration += earlier.duration;
        self.tool_calls.splice(0..0, earlier.tool_calls);
        self.menus.splice(0..0, earlier.menus);
        self.image_notices.splice(0..0, earlier.image_notices);
    }

    /// The answer, or the error.
    ///
    /// # Errors
    /// The run's own error, also for an answer that is cut off; for a cancelled run one that says so.
    pub fn into_answer(self) -> Result<Arc<str>, RunError> {
        match (self.answer, self.error) {
            (_, Some(error)) if self.end_reason == EndReason::CutOff => Err(error),
            (Some(answer), _) => Ok(answer),
            (None, Some(error)) => Err(error),
            (None, None) => Err(RunError::new(
                self.end_reason.as_str(),
                format!("the run ended without an answer: {}", self.end_reason),
            )),
        }
    }
}

/// The menu of one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MenuSummary {
    /// The menu's fingerprint.
    pub fingerprint: Digest,
    /// The names, in order; shared by iterations with the same menu.
    pub offered: Arc<[ToolName]>,
    /// The number of withheld known tools.
    pub withheld_count: usize,
    /// The number of deferred tools whose definitions the model did not read.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred_count: usize,
    /// The characters of these definitions.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred_chars: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl MenuSummary {
    pub(crate) fn new(menu: &Menu, withheld_count: usize, before: Option<&Self>) -> Self {
        let fingerprint = menu.fingerprint();
        let unchanged = before.filter(|before| before.fingerprint == fingerprint);
        let deferred_count = menu.deferred().len().saturating_sub(menu.revealed().len());
        // Counting is not free. A list of other tools of the same number has about the same size.
        let counted = before.filter(|before| before.deferred_count == deferred_count);
        let deferred_chars =
            counted.map_or_else(|| menu.deferred_chars(), |before| before.deferred_chars);
        let offered = unchanged
            .map_or_else(|| menu.names().cloned().collect(), |before| Arc::clone(&before.offered));
        Self { fingerprint, offered, withheld_count, deferred_count, deferred_chars }
    }
}

/// The error of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RunError {
    /// The stable error code, such as [`MODEL_FAILED`](Self::MODEL_FAILED).
    pub code: &'static str,
    /// The message, for the operator.
    pub message: String,
    /// The provider's path or the model's name; for a run that a policy rule ended, the rule.
    #[serde(rename = "source")]
    pub component: Option<String>,
    /// The class of a model's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ModelErrorClass>,
    /// The retry delay that a model's vendor requested; in milliseconds in JSON.
    #[serde(
        rename = "retry_after_ms",
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_millis"
    )]
    pub retry_after: Option<Duration>,
    /// The `kind` of the reliability rule that gave up, else the word for the outcome; see
    /// [`RetryExhausted`]. Set if reliability rules applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// The number of attempts. Set if reliability rules applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

impl RunError {
    /// The answer reached the model's output limit.
    pub const ANSWER_CUT_OFF: &'static str = "answer_cut_off";
    /// No answer of a run with an [`AnswerSchema`](crate::AnswerSchema) was valid.
    pub const ANSWER_INVALID: &'static str = "answer_invalid";
    /// A limit or budget of money cannot be kept: a model does not report its cost.
    pub const COST_UNKNOWN: &'static str = "cost_unknown";
    /// A provider or a gate failed, so no menu could be composed.
    pub const DISCOVERY_FAILED: &'static str = "discovery_failed";
    /// A policy rule ended the run at a call.
    pub const HALTED: &'static str = "halted";
    /// A middleware failed around the run or around an iteration.
    pub const MIDDLEWARE_FAILED: &'static str = "middleware_failed";
    /// A [limit](crate::TurnLimits) was reached.
    pub const LIMIT_REACHED: &'static str = "limit_reached";
    /// The model gave no usable response.
    pub const MODEL_FAILED: &'static str = "model_failed";
    /// Two sources offer tools of one name.
    pub const NAME_COLLISION: &'static str = "name_collision";
    /// The agent lacks the model of the personality.
    pub const NO_MODEL: &'static str = "no_model";
    /// The last turn of the session has ended.
    pub const NOTHING_TO_RESUME: &'static str = "nothing_to_resume";
    /// The session cannot be read or written, or does not fit the run.
    pub const SESSION_FAILED: &'static str = "session_failed";
    /// The run's timeout expired.
    pub const TIMEOUT: &'static str = "timeout";
    /// The run failed for another reason.
    pub const TURN_FAILED: &'static str = "turn_failed";
    /// The personality does not exist.
    pub const UNKNOWN_PERSONALITY: &'static str = "unknown_personality";
    /// A skill does not exist, or may not be activated.
    pub const UNKNOWN_SKILL: &'static str = "unknown_skill";

    /// An error with a code and without a component.
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

    /// The error of a run whose model failed.
    pub(crate) fn of_model(model: &str, error: &ModelError) -> Self {
        Self {
            component: Some(model.to_owned()),
            class: Some(error.class),
            retry_after: error.retry_after,
            ..Self::new(Self::MODEL_FAILED, format!("model `{model}`: {error}{}", again(error)))
        }
    }

    /// The same error after reliability rules gave up.
    pub(crate) fn given_up(self, exhausted: &RetryExhausted) -> Self {
        Self { kind: Some(Arc::clone(&exhausted.kind)), attempts: Some(exhausted.attempts), ..self }
    }
}

/// The longest wait whose end is stated as a date.
const MAX_DATED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// When a vendor that requests to wait can be asked again.
fn again(error: &ModelError) -> String {
    let Some(wait) = error.retry_after else { return String::new() };
    let wait = Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
    // A later time may be no date.
    let at = SystemTime::now().checked_add(wait).filter(|_| wait <= MAX_DATED);
    let at = at.map(|at| format!(", at {}", format_rfc3339_seconds(at))).unwrap_or_default();
    format!("; it can be asked again in {}{at}", format_duration(wait))
}

impl From<&TurnError> for RunError {
    fn from(error: &TurnError) -> Self {
        let failed = |code, component: Option<&str>| Self {
            component: component.map(str::to_owned),
            ..Self::new(code, error.to_string())
        };
        match error {
            TurnError::UnknownSkill { .. }
            | TurnError::SkillOutOfReach { .. }
            | TurnError::SkillRefused { .. } => failed(Self::UNKNOWN_SKILL, None),
            TurnError::UnknownPersonality { .. } => failed(Self::UNKNOWN_PERSONALITY, None),
            TurnError::Discovery(cause) => failed(Self::DISCOVERY_FAILED, cause.provider()),
            TurnError::Reliability { exhausted, source } => {
                let component = source.provider().unwrap_or(&exhausted.provider);
                failed(Self::DISCOVERY_FAILED, Some(component)).given_up(exhausted)
            }
            TurnError::Collision(_) => failed(Self::NAME_COLLISION, None),
            TurnError::Halted(halt) => failed(Self::HALTED, Some(&halt.rule)),
            TurnError::Middleware(cause) => {
                failed(Self::MIDDLEWARE_FAILED, Some(&cause.middleware))
            }
            _ => failed(Self::TURN_FAILED, None),
        }
    }
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn write_millis<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(millis).serialize(serializer)
}
