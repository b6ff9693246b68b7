//! One thing that is tried, as often as rules have it.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolcrib_core::{
    CancellationToken, EventKind, Fallback, ReliabilityRule, ReliabilityState, Stage, Then, millis,
    random_share,
};

use super::{
    FailedAttempt, GaveUp, GaveUpCode, Health, Recovery,
    breakers::{Guarded, Which},
};
use crate::breaker::{BreakerChange, BreakerOpen, Permit};

/// However many attempts rules allow, there are no more than these.
const MOST_ATTEMPTS: u32 = 50;

/// Something that is tried, as often as rules have it: one listing of a source, one answer of a
/// model, one call of a tool. Made by [`Recovery::attempts`].
///
/// Per attempt: [`begin`](Self::begin), then [`succeeded`](Self::succeeded) or
/// [`failed`](Self::failed), which says what to do next.
pub struct Attempts {
    recovery: Recovery,
    cancellation: CancellationToken,
    stage: Stage,
    iteration: Option<u32>,
    choices: Arc<[Arc<str>]>,
    /// Which one each of the choices is, where several may have one name.
    which: Vec<Which>,
    /// Who is asked, among the choices; `None` for a fallback that is none of them.
    current: Option<usize>,
    tried: Vec<usize>,
    /// Who is asked, by name.
    provider: Arc<str>,
    /// The same for a fallback that is none of the choices.
    instead: Which,
    began: Instant,
    /// How many attempts have begun, and how many of them with who is asked now.
    attempts: u32,
    of_provider: u32,
    paid: bool,
    permit: Option<Permit>,
    /// The last rule that had something tried.
    acted: Option<usize>,
    /// The rules whose fallback was taken.
    fallen_back: Vec<usize>,
}

/// What is done after a failed attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum NextStep {
    /// The same one is asked again, now: the wait is over.
    Retry,
    /// The choice with this number is asked, now.
    Other(usize),
    /// This takes its place, now.
    Fallback(Fallback),
    /// What there is is accepted.
    Accept,
    /// It has failed, and no rule was about it.
    Failed,
    /// It has failed, and rules gave it up.
    GaveUp(GaveUp),
    /// The run is cancelled.
    Cancelled,
}

/// What the rules say, and which of them.
enum Verdict {
    Again(usize, Duration),
    Other(usize, usize),
    Fallback(usize, Fallback),
    Accept(usize),
    GaveUp(usize, GaveUpCode),
    NoRule,
}

