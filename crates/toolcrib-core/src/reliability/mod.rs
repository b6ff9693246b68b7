//! Handling of failed sources, models and tools, as data: one ordered list of rules, first match
//! wins.

pub(crate) mod backoff;
pub(crate) mod breaker;
mod retry;
mod state;
mod when;

use std::{error::Error, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde::Serialize;

pub use self::{
    breaker::{Breaker, BreakerConfig, BreakerOpenError, BreakerState, Permit},
    retry::Retry,
    state::ReliabilityState,
    when::{FailureConditions, IntoCondition, InvalidStatusRangeError, StatusRange},
};
use crate::{
    models::model::{ModelError, ModelErrorClass, ModelRequest, ModelResponse},
    provider::{DiscoveryErrorClass, ToolProvider},
    text::suggest::did_you_mean,
    tool::output::ErrorCode,
};

/// The stage of an iteration in which a failure occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// Listing a source's tools.
    Discover,
    /// A model request.
    Model,
    /// A tool call.
    Tool,
}

impl Stage {
    /// All stages, in the order of an iteration.
    pub const ALL: [Self; 3] = [Self::Discover, Self::Model, Self::Tool];

    /// The stage as written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

impl Stage {
    /// The error classes of this stage; see
    /// [`ReliabilityState::error_class`](crate::ReliabilityState::error_class).
    pub fn error_classes(self) -> Vec<&'static str> {
        match self {
            Self::Discover => DiscoveryErrorClass::ALL.map(DiscoveryErrorClass::as_str).into(),
            Self::Model => ModelErrorClass::ALL.map(ModelErrorClass::as_str).into(),
            Self::Tool => {
                let codes = ErrorCode::ALL.map(ErrorCode::as_str);
                codes.into_iter().chain([DiscoveryErrorClass::BreakerOpen.as_str()]).collect()
            }
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule for failures: a condition and an action.
///
/// After each failed attempt the rules are evaluated in order. The first whose condition is true
/// decides, unless its action is not possible (its attempts are used up, the retry budget is empty,
/// no alternative is left): then evaluation continues with the next rule. If no rule decides, the
/// failure is final, except that an engine has a default rule for the requests of models. The run's
/// own cancellation is never evaluated.
///
/// A failed gate and an operation that ended itself as cancelled are only retried, left out or
/// replaced by a rule that names the class `gate` or `cancelled`; rules without a class do not
/// apply to them.
///
/// ```
/// use toolcrib_core::{ReliabilityRule, Retry, Stage, ReliabilityAction};
///
/// let rules = [
///     ReliabilityRule::new(ReliabilityAction::Retry(Retry::default()))
///         .when(|state| state.message.contains("hub unreachable") && state.attempt < 3)
///         .kind("discovery-transient"),
///     ReliabilityRule::new(ReliabilityAction::FailFast).stage(Stage::Discover).error_name("AbortError"),
/// ];
/// # let _ = rules;
/// ```
#[derive(Debug, Clone)]
pub struct ReliabilityRule {
    /// The condition.
    pub when: FailureConditions,
    /// The action.
    pub then: ReliabilityAction,
    /// The author's name for these failures: the `kind` of the final error. Default: the outcome,
    /// such as `retries_exhausted`.
    pub kind: Option<Arc<str>>,
    /// The rule's name in events. Default: its number.
    pub label: Option<Arc<str>>,
}

impl ReliabilityRule {
    /// A rule for every failure at every stage, to be narrowed.
    pub fn new(then: ReliabilityAction) -> Self {
        Self { when: FailureConditions::default(), then, kind: None, label: None }
    }

    /// Sets the kind of these failures.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Sets the rule's label.
    #[must_use]
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Narrows it by code that returns `bool` or a `Result` of it. Evaluated last, if all other
    /// conditions are true. Code that panics or returns an error does not match, and emits
    /// `reliability.rule_failed`: the original failure continues with the next rule and is never
    /// swallowed.
    #[must_use]
    pub fn when<F, H>(mut self, check: F) -> Self
    where
        F: Fn(&ReliabilityState<'_>) -> H + Send + Sync + 'static,
        H: IntoCondition,
    {
        self.when = self.when.and(check);
        self
    }

    /// Narrows it to a stage.
    #[must_use]
    pub fn stage(mut self, stage: Stage) -> Self {
        self.when.stage = Some(stage);
        self
    }

    /// Narrows it to one of these error classes; see [`ReliabilityState::error_class`].
    #[must_use]
    pub fn error_class(mut self, class: impl Into<Arc<str>>) -> Self {
        self.when.error_classes.push(class.into());
        self
    }

    /// Narrows it to one of these error names; see [`ReliabilityState::error_name`].
    #[must_use]
    pub fn error_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.when.error_names.push(name.into());
        self
    }

    /// Validates the names in conditions: a mistyped one matches no failure.
    ///
    /// # Errors
    /// [`UnknownWordError`] names the first [error name](ReliabilityState::ERROR_NAMES) or
    /// [error class](Stage::error_classes) that no failure of the rule's stage has.
    pub fn check(&self) -> Result<(), UnknownWordError> {
        let stages = self.when.stage.map_or(Stage::ALL.to_vec(), |stage| vec![stage]);
        let classes: Vec<_> = stages.into_iter().flat_map(Stage::error_classes).collect();
        let conditions = [
            ("error_name", &self.when.error_names, ReliabilityState::ERROR_NAMES.to_vec()),
            ("error_class", &self.when.error_classes, classes),
        ];
        for (condition, words, known) in conditions {
            if let Some(word) = words.iter().find(|word| !known.contains(&&***word)) {
                let help = did_you_mean(word, known.iter().copied());
                let help = help.unwrap_or_else(|| format!("it can be `{}`", known.join("`, `")));
                return Err(UnknownWordError { condition, word: Arc::clone(word), help });
            }
        }
        Ok(())
    }

    /// Whether it names the given error class.
    pub fn has_class(&self, class: &str) -> bool {
        self.when.error_classes.iter().any(|named| **named == *class)
    }
}

/// A name in a rule's condition that matches no failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{condition}` cannot be `{}`; {help}", .word.escape_debug())]
pub struct UnknownWordError {
    /// The condition: `error_name` or `error_class`.
    pub condition: &'static str,
    /// The word.
    pub word: Arc<str>,
    /// The nearest known word, or all of them.
    pub help: String,
}

/// The action of a [`ReliabilityRule`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReliabilityAction {
    /// Continues with the available result. A source: the iteration continues without it, with an
    /// event. A model: its text so far is its answer; it must not be empty. A tool: its error goes
    /// to the model.
    Ok,
    /// No action: evaluation continues with the next rule, as if this one did not match.
    Continue,
    /// Retries the same one after a wait. A tool only if that is safe: it is read-only or
    /// idempotent, or the call never reached it (`not_available`); never when the outcome is
    /// unknown.
    Retry(Retry),
    /// Tries the next one immediately: of the agent's models, or of a source's alternatives. Each
    /// is tried this way once.
    RetryOther,
    /// Uses a replacement, immediately and once; if it fails too, the rules are evaluated again.
    Fallback(Fallback),
    /// Gives up. A source or a model: the run fails, regardless of the source's failure setting. A
    /// tool: its error goes to the model.
    FailFast,
}

impl ReliabilityAction {
    /// Falls back to this model, by name.
    pub fn fallback_model(name: impl Into<Arc<str>>) -> Self {
        Self::Fallback(Fallback::Model(name.into()))
    }

