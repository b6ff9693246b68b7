//! Reliability of sources, models and tools: rules, the retry budget, breakers. One mechanism for
//! all three stages; see [`ReliabilityRule`].

mod attempts;
mod breakers;
mod budget;
mod default;
mod error;
mod failure;

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{
    __internal::{BreakerChange, may_have},
    BreakerConfig, CancellationToken, EventKind, Fallback, ReliabilityAction, ReliabilityRule,
    Stage, TurnEvents, Usage,
};

pub(crate) use self::breakers::TargetId;
pub use self::{
    attempts::{Attempts, RecoveryStep},
    budget::RetryBudget,
    error::{ExhaustedReason, RetryExhausted},
    failure::{FailedAttempt, Health},
};
use self::{breakers::Breakers, budget::Bucket, default::default_rule};
use crate::secrets::Redactor;

/// The rules of an engine, and the state that all its turns share.
pub(crate) struct Reliability {
    rules: Vec<ReliabilityRule>,
    /// For failed models that none of the rules is about.
    default: ReliabilityRule,
    /// One per stage: frequent calls must not use up the retries of rare ones.
    budgets: [Bucket; Stage::ALL.len()],
    breakers: Breakers,
}

/// An engine's reliability settings, before it is built.
#[derive(Default)]
pub(crate) struct ReliabilitySettings {
    pub(crate) rules: Vec<ReliabilityRule>,
    pub(crate) budget: RetryBudget,
    pub(crate) breakers: Vec<(Stage, BreakerConfig)>,
}

impl ReliabilitySettings {
    pub(crate) fn build(self) -> Arc<Reliability> {
        Arc::new(Reliability {
            rules: self.rules,
            default: default_rule(),
            budgets: Stage::ALL.map(|_| Bucket::new(self.budget)),
            breakers: Breakers::new(&self.breakers),
        })
    }
}

impl Reliability {
    pub(crate) fn rules(&self) -> &[ReliabilityRule] {
        &self.rules
    }

    /// A rule by its number; the default comes after the others.
    fn rule(&self, number: usize) -> Option<&ReliabilityRule> {
        self.rules.get(number).or((number == self.rules.len()).then_some(&self.default))
    }

    /// Whether rules or breakers apply to that stage.
    fn is_about(&self, stage: Stage) -> bool {
        let mut stages = self.rules.iter().map(|rule| rule.when.stage);
        stages.any(|of| of.is_none_or(|of| of == stage)) || self.breakers.are_at(stage)
    }

    fn budget(&self, stage: Stage) -> Option<&Bucket> {
        Stage::ALL.iter().zip(&self.budgets).find(|(of, _)| **of == stage).map(|(_, bucket)| bucket)
    }
}

/// A turn's access to the rules, the breakers and the retry budget of its engine: its own stages
/// use it, and so does your own loop around its model calls. Cloning shares it.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use toolcrib_core::{ModelError, Stage};
/// # use toolcrib_engine::{FailedAttempt, RecoveryStep, Turn};
/// # async fn ask() -> Result<String, ModelError> { Ok(String::new()) }
/// # async fn one_call(turn: &Turn) -> Result<String, ModelError> {
/// let mut attempts = turn.recovery().attempts(Stage::Model, [Arc::from("openai:gpt-5")]);
/// loop {
///     let answer = match attempts.begin() {
///         Ok(()) => ask().await,
///         Err(open) => Err(open.into_model_error()),
///     };
///     let error = match answer {
///         Ok(answer) => {
///             attempts.succeeded();
///             return Ok(answer);
///         }
///         Err(error) => error,
///     };
///     match attempts.failed(&FailedAttempt::of_model(&error)).await {
///         RecoveryStep::Retry => {}
///         _ => return Err(error),
///     }
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct ReliabilityContext(Arc<RecoveryParts>);

struct RecoveryParts {
    reliability: Arc<Reliability>,
    events: Arc<TurnEvents>,
    redactor: Redactor,
    cancellation: CancellationToken,
    used: Mutex<Usage>,
}

impl ReliabilityContext {
    pub(crate) fn new(
        reliability: &Arc<Reliability>,
        events: &Arc<TurnEvents>,
        redactor: &Redactor,
        cancellation: &CancellationToken,
    ) -> Self {
        Self(Arc::new(RecoveryParts {
            reliability: Arc::clone(reliability),
            events: Arc::clone(events),
            redactor: redactor.clone(),
            cancellation: cancellation.clone(),
            used: Mutex::new(Usage::NOTHING),
        }))
    }

    /// Begins an operation that may fail: the first of `choices` is tried; a rule may try the
    /// others. Choices are named as in events.
    pub fn attempts(&self, stage: Stage, choices: impl Into<Arc<[Arc<str>]>>) -> Attempts {
        Attempts::new(self.clone(), stage, choices.into())
    }

    /// Whether a rule may query a provider, instead of a source, that may have this tool.
    pub(crate) fn may_have(&self, tool: &str) -> bool {
        self.0.reliability.rules().iter().any(|rule| match &rule.then {
            ReliabilityAction::Fallback(Fallback::Source(provider)) => may_have(&**provider, tool),
            _ => false,
        })
    }

    pub(crate) fn is_about(&self, stage: Stage) -> bool {
        self.0.reliability.is_about(stage)
    }

    /// Whether the engine has rules beside the default one.
    pub fn has_rules(&self) -> bool {
        !self.0.reliability.rules.is_empty()
    }

    /// Whether calls of tools pass the rules. The cost of tools counts for rules of all stages.
    pub(crate) fn is_for_tools(&self) -> bool {
        self.has_rules() || self.is_about(Stage::Tool)
    }

    /// Adds to the turn's usage, which rules use. The engine adds the cost of tools.
    pub fn used(&self, usage: Usage) {
        *self.lock() += usage;
    }

    fn used_so_far(&self) -> Usage {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.used.lock()
    }

    fn emit(&self, iteration: Option<u32>, kind: impl FnOnce() -> EventKind) {
        self.0.events.emit(iteration, kind);
    }

    fn changed(&self, stage: Stage, of: &Arc<str>, iteration: Option<u32>, change: BreakerChange) {
        self.emit(iteration, || EventKind::BreakerChanged {
            stage,
            of: Arc::clone(of),
            from: change.from.into(),
            to: change.to.into(),
        });
    }

    /// Waits, unless the turn is cancelled first.
    async fn wait(cancellation: &CancellationToken, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = cancellation.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

toolcrib_core::__internal::debug_fields!(
    ReliabilityContext,
    context,
    rules = context.0.reliability.rules.len(),
    ..
);