impl Attempts {
    pub(super) fn new(recovery: Recovery, stage: Stage, choices: Arc<[Arc<str>]>) -> Self {
        Self {
            cancellation: recovery.0.cancellation.clone(),
            provider: choices.first().cloned().unwrap_or_default(),
            recovery,
            stage,
            iteration: None,
            choices,
            which: Vec::new(),
            instead: Which::Named,
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

    /// Names the iteration, for events.
    #[must_use]
    pub fn in_iteration(mut self, iteration: Option<u32>) -> Self {
        self.iteration = iteration;
        self
    }

    /// Tells the choices from others of the same names, in the same order: each has a breaker of its
    /// own.
    pub(crate) fn which_are(mut self, which: Vec<Which>) -> Self {
        self.which = which;
        self
    }

    /// Sets what ends the waits. Default: what ends the turn.
    #[must_use]
    pub fn cancelled_by(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Begins with that one of the choices instead of the first.
    #[must_use]
    pub fn beginning_with(mut self, choice: usize) -> Self {
        self.ask(choice);
        self
    }

    /// How many attempts have begun.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Who is asked, by number; `None` for a fallback that is none of the choices.
    pub fn choice(&self) -> Option<usize> {
        self.current
    }

    /// Begins an attempt.
    ///
    /// # Errors
    /// [`BreakerOpen`] when it must not be made; it counts as one that failed.
    pub fn begin(&mut self) -> Result<(), BreakerOpen> {
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

    fn guarded(&self) -> Guarded {
        let which = match self.current {
            Some(choice) => self.which.get(choice).cloned().unwrap_or_default(),
            None => self.instead.clone(),
        };
        let tenant = self.recovery.0.events.identity().tenant.clone();
        Guarded { name: Arc::clone(&self.provider), which, tenant }
    }

    /// The attempt succeeded.
    pub fn succeeded(&mut self) {
        self.pay();
        self.succeeded_at_once();
    }

    /// The attempt succeeded, and nothing was asked for it that could fail from being asked too
    /// often: it earns no retries.
    pub(crate) fn succeeded_at_once(&mut self) {
        self.settle(true);
        if let Some(via) = self.acted.and_then(|rule| self.rule(rule)) {
            self.recovered(via.then.as_str());
        }
    }

    /// The attempt failed: asks the rules, and waits if they say so.
    pub async fn failed(&mut self, failure: &FailedAttempt<'_>) -> NextStep {
        self.note(failure);
        if self.cancellation.is_cancelled() {
            return NextStep::Cancelled;
        }
        match self.verdict(failure) {
            Verdict::Again(rule, wait) => {
                self.retried(rule, failure, None, wait);
                if wait.is_zero() || Recovery::wait(&self.cancellation, wait).await {
                    NextStep::Retry
                } else {
                    NextStep::Cancelled
                }
            }
            Verdict::Other(rule, choice) => {
                self.retried(rule, failure, self.choices.get(choice).cloned(), Duration::ZERO);
                self.ask(choice);
                NextStep::Other(choice)
            }
            Verdict::Fallback(rule, fallback) => {
                let (name, which): (Arc<str>, _) = match &fallback {
                    Fallback::Source(provider) => (provider.path().into(), Which::at(provider)),
                    _ => ("answer".into(), Which::Named),
                };
                self.retried(rule, failure, Some(Arc::clone(&name)), Duration::ZERO);
                self.tried.extend(self.current.take());
                self.of_provider = 0;
                self.provider = name;
                self.instead = which;
                NextStep::Fallback(fallback)
            }
            Verdict::Accept(rule) => {
                let via = self.rule(rule).map_or("ok", |rule| rule.then.as_str());
                self.recovered(via);
                NextStep::Accept
            }
            Verdict::GaveUp(rule, code) => NextStep::GaveUp(self.gave_up(rule, code, failure)),
            Verdict::NoRule => NextStep::Failed,
        }
    }

    /// Tells the breaker and the budget of a failed attempt, and asks no rule: for one that is the last
    /// whatever rules say. What ended because the run was cancelled says nothing.
    pub(crate) fn note(&mut self, failure: &FailedAttempt<'_>) {
        self.pay();
        match failure.health {
            _ if self.cancellation.is_cancelled() => self.abandon(),
            Health::Well => self.settle(true),
            Health::Unwell => self.settle(false),
            Health::Unknown => self.abandon(),
        }
    }

    fn verdict(&mut self, failure: &FailedAttempt<'_>) -> Verdict {
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

        // The first rule that holds and cannot do what it says.
        let mut stuck = None;
        for (number, rule) in recovery.0.reliability.rules.iter().enumerate() {
            if !self.is_about(rule, &state, number) {
                continue;
            }
            match self.what_it_can(number, rule, failure) {
                Ok(Some(verdict)) => {
                    if !matches!(verdict, Verdict::GaveUp(..)) {
                        self.acted = Some(number);
                    }
                    return verdict;
                }
                Ok(None) => {}
                Err(code) => {
                    stuck.get_or_insert((number, code));
                }
            }
        }
        let exhausted = || self.acted.map(|rule| (rule, GaveUpCode::RetriesExhausted));
        match stuck.or_else(exhausted) {
            Some((rule, code)) => Verdict::GaveUp(rule, code),
            None => Verdict::NoRule,
        }
    }

    /// Whether a rule's condition holds, and whether it may be about such a failure at all.
    fn is_about(
        &self,
        rule: &ReliabilityRule,
        state: &ReliabilityState<'_>,
        number: usize,
    ) -> bool {
        let by_name_only = matches!(state.error_class, "gate" | "cancelled")
            && !matches!(rule.then, Then::FailFast | Then::Continue);
        if by_name_only && !rule.names_class(state.error_class) {
            return false;
        }
        rule.when.holds(state).unwrap_or_else(|error| {
            let error = self.recovery.0.redactor.text(&error.to_string()).into_owned();
            self.recovery.emit(self.iteration, || EventKind::ReliabilityRuleFailed {
                rule: self.name_of(number),
                error,
            });
            false
        })
    }

    /// What a rule that holds does: nothing with `None`, and with an error nothing though it would.
    fn what_it_can(
        &mut self,
        number: usize,
        rule: &ReliabilityRule,
        failure: &FailedAttempt<'_>,
    ) -> Result<Option<Verdict>, GaveUpCode> {
        match &rule.then {
            Then::Continue => return Ok(None),
            Then::FailFast => return Ok(Some(Verdict::GaveUp(number, GaveUpCode::FailFast))),
            Then::Ok if failure.acceptable => return Ok(Some(Verdict::Accept(number))),
            Then::Ok => return Err(GaveUpCode::NothingToAccept),
            Then::RetryOther if self.stage == Stage::Tool => return Ok(None),
            Then::Fallback(fallback) if !is_for(fallback, self.stage) => return Ok(None),
            _ => {}
        }
        if let Some(code) = failure.unrepeatable {
            return Err(code);
        }
        if self.attempts >= MOST_ATTEMPTS {
            return Err(GaveUpCode::RetriesExhausted);
        }
        let verdict = match &rule.then {
            Then::Retry(retry) => {
                // A fallback that is none of the choices is asked once.
                if self.of_provider >= retry.attempts || self.current.is_none() {
                    return Err(GaveUpCode::RetriesExhausted);
                }
                let wait = retry
                    .wait(self.of_provider, random_share(), failure.retry_after)
                    .ok_or(GaveUpCode::WaitTooLong)?;
                let budget = self.recovery.0.reliability.budget(self.stage);
                if budget.is_some_and(|budget| !budget.withdraw()) {
                    return Err(GaveUpCode::RetryBudgetExhausted);
                }
                Verdict::Again(number, wait)
            }
            Then::RetryOther => Verdict::Other(number, self.other().ok_or(GaveUpCode::NoOther)?),
            Then::Fallback(_) if self.fallen_back.contains(&number) => {
                return Err(GaveUpCode::RetriesExhausted);
            }
            Then::Fallback(fallback) => {
                let verdict = self.fallback(number, fallback).ok_or(GaveUpCode::NoOther)?;
                self.fallen_back.push(number);
                verdict
            }
            _ => return Ok(None),
        };
        Ok(Some(verdict))
    }

    /// The next choice that was not asked, round the end.
    fn other(&self) -> Option<usize> {
        let current = self.current.or_else(|| self.tried.last().copied())?;
        let all = self.choices.len();
        let mut behind = (current + 1..all).chain(0..current.min(all));
        behind.find(|choice| !self.tried.contains(choice))
    }

    fn fallback(&self, number: usize, fallback: &Fallback) -> Option<Verdict> {
        let Fallback::Model(name) = fallback else {
            return Some(Verdict::Fallback(number, fallback.clone()));
        };
        let choice = self.choices.iter().position(|choice| choice == name)?;
        (Some(choice) != self.current).then_some(Verdict::Other(number, choice))
    }

    fn ask(&mut self, choice: usize) {
        self.tried.extend(self.current.filter(|_| self.attempts > 0));
        self.current = Some(choice);
        self.of_provider = 0;
        self.provider = self.choices.get(choice).cloned().unwrap_or_default();
    }

    /// What was asked for once earns its share of a retry.
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
        self.recovery.0.reliability.rules.get(number)
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

    fn gave_up(&self, rule: usize, code: GaveUpCode, failure: &FailedAttempt<'_>) -> GaveUp {
        let kind = self.rule(rule).and_then(|rule| rule.kind.clone());
        let gave_up = GaveUp {
            stage: self.stage,
            kind: kind.unwrap_or_else(|| code.as_str().into()),
            code,
            rule: self.name_of(rule),
            provider: Arc::clone(&self.provider),
            attempts: self.attempts,
        };
        self.recovery.emit(self.iteration, || EventKind::ReliabilityFailFast {
            stage: gave_up.stage,
            provider: Arc::clone(&gave_up.provider),
            kind: Arc::clone(&gave_up.kind),
            code: code.as_str().into(),
            rule: Arc::clone(&gave_up.rule),
            attempts: gave_up.attempts,
            error: self.recovery.0.redactor.text(failure.message).into_owned(),
            error_class: failure.error_class.into(),
        });
        gave_up
    }
}

/// Whether it can take the place of what fails at that stage; a rule with another is not about it.
fn is_for(fallback: &Fallback, stage: Stage) -> bool {
    match fallback {
        Fallback::Source(_) => stage == Stage::Discover,
        _ => stage == Stage::Model,
    }
}

impl Drop for Attempts {
    /// An attempt of which nobody says how it ended, such as one that is cancelled.
    fn drop(&mut self) {
        self.abandon();
    }
}

impl std::fmt::Debug for Attempts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempts")
            .field("stage", &self.stage)
            .field("provider", &self.provider)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