    /// Falls back to this provider.
    pub fn fallback_provider(provider: Arc<dyn ToolProvider>) -> Self {
        Self::Fallback(Fallback::Source(provider))
    }

    /// Falls back to a function's answer. The function receives the request and the failure.
    pub fn fallback_answer<F, Fut>(answer: F) -> Self
    where
        F: Fn(&ModelRequest, &ModelError) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ModelResponse, ModelError>> + Send + 'static,
    {
        Self::Fallback(Fallback::Answer(AnswerFn(Arc::new(move |request, error| {
            Box::pin(answer(request, error))
        }))))
    }

    /// The action as written in events and in project files.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Continue => "continue",
            Self::Retry(_) => "retry",
            Self::RetryOther => "retry_other",
            Self::Fallback(_) => "fallback",
            Self::FailFast => "fail_fast",
        }
    }
}

/// The replacement for a failed source or model.
#[derive(Clone)]
#[non_exhaustive]
pub enum Fallback {
    /// Another of the agent's models, by name.
    Model(Arc<str>),
    /// An answer from code instead of a model.
    Answer(AnswerFn),
    /// A provider instead of a source.
    Source(Arc<dyn ToolProvider>),
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(name) => f.debug_tuple("Model").field(name).finish(),
            Self::Answer(_) => f.write_str("Answer(..)"),
            Self::Source(provider) => f.debug_tuple("Source").field(&provider.path()).finish(),
        }
    }
}

type DynAnswer = dyn Fn(&ModelRequest, &ModelError) -> BoxFuture<'static, Result<ModelResponse, ModelError>>
    + Send
    + Sync;

/// The function of [`ReliabilityAction::fallback_answer`].
#[derive(Clone)]
pub struct AnswerFn(Arc<DynAnswer>);

impl AnswerFn {
    /// Calls the function for a failed request.
    pub fn answer(
        &self,
        request: &ModelRequest,
        error: &ModelError,
    ) -> BoxFuture<'static, Result<ModelResponse, ModelError>> {
        (self.0)(request, error)
    }
}

crate::internal::debug_fields!(AnswerFn);

/// An error of a condition in code.
pub(crate) type CheckError = Box<dyn Error + Send + Sync>;
