//! A circuit breaker: stops attempts at something that keeps failing.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::{
    models::model::{ModelError, ModelErrorClass},
    provider::{DiscoveryError, DiscoveryErrorClass},
};

/// Thirty years.
const AGES: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// When a [`Breaker`] opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Number of consecutive failures that open it; 0 counts as 1. Default: 5.
    pub failures: u32,
    /// Time it stays open before one attempt is admitted. Default: 30 s.
    pub open_for: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self { failures: 5, open_for: Duration::from_secs(30) }
    }
}

/// Counts consecutive failures of something that may be down, and refuses attempts at once while it
/// very likely still is. Cloning shares it; it outlives a call, a turn and a connection.
///
/// It is closed at first and admits every attempt. After [`failures`](BreakerConfig::failures)
/// consecutive failures it is open and admits none for [`open_for`](BreakerConfig::open_for). Then
/// it is half-open: it admits exactly one attempt, whose outcome closes or opens it. It starts no
/// task and has no timer. The caller limits the duration of an attempt: one that never ends keeps a
/// half-open breaker half-open.
///
/// ```
/// # use toolcrib_core::{Breaker, BreakerConfig};
/// # fn dial() -> std::io::Result<()> { Ok(()) }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let breaker = Breaker::new(BreakerConfig::default());
/// let permit = breaker.admit()?;
/// match dial() {
///     Ok(()) => permit.succeeded(),
///     Err(_) => permit.failed(),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Breaker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: BreakerConfig,
    now: Mutex<VersionedState>,
}

/// The state, and how often it has changed: a permit of an earlier state no longer affects this
/// one.
#[derive(Debug)]
struct VersionedState {
    state: State,
    changes: u64,
}

#[derive(Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    HalfOpen,
}

/// How a [`Breaker`] treats the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// Every attempt is admitted.
    Closed,
    /// Attempts are refused until this much time has passed; then one is admitted.
    Open {
        /// The remaining time; zero when it has passed.
        retry_in: Duration,
    },
    /// Attempts are refused: the one that was admitted has not ended.
    HalfOpen,
}

/// A change of a breaker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerChange {
    /// The state before.
    pub from: &'static str,
    /// The state now.
    pub to: &'static str,
}

/// An attempt that is refused because too many before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not tried, because it failed several times in a row; {}",
    match retry_in {
        Some(time) => format!("it is tried again in {time:.1?}"),
        None => "one attempt is under way".to_owned(),
    }
)]
pub struct BreakerOpenError {
    /// When the next attempt is admitted; `None` while one is under way.
    pub retry_in: Option<Duration>,
}

impl BreakerOpenError {
    /// As an error of the source that was not asked.
    #[doc(hidden)]
    pub fn into_discovery_error(self) -> DiscoveryError {
        let error = DiscoveryError::new(DiscoveryErrorClass::BreakerOpen, self.to_string());
        match self.retry_in {
            Some(time) => error.with_retry_after(time),
            None => error,
        }
    }

    /// As an error of the model that was not asked.
    pub fn into_model_error(self) -> ModelError {
        let mut error = ModelError::new(ModelErrorClass::BreakerOpen, self.to_string());
        error.retry_after = self.retry_in;
        error
    }
}

impl Breaker {
    /// Creates a breaker that is closed.
    pub fn new(config: BreakerConfig) -> Self {
        let now = VersionedState { state: State::Closed { failures: 0 }, changes: 0 };
        Self(Arc::new(Inner { config, now: Mutex::new(now) }))
    }

    /// Admits an attempt, or refuses it. Report the outcome to the permit. Dropping a permit
    /// reports nothing; if it was the one of a half-open breaker, the next attempt is admitted
    /// instead.
    ///
    /// # Errors
    /// [`BreakerOpenError`] with the time after which to try again.
    pub fn admit(&self) -> Result<Permit, BreakerOpenError> {
        self.admit_noting().map(|(permit, _)| permit)
    }

