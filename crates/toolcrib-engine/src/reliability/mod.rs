//! What becomes of sources, models and tools that fail: rules, the budget of retries, breakers. One
//! mechanism for all three stages; see [`ReliabilityRule`].

mod attempts;
mod breakers;
mod budget;
mod error;
mod failure;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use toolcrib_core::{
    CancellationToken, EventKind, Fallback, ReliabilityRule, RunEvents, Stage, Then, Usage,
};

pub(crate) use self::breakers::Which;
pub use self::{
    attempts::{Attempts, NextStep},
    budget::RetryBudget,
    error::{GaveUp, GaveUpCode, ReliabilityError},
    failure::{FailedAttempt, Health},
};
use self::{breakers::Breakers, budget::Bucket};
use crate::{
    breaker::{BreakerChange, BreakerConfig},
    redactor::Redactor,
    sources::may_have,
};

/// The rules of an engine, and what they share over all its turns.
pub(crate) struct Reliability {
    rules: Vec<ReliabilityRule>,
    /// One per stage: what is called often must not pay for the retries of what is called seldom.
    budgets: [Bucket; Stage::ALL.len()],
    breakers: Breakers,
}

/// What an engine is told of its reliability, before it is built.
#[derive(Default)]
pub(crate) struct ReliabilitySettings {
    pub(crate) rules: Vec<ReliabilityRule>,
    pub(crate) budget: RetryBudget,
    pub(crate) breakers: Vec<(Stage, BreakerConfig)>,
}

impl ReliabilitySettings {
    /// `None` where nothing is to be done about failures: then nothing is done for it either.
    pub(crate) fn build(self) -> Option<Arc<Reliability>> {
        if self.rules.is_empty() && self.breakers.is_empty() {
            return None;
        }
        Some(Arc::new(Reliability {
            rules: self.rules,
            budgets: Stage::ALL.map(|_| Bucket::new(self.budget)),
            breakers: Breakers::new(&self.breakers),
        }))
    }
}

impl Reliability {
    pub(crate) fn rules(&self) -> &[ReliabilityRule] {
        &self.rules
    }

    /// Whether there is anything to do about what fails at that stage.
    fn is_about(&self, stage: Stage) -> bool {
        let mut stages = self.rules.iter().map(|rule| rule.when.stage);
        stages.any(|of| of.is_none_or(|of| of == stage)) || self.breakers.are_at(stage)
    }

    fn budget(&self, stage: Stage) -> Option<&Bucket> {
        Stage::ALL.iter().zip(&self.budgets).find(|(of, _)| **of == stage).map(|(_, bucket)| bucket)
    }
}

/// A turn's way to the rules, the breakers and the budget of its engine: what its own stages use, and
/// what a loop of one's own uses around its model calls. Cloning shares it.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use toolcrib_core::{ModelError, Stage};
/// # use toolcrib_engine::{FailedAttempt, NextStep, Turn};
/// # async fn ask() -> Result<String, ModelError> { Ok(String::new()) }
/// # async fn one_call(turn: &Turn) -> Result<String, ModelError> {
/// let Some(recovery) = turn.recovery() else { return ask().await };
/// let mut attempts = recovery.attempts(Stage::Model, [Arc::from("openai:gpt-5")]);
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
///         NextStep::Retry => {}
///         _ => return Err(error),
///     }
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Recovery(Arc<RecoveryParts>);

struct RecoveryParts {
    reliability: Arc<Reliability>,
    events: Arc<RunEvents>,
    redactor: Redactor,
    cancellation: CancellationToken,
    used: Mutex<Usage>,
}

impl Recovery {
    pub(crate) fn new(
        reliability: &Arc<Reliability>,
        events: &Arc<RunEvents>,
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

    /// Begins with something that may fail: the first of `choices` is asked, the others are whom a
    /// rule may have asked instead. By the names that they have in events.
    pub fn attempts(&self, stage: Stage, choices: impl Into<Arc<[Arc<str>]>>) -> Attempts {
        Attempts::new(self.clone(), stage, choices.into())
    }

    /// Whether there is anything to do about what fails at that stage.
    /// Whether a rule may have a provider asked, in place of a source, that may have this tool.
    pub(crate) fn may_have(&self, tool: &str) -> bool {
        self.0.reliability.rules().iter().any(|rule| match &rule.then {
            Then::Fallback(Fallback::Source(provider)) => may_have(&**provider, tool),
            _ => false,
        })
    }

    pub(crate) fn is_about(&self, stage: Stage) -> bool {
        self.0.reliability.is_about(stage)
    }

    /// Adds to what the run has used, which rules look at. The engine adds what tools cost.
    pub fn used(&self, usage: Usage) {
        *self.lock() += usage;
    }

    fn used_so_far(&self) -> Usage {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Waits, unless the run is cancelled first.
    async fn wait(cancellation: &CancellationToken, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = cancellation.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

impl std::fmt::Debug for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recovery")
            .field("rules", &self.0.reliability.rules.len())
            .finish_non_exhaustive()
    }
}
