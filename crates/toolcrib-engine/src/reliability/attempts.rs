//! An operation that is retried as the rules say.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolcrib_core::{
    __internal::{BreakerChange, millis, random_share},
    BreakerOpenError, CancellationToken, EventKind, Fallback, Permit, ReliabilityAction,
    ReliabilityRule, ReliabilityState, Stage,
};

use super::{
    ExhaustedReason, FailedAttempt, Health, Reliability, ReliabilityContext, RetryExhausted,
    breakers::{BreakerKey, TargetId},
};

/// Maximum number of attempts, whatever the rules allow.
const MOST_ATTEMPTS: u32 = 50;

/// An operation that is retried as the rules say: one listing of a source, one response of a model,
/// one call of a tool. Created by [`ReliabilityContext::attempts`].
///
/// Per attempt: [`begin`](Self::begin), then [`succeeded`](Self::succeeded) or
/// [`failed`](Self::failed), which returns the next step.
pub struct Attempts {
    recovery: ReliabilityContext,
    cancellation: CancellationToken,
    stage: Stage,
    iteration: Option<u32>,
    choices: Arc<[Arc<str>]>,
    /// Identifies each choice, since several may have the same name.
    which: Vec<TargetId>,
    /// The current one of the choices; `None` for a fallback that is not among them.
    current: Option<usize>,
    tried: Vec<usize>,
    /// The name of the current provider.
    provider: Arc<str>,
    /// The same for a fallback that is not among the choices.
    instead: TargetId,
    began: Instant,
    /// Attempts begun, in total and with the current provider.
    attempts: u32,
    of_provider: u32,
    paid: bool,
    permit: Option<Permit>,
    /// The last rule that caused an attempt.
    acted: Option<usize>,
    /// The rules whose fallback was used.
    fallen_back: Vec<usize>,
}

/// The step after a failed attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoveryStep {
    /// Retry with the same choice now: the wait is over.
    Retry,
    /// Try the choice with this number now.
    Other(usize),
    /// Try this fallback now.
    Fallback(Fallback),
    /// Accept the incomplete result.
    Accept,
    /// The operation failed, and no rule matched.
    Failed,
    /// The operation failed, and rules gave up.
    RetryExhausted(RetryExhausted),
    /// The turn is cancelled.
    Cancelled,
}

/// The rules' decision, and the rule that made it.
enum Decision {
    Again(usize, Duration),
    Other(usize, usize),
    Fallback(usize, Fallback),
    Accept(usize),
    GiveUp(usize, ExhaustedReason),
    NoRule,
}

impl Attempts {
    pub(super) fn new(
        recovery: ReliabilityContext,
        stage: Stage,
        choices: Arc<[Arc<str>]>,
    ) -> Self {
        Self {
            cancellation: recovery.0.cancellation.clone(),
            provider: choices.first().cloned().unwrap_or_default(),
            recovery,
            stage,
            iteration: None,
            choices,
            which: Vec::new(),
            instead: TargetId::Named,
            current: Some(0),
            tried: Vec::new(),
            began: Instant::now(),
            attempts: 0,
            of_provider: 0,
            paid: false,
            permit: None,
            acted: None,
            fallen_back: Vec::new(),
        }
    }

    /// Sets the iteration, for events.
    #[must_use]
    pub fn in_iteration(mut self, iteration: Option<u32>) -> Self {
        self.iteration = iteration;
        self
    }

    /// Distinguishes the choices from others of the same names, in the same order: each has a
    /// separate breaker.
    pub(crate) fn which_are(mut self, which: Vec<TargetId>) -> Self {
        self.which = which;
        self
    }

