//! What becomes of a source, a model or a tool that failed, as data: one ordered list of rules, first
//! match wins.

mod retry;
mod state;
mod when;

use std::{error::Error, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde::Serialize;

pub use self::{
    retry::Retry,
    state::ReliabilityState,
    when::{IntoHolds, InvalidStatusRange, StatusRange, WhenFailed},
};
use crate::{
    model::{ModelError, ModelErrorClass, ModelRequest, ModelResponse},
    output::ErrorCode,
    provider::{DiscoveryErrorClass, ToolProvider},
    suggest::did_you_mean,
};

/// Where in an iteration something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// A source was asked for its tools.
    Discover,
    /// A model was asked.
    Model,
    /// A tool was run.
    Tool,
}

impl Stage {
    /// All of them, in the order of an iteration.
    pub const ALL: [Self; 3] = [Self::Discover, Self::Model, Self::Tool];

    /// The word as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

impl Stage {
    /// The classes that errors of this stage have; see
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

/// What becomes of a failure: a condition and what is done then.
///
/// After each failed attempt the rules are walked from the first on. One whose condition holds
/// decides, unless it cannot do what it says (its attempts are used up, the retry budget is empty,
/// there is nobody else to ask): then the walk goes on behind it. Where no rule decides, what failed
/// has failed. The run's own cancellation is never put to the rules.
///
/// What a gate refused to judge, and what ended itself as cancelled, is only tried again, left out or
/// replaced by a rule that names the class `gate` or `cancelled`; a rule that is about everything is
/// not about these.
///
/// ```
/// use toolcrib_core::{ReliabilityRule, Retry, Stage, Then};
///
/// let rules = [
///     ReliabilityRule::new(Then::Retry(Retry::default()))
///         .when(|state| state.message.contains("hub unreachable") && state.attempt < 3)
///         .kind("discovery-transient"),
///     ReliabilityRule::new(Then::FailFast).stage(Stage::Discover).error_name("AbortError"),
/// ];
/// # let _ = rules;
/// ```
#[derive(Debug, Clone)]
pub struct ReliabilityRule {
    /// When it holds.
    pub when: WhenFailed,
    /// What is done then.
    pub then: Then,
    /// What its author calls the failures that it is about: the `kind` of the error in which they end.
    /// Default: the word for how they ended, such as `retries_exhausted`.
    pub kind: Option<Arc<str>>,
    /// What the rule is called in events. Default: its number.
    pub label: Option<Arc<str>>,
}

impl ReliabilityRule {
    /// A rule for every failure at every stage, to be narrowed.
    pub fn new(then: Then) -> Self {
        Self { when: WhenFailed::default(), then, kind: None, label: None }
    }

    /// Names the failures that it is about.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Names the rule.
    #[must_use]
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Narrows it by code, which gives `bool` or a `Result` of it. Asked last, when all else holds.
    /// Code that panics or gives an error does not match, which an event `reliability.rule_failed`
    /// says: the failure that it was asked about is put to the next rule, and is never swallowed.
    #[must_use]
    pub fn when<F, H>(mut self, check: F) -> Self
    where
        F: Fn(&ReliabilityState<'_>) -> H + Send + Sync + 'static,
        H: IntoHolds,
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

    /// Narrows it to one of these classes of error; see [`ReliabilityState::error_class`].
    #[must_use]
    pub fn error_class(mut self, class: impl Into<Arc<str>>) -> Self {
        self.when.error_classes.push(class.into());
        self
    }

    /// Narrows it to one of these names of errors; see [`ReliabilityState::error_name`].
    #[must_use]
    pub fn error_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.when.error_names.push(name.into());
        self
    }

    /// Checks the words that conditions compare with: a mistyped one matches no failure.
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

    /// Whether it speaks of a class by name.
    pub fn names_class(&self, class: &str) -> bool {
        self.when.error_classes.iter().any(|named| **named == *class)
    }
}

/// A condition of a rule that holds for no failure.
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

/// What a [`ReliabilityRule`] does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Then {
    /// What there is is taken. A source: the step goes on without it, and says so. A model: what it
    /// has said counts as its answer; there must be some of it. A tool: its error goes to the model.
    Ok,
    /// Nothing: the walk goes on with the next rule, as if this one did not match.
    Continue,
    /// The same one is asked again, after a wait. A tool only where that is safe: one that only reads
    /// or is idempotent, or a call that never reached it (`not_available`); never when the outcome is
    /// unknown.
    Retry(Retry),
    /// The next one is asked at once: of the agent's models, of a source's
    /// alternatives. Each is tried this way once.
    RetryOther,
    /// Something else takes its place, at once and once; where that fails too, the rules are walked
    /// again.
    Fallback(Fallback),
    /// Nothing is tried any more. A source or a model: the run fails, whatever the source says of its
    /// failures. A tool: its error goes to the model.
    FailFast,
}

impl Then {
    /// Asks this model instead, by its name.
    pub fn fallback_model(name: impl Into<Arc<str>>) -> Self {
        Self::Fallback(Fallback::Model(name.into()))
    }

    /// Asks this provider instead of the source.
    pub fn fallback_source(provider: Arc<dyn ToolProvider>) -> Self {
        Self::Fallback(Fallback::Source(provider))
    }

    /// Answers instead of the model. The function sees what was asked and what went wrong.
    pub fn fallback_answer<F, Fut>(answer: F) -> Self
    where
        F: Fn(&ModelRequest, &ModelError) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ModelResponse, ModelError>> + Send + 'static,
    {
        Self::Fallback(Fallback::Answer(AnswerFn(Arc::new(move |request, error| {
            Box::pin(answer(request, error))
        }))))
    }

    /// The word as it stands in events and in project files.
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

/// What takes the place of something that failed.
#[derive(Clone)]
#[non_exhaustive]
pub enum Fallback {
    /// Another of the agent's models, by its name.
    Model(Arc<str>),
    /// An answer that code gives instead of a model.
    Answer(AnswerFn),
    /// A provider that is asked instead of a source.
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

type Answering = dyn Fn(&ModelRequest, &ModelError) -> BoxFuture<'static, Result<ModelResponse, ModelError>>
    + Send
    + Sync;

/// The function behind [`Then::fallback_answer`].
#[derive(Clone)]
pub struct AnswerFn(Arc<Answering>);

impl AnswerFn {
    /// Begins to answer.
    pub fn answer(
        &self,
        request: &ModelRequest,
        error: &ModelError,
    ) -> BoxFuture<'static, Result<ModelResponse, ModelError>> {
        (self.0)(request, error)
    }
}

impl fmt::Debug for AnswerFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerFn(..)")
    }
}

/// What a condition in code may fail with.
pub(crate) type CheckError = Box<dyn Error + Send + Sync>;
