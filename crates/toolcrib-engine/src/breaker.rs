//! What stops trying something that keeps failing.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Thirty years.
const AGES: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// When a [`Breaker`] opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// So many failures in a row open it; 0 counts as 1. Default: 5.
    pub failures: u32,
    /// How long it stays open before one attempt is let through. Default: 30 s.
    pub open_for: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self { failures: 5, open_for: Duration::from_secs(30) }
    }
}

/// Counts failures in a row of something that may be down, and refuses attempts at once while it
/// very likely still is. Cloning shares it; it outlives a call, a turn and a connection.
///
/// It is closed at first, and admits every attempt. After so many failures in a row it is open, and
/// admits none for a time. Then it is half-open: it admits exactly one attempt, whose outcome closes
/// or opens it. It starts no task and holds no timer. What an attempt may take is up to whoever
/// makes it: one that never ends keeps a half-open breaker half-open.
///
/// ```
/// # use toolcrib_engine::{Breaker, BreakerConfig};
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
    now: Mutex<Now>,
}

/// The state, and how often it has changed: what a permit of an earlier state reports comes too late
/// to say anything about this one.
#[derive(Debug)]
struct Now {
    state: State,
    changes: u64,
}

#[derive(Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    HalfOpen,
}

/// What a [`Breaker`] does with the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// It is admitted, like every other.
    Closed,
    /// It is refused, until this much time has passed; then it is the one that is let through.
    Open {
        /// How long that is; zero when it has passed.
        retry_in: Duration,
    },
    /// It is refused: the one that was let through has not ended.
    HalfOpen,
}

/// That a breaker is in another state than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BreakerChange {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// An attempt that is refused because so many before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not tried, because it failed several times in a row; {}",
    match retry_in {
        Some(time) => format!("it is tried again in {time:.1?}"),
        None => "one attempt is under way".to_owned(),
    }
)]
pub struct BreakerOpen {
    /// When one is let through; `None` while that one is under way.
    pub retry_in: Option<Duration>,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(config: BreakerConfig) -> Self {
        let now = Now { state: State::Closed { failures: 0 }, changes: 0 };
        Self(Arc::new(Inner { config, now: Mutex::new(now) }))
    }

    /// Lets an attempt through, or refuses it. How it ended is told to the permit; a permit that is
    /// dropped without a word says nothing, and if it was the one of a half-open breaker, the next
    /// attempt is.
    ///
    /// # Errors
    /// [`BreakerOpen`] with the time after which to try again.
    pub fn admit(&self) -> Result<Permit, BreakerOpen> {
        self.admit_noting().map(|(permit, _)| permit)
    }

    /// The same, and whether the breaker is half-open from now on.
    pub(crate) fn admit_noting(&self) -> Result<(Permit, Option<BreakerChange>), BreakerOpen> {
        let mut now = self.0.lock();
        let change = match now.state {
            State::Closed { .. } => None,
            State::Open { until } => match left(until) {
                Duration::ZERO => Some(now.change(State::HalfOpen)),
                left => return Err(BreakerOpen { retry_in: Some(left) }),
            },
            State::HalfOpen => return Err(BreakerOpen { retry_in: None }),
        };
        Ok((Permit { breaker: Arc::clone(&self.0), changes: now.changes }, change))
    }

    /// How long it refuses attempts: `None` while it is closed, zero once one is let through or under
    /// way.
    pub fn retry_in(&self) -> Option<Duration> {
        match self.state() {
            BreakerState::Closed => None,
            BreakerState::Open { retry_in } => Some(retry_in),
            BreakerState::HalfOpen => Some(Duration::ZERO),
        }
    }

    /// What it does with the next attempt.
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
    fn lock(&self) -> MutexGuard<'_, Now> {
        // Nothing under this lock can panic half-way.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> State {
        let now = Instant::now();
        // A time that cannot be told is one that nobody lives to see.
        State::Open { until: now.checked_add(self.config.open_for).unwrap_or(now + AGES) }
    }
}

impl Now {
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

/// An attempt that a [`Breaker`] let through. Say how it ended.
#[derive(Debug)]
#[must_use = "a permit that is dropped says nothing about how the attempt ended"]
pub struct Permit {
    breaker: Arc<Inner>,
    changes: u64,
}

impl Permit {
    /// The attempt succeeded: failures are counted anew, and a half-open breaker closes.
    pub fn succeeded(self) {
        self.settle(true);
    }

    /// The attempt failed: one more in a row. A half-open breaker opens again.
    pub fn failed(self) {
        self.settle(false);
    }

    /// Says nothing of how it ended, and is told what that changed.
    pub(crate) fn abandon(self) -> Option<BreakerChange> {
        self.give_back()
        // Dropped now, and changes nothing any more.
    }

    fn give_back(&self) -> Option<BreakerChange> {
        self.report(|_, now| {
            // Only a permit of this state is here, and of a half-open one there is only this.
            matches!(now.state, State::HalfOpen)
                .then(|| now.change(State::Open { until: Instant::now() }))
        })
    }

    /// Says how it ended, and is told what that changed.
    pub(crate) fn settle(self, succeeded: bool) -> Option<BreakerChange> {
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

    /// Says something of the state that this permit is of; of a later one it knows nothing.
    fn report(
        &self,
        report: impl FnOnce(&Inner, &mut Now) -> Option<BreakerChange>,
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