    /// Sets the token that cancels the waits. Default: the turn's.
    #[must_use]
    pub fn cancelled_by(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Begins with this choice instead of the first.
    #[must_use]
    pub fn beginning_with(mut self, choice: usize) -> Self {
        self.ask(choice);
        self
    }

    /// The number of attempts begun.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The current choice; `None` for a fallback that is not among the choices.
    pub fn choice(&self) -> Option<usize> {
        self.current
    }

    /// Begins an attempt if the breaker permits it.
    ///
    /// # Errors
    /// [`BreakerOpenError`] when the breaker refuses it; it counts as a failed attempt.
    pub fn begin(&mut self) -> Result<(), BreakerOpenError> {
        self.attempts = self.attempts.saturating_add(1);
        self.of_provider = self.of_provider.saturating_add(1);
        let breakers = &self.recovery.0.reliability.breakers;
        let Some(admitted) = breakers.admit(self.stage, || self.guarded())? else {
            return Ok(());
        };
        self.changed(admitted.change);
        self.permit = Some(admitted.permit);
        Ok(())
    }

    fn guarded(&self) -> BreakerKey {
        let which = match self.current {
            Some(choice) => self.which.get(choice).cloned().unwrap_or_default(),
            None => self.instead.clone(),
        };
        let tenant = self.recovery.0.events.identity().tenant.clone();
        BreakerKey { name: Arc::clone(&self.provider), which, tenant }
    }

    /// Reports that the attempt succeeded.
    pub fn succeeded(&mut self) {
        self.pay();
        self.succeeded_at_once();
    }

    /// Reports success without a request that could overload anything: it earns no retries.
    pub(crate) fn succeeded_at_once(&mut self) {
        self.settle(true);
        if let Some(via) = self.acted.and_then(|rule| self.rule(rule)) {
            self.recovered(via.then.as_str());
        }
    }

    /// Reports that the attempt failed: evaluates the rules, and waits if they say so.
    pub async fn failed(&mut self, failure: &FailedAttempt<'_>) -> RecoveryStep {
        self.note(failure);
        if self.cancellation.is_cancelled() {
            return RecoveryStep::Cancelled;
        }
        match self.decision(failure) {
            Decision::Again(rule, wait) => {
                self.retried(rule, failure, None, wait);
                if wait.is_zero() || ReliabilityContext::wait(&self.cancellation, wait).await {
                    RecoveryStep::Retry
                } else {
                    RecoveryStep::Cancelled
                }
            }
            Decision::Other(rule, choice) => {
                self.retried(rule, failure, self.choices.get(choice).cloned(), Duration::ZERO);
                self.ask(choice);
                RecoveryStep::Other(choice)
            }
            Decision::Fallback(rule, fallback) => {
                let (name, which): (Arc<str>, _) = match &fallback {
                    Fallback::Source(provider) => (provider.path().into(), TargetId::at(provider)),
                    _ => ("answer".into(), TargetId::Named),
                };
                self.retried(rule, failure, Some(Arc::clone(&name)), Duration::ZERO);
                self.tried.extend(self.current.take());
                self.of_provider = 0;
                self.provider = name;
                self.instead = which;
                RecoveryStep::Fallback(fallback)
            }
            Decision::Accept(rule) => {
                let via = self.rule(rule).map_or("ok", |rule| rule.then.as_str());
                self.recovered(via);
                RecoveryStep::Accept
            }
            Decision::GiveUp(rule, code) => {
                RecoveryStep::RetryExhausted(self.exhausted(rule, code, failure))
            }
            Decision::NoRule => RecoveryStep::Failed,
        }
    }

    /// Reports a failed attempt to the breaker and the budget, without evaluating rules: for an
    /// attempt that is the last in any case. A cancelled attempt is not counted.
    pub(crate) fn note(&mut self, failure: &FailedAttempt<'_>) {
        self.pay();
        match failure.health {
            _ if self.cancellation.is_cancelled() => self.abandon(),
            Health::Healthy => self.settle(true),
            Health::Unhealthy => self.settle(false),
            Health::Unknown => self.abandon(),
        }
    }

    fn decision(&mut self, failure: &FailedAttempt<'_>) -> Decision {
        let recovery = self.recovery.clone();
        let used = recovery.used_so_far();
        let provider = Arc::clone(&self.provider);
        let mut state = ReliabilityState::new(self.stage, &provider);
        state.leaf = failure.leaf.unwrap_or(&provider);
        state.attempt = self.attempts;
        state.error_class = failure.error_class;
        state.code = failure.code;
        state.message = failure.message;
        state.http_status = failure.http_status;
        state.retry_after = failure.retry_after;
        state.validation_error = failure.validation_error.then_some(failure.message);
        state.elapsed = self.began.elapsed();
        state.tokens = used.input_tokens.saturating_add(used.output_tokens);
        state.cost_usd = used.cost_usd;

        let Reliability { rules, default, .. } = &*recovery.0.reliability;
        let default = (!is_replaced(rules, &state)).then_some(default);
        // The first matching rule whose action is not possible.
        let mut stuck = None;
        for (number, rule) in rules.iter().chain(default).enumerate() {
            if !self.is_about(rule, &state, number) {
                continue;
            }
            match self.what_it_can(number, rule, failure) {
                Ok(Some(decision)) => {
                    if !matches!(decision, Decision::GiveUp(..)) {
                        self.acted = Some(number);
                    }
                    return decision;
                }
                Ok(None) => {}
                Err(code) => {
                    stuck.get_or_insert((number, code));
                }
            }
        }
        let exhausted = || self.acted.map(|rule| (rule, ExhaustedReason::RetriesExhausted));
        match stuck.or_else(exhausted) {
            Some((rule, code)) => Decision::GiveUp(rule, code),
            None => Decision::NoRule,
        }
    }

    /// Whether a rule's condition is true, and whether it may apply to such a failure at all.
    fn is_about(
        &self,
        rule: &ReliabilityRule,
        state: &ReliabilityState<'_>,
        number: usize,
    ) -> bool {
        if !may_apply(rule, state) {
            return false;
        }
        rule.when.matches(state).unwrap_or_else(|error| {
            let error = self.recovery.0.redactor.text(&error.to_string()).into_owned();
            self.recovery.emit(self.iteration, || EventKind::ReliabilityRuleFailed {
                rule: self.name_of(number),
                error,
            });
            false
        })
    }

    /// The action of a matching rule: `None` if it does nothing, an error if its action is not
    /// possible.
    fn what_it_can(
        &mut self,
        number: usize,
        rule: &ReliabilityRule,
        failure: &FailedAttempt<'_>,
    ) -> Result<Option<Decision>, ExhaustedReason> {
        match &rule.then {
            ReliabilityAction::Continue => return Ok(None),
            ReliabilityAction::FailFast => {
                return Ok(Some(Decision::GiveUp(number, ExhaustedReason::FailFast)));
            }
            ReliabilityAction::Ok if failure.acceptable => {
                return Ok(Some(Decision::Accept(number)));
            }
            ReliabilityAction::Ok => return Err(ExhaustedReason::NothingToAccept),
            ReliabilityAction::RetryOther if self.stage == Stage::Tool => return Ok(None),
            ReliabilityAction::Fallback(fallback) if !is_for(fallback, self.stage) => {
                return Ok(None);
            }
            _ => {}
        }
        if let Some(code) = failure.unrepeatable {
            return Err(code);
        }
        if self.attempts >= MOST_ATTEMPTS {
            return Err(ExhaustedReason::RetriesExhausted);
        }
        let decision = match &rule.then {
            ReliabilityAction::Retry(retry) => {
                // A fallback that is not among the choices is tried once.
                if self.of_provider >= retry.attempts || self.current.is_none() {
                    return Err(ExhaustedReason::RetriesExhausted);
                }
                let wait = retry
                    .wait(self.of_provider, random_share(), failure.retry_after)
                    .ok_or(ExhaustedReason::WaitTooLong)?;
                let budget = self.recovery.0.reliability.budget(self.stage);
                if budget.is_some_and(|budget| !budget.withdraw()) {
                    return Err(ExhaustedReason::RetryBudgetExhausted);
                }
                Decision::Again(number, wait)
            }
            ReliabilityAction::RetryOther => {
                Decision::Other(number, self.other().ok_or(ExhaustedReason::NoOther)?)
            }
            ReliabilityAction::Fallback(_) if self.fallen_back.contains(&number) => {
                return Err(ExhaustedReason::RetriesExhausted);
            }
            ReliabilityAction::Fallback(fallback) => {
                let decision = self.fallback(number, fallback).ok_or(ExhaustedReason::NoOther)?;
                self.fallen_back.push(number);
                decision
            }
            _ => return Ok(None),
        };
        Ok(Some(decision))
    }

    /// The next choice that was not tried, wrapping around.
    fn other(&self) -> Option<usize> {
        let current = self.current.or_else(|| self.tried.last().copied())?;
        let all = self.choices.len();
        let mut behind = (current + 1..all).chain(0..current.min(all));
        behind.find(|choice| !self.tried.contains(choice))
    }

    fn fallback(&self, number: usize, fallback: &Fallback) -> Option<Decision> {
        let Fallback::Model(name) = fallback else {
            return Some(Decision::Fallback(number, fallback.clone()));
        };
        let choice = self.choices.iter().position(|choice| choice == name)?;
        (Some(choice) != self.current).then_some(Decision::Other(number, choice))
    }

    fn ask(&mut self, choice: usize) {
        self.tried.extend(self.current.filter(|_| self.attempts > 0));
        self.current = Some(choice);
        self.of_provider = 0;
        self.provider = self.choices.get(choice).cloned().unwrap_or_default();
    }

    /// Adds the share of a retry for the first attempt.
    fn pay(&mut self) {
        if !std::mem::replace(&mut self.paid, true)
            && let Some(budget) = self.recovery.0.reliability.budget(self.stage)
        {
            budget.deposit();
        }
    }

    fn settle(&mut self, succeeded: bool) {
        let change = self.permit.take().and_then(|permit| permit.settle(succeeded));
        self.changed(change);
    }

    fn abandon(&mut self) {
        let change = self.permit.take().and_then(Permit::abandon);
        self.changed(change);
    }

    fn changed(&self, change: Option<BreakerChange>) {
        if let Some(change) = change {
            self.recovery.changed(self.stage, &self.provider, self.iteration, change);
        }
    }

    fn rule(&self, number: usize) -> Option<&ReliabilityRule> {
        self.recovery.0.reliability.rule(number)
    }

    fn name_of(&self, number: usize) -> Arc<str> {
        self.rule(number)
            .and_then(|rule| rule.label.clone())
            .unwrap_or_else(|| format!("reliability rule {}", number + 1).into())
    }

    fn retried(
        &self,
        rule: usize,
        failure: &FailedAttempt<'_>,
        to: Option<Arc<str>>,
        wait: Duration,
    ) {
        self.recovery.emit(self.iteration, || EventKind::ReliabilityRetried {
            stage: self.stage,
            then: self.rule(rule).map_or("retry", |rule| rule.then.as_str()).into(),
            provider: Arc::clone(&self.provider),
            to,
            attempt: self.attempts,
            wait_ms: millis(wait),
            rule: self.name_of(rule),
            error_class: failure.error_class.into(),
        });
    }

    fn recovered(&self, via: &str) {
        self.recovery.emit(self.iteration, || EventKind::ReliabilityRecovered {
            stage: self.stage,
            provider: Arc::clone(&self.provider),
            attempts: self.attempts,
            via: via.into(),
        });
    }

    fn exhausted(
        &self,
        rule: usize,
        code: ExhaustedReason,
        failure: &FailedAttempt<'_>,
    ) -> RetryExhausted {
        let kind = self.rule(rule).and_then(|rule| rule.kind.clone());
        let exhausted = RetryExhausted {
            stage: self.stage,
            kind: kind.unwrap_or_else(|| code.as_str().into()),
            code,
            rule: self.name_of(rule),
            provider: Arc::clone(&self.provider),
            attempts: self.attempts,
        };
        self.recovery.emit(self.iteration, || EventKind::ReliabilityFailFast {
            stage: exhausted.stage,
            provider: Arc::clone(&exhausted.provider),
            kind: Arc::clone(&exhausted.kind),
            code: code.as_str().into(),
            rule: Arc::clone(&exhausted.rule),
            attempts: exhausted.attempts,
            error: self.recovery.0.redactor.text(failure.message).into_owned(),
            error_class: failure.error_class.into(),
        });
        exhausted
    }
}

/// Whether a rule may apply to such a failure at all: some only if it names the class.
fn may_apply(rule: &ReliabilityRule, state: &ReliabilityState<'_>) -> bool {
    let by_name_only = matches!(state.error_class, "gate" | "cancelled")
        && !matches!(rule.then, ReliabilityAction::FailFast | ReliabilityAction::Continue);
    !by_name_only || rule.has_class(state.error_class)
}

/// Whether a rule replaces the default one for such a failure: it matches the failure, or would
/// match it as the first one of a run. So a rule's limits, such as `attempt_below`, limit all
/// retries.
fn is_replaced(rules: &[ReliabilityRule], state: &ReliabilityState<'_>) -> bool {
    let mut first = state.clone();
    (first.attempt, first.elapsed, first.tokens) = (1, Duration::ZERO, 0);
    first.cost_usd = Some(0.0);
    rules.iter().any(|rule| {
        let acts = match &rule.then {
            ReliabilityAction::Continue => false,
            ReliabilityAction::Fallback(fallback) => is_for(fallback, state.stage),
            _ => true,
        };
        acts && may_apply(rule, state)
            && [state, &first].iter().any(|state| rule.when.matches(state).unwrap_or(false))
    })
}

/// Whether the fallback can replace a failure at that stage; a rule with another does not apply.
fn is_for(fallback: &Fallback, stage: Stage) -> bool {
    match fallback {
        Fallback::Source(_) => stage == Stage::Discover,
        _ => stage == Stage::Model,
    }
}

impl Drop for Attempts {
    /// An attempt without a reported outcome, such as a cancelled one.
    fn drop(&mut self) {
        self.abandon();
    }
}

toolcrib_core::__internal::debug_fields!(Attempts { stage, provider, attempts, .. });