    /// Like [`admit`](Self::admit); also returns whether the breaker became half-open.
    #[doc(hidden)]
    pub fn admit_noting(&self) -> Result<(Permit, Option<BreakerChange>), BreakerOpenError> {
        let mut now = self.0.lock();
        let change = match now.state {
            State::Closed { .. } => None,
            State::Open { until } => match left(until) {
                Duration::ZERO => Some(now.change(State::HalfOpen)),
                left => return Err(BreakerOpenError { retry_in: Some(left) }),
            },
            State::HalfOpen => return Err(BreakerOpenError { retry_in: None }),
        };
        Ok((Permit { breaker: Arc::clone(&self.0), changes: now.changes }, change))
    }

    /// How long attempts are refused: `None` while it is closed, zero once an attempt is admitted
    /// or under way.
    pub fn retry_in(&self) -> Option<Duration> {
        match self.state() {
            BreakerState::Closed => None,
            BreakerState::Open { retry_in } => Some(retry_in),
            BreakerState::HalfOpen => Some(Duration::ZERO),
        }
    }

    /// How it treats the next attempt.
    pub fn state(&self) -> BreakerState {
        match self.0.lock().state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { until } => BreakerState::Open { retry_in: left(until) },
            State::HalfOpen => BreakerState::HalfOpen,
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new(BreakerConfig::default())
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, VersionedState> {
        // No code under this lock can panic half-way.
        self.now.lock()
    }

    fn open(&self) -> State {
        let now = Instant::now();
        // If the sum overflows, use 30 years.
        State::Open { until: now.checked_add(self.config.open_for).unwrap_or(now + AGES) }
    }
}

impl VersionedState {
    fn change(&mut self, state: State) -> BreakerChange {
        let (from, to) = (self.state.as_str(), state.as_str());
        self.state = state;
        self.changes += 1;
        BreakerChange { from, to }
    }
}

impl State {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// An attempt that a [`Breaker`] admitted. Report its outcome.
#[derive(Debug)]
#[must_use = "a dropped permit does not report how the attempt ended"]
pub struct Permit {
    breaker: Arc<Inner>,
    changes: u64,
}

impl Permit {
    /// The attempt succeeded: resets the failure count, and closes a half-open breaker.
    pub fn succeeded(self) {
        self.settle(true);
    }

    /// The attempt failed: adds one to the failure count. A half-open breaker opens again.
    pub fn failed(self) {
        self.settle(false);
    }

    /// Reports no outcome; returns the state change.
    #[doc(hidden)]
    pub fn abandon(self) -> Option<BreakerChange> {
        self.give_back()
        // Dropped now; changes nothing any more.
    }

    fn give_back(&self) -> Option<BreakerChange> {
        self.report(|_, now| {
            // Only a permit of this state is here; a half-open breaker has only this one.
            matches!(now.state, State::HalfOpen)
                .then(|| now.change(State::Open { until: Instant::now() }))
        })
    }

    /// Reports the outcome; returns the state change.
    #[doc(hidden)]
    pub fn settle(self, succeeded: bool) -> Option<BreakerChange> {
        self.report(|breaker, now| match (&mut now.state, succeeded) {
            (State::Closed { failures }, true) => {
                *failures = 0;
                None
            }
            (State::Open { .. } | State::HalfOpen, true) => {
                Some(now.change(State::Closed { failures: 0 }))
            }
            (State::Closed { failures }, false) => {
                *failures = failures.saturating_add(1);
                if *failures < breaker.config.failures {
                    None
                } else {
                    Some(now.change(breaker.open()))
                }
            }
            (State::Open { .. } | State::HalfOpen, false) => Some(now.change(breaker.open())),
        })
    }

    /// Reports about the state that this permit belongs to; a later state is not affected.
    fn report(
        &self,
        report: impl FnOnce(&Inner, &mut VersionedState) -> Option<BreakerChange>,
    ) -> Option<BreakerChange> {
        let mut now = self.breaker.lock();
        if now.changes == self.changes { report(&self.breaker, &mut now) } else { None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back();
    }
}
