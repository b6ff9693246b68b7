//! How many retries there may be, so that they cannot multiply an outage.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// How many retries an engine makes at most, per stage and over all its turns: so many as it made
/// first attempts, times `share`, and a few more. A retry that is over does not happen; the rules are
/// walked on.
///
/// Each first attempt adds `share` of a retry to a bucket that holds `burst`, and each second adds
/// `per_second`; each retry takes one out. Only asking the same one again counts: that there is
/// somebody else to ask is bounded by how many there are.
///
/// The share is that of tower's and Finagle's retry budgets, 20 %. Both add ten a second, which suits
/// a service; an agent makes few calls, so one a second does here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    /// Retries per first attempt. Default: 0.2.
    pub share: f64,
    /// Retries per second, whatever else is done. Default: 1.
    pub per_second: f64,
    /// How many retries may be made at once; the bucket is full at first. Default: 10.
    pub burst: u32,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { share: 0.2, per_second: 1.0, burst: 10 }
    }
}

/// The bucket of a [`RetryBudget`].
pub(super) struct Bucket {
    budget: RetryBudget,
    now: Mutex<Level>,
}

struct Level {
    retries: f64,
    /// When it was looked at last; never before the first time, so that it can be made anywhere.
    at: Option<Instant>,
}

impl Bucket {
    pub(super) fn new(budget: RetryBudget) -> Self {
        let now = Level { retries: f64::from(budget.burst), at: None };
        Self { budget, now: Mutex::new(now) }
    }

    /// A first attempt is made.
    pub(super) fn deposit(&self) {
        self.lock().add(positive(self.budget.share), self.budget.burst);
    }

    /// Whether a retry may be made; it counts as made.
    pub(super) fn withdraw(&self) -> bool {
        let mut level = self.lock();
        let now = Instant::now();
        let passed = level.at.replace(now).map_or(0.0, |at| (now - at).as_secs_f64());
        level.add(positive(self.budget.per_second) * passed, self.budget.burst);
        if level.retries < 1.0 {
            return false;
        }
        level.retries -= 1.0;
        true
    }

    fn lock(&self) -> MutexGuard<'_, Level> {
        // Nothing under this lock can panic half-way.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Level {
    fn add(&mut self, retries: f64, burst: u32) {
        self.retries = (self.retries + retries).min(f64::from(burst));
    }
}

/// What is no number, or less than nothing, adds nothing.
fn positive(number: f64) -> f64 {
    if number.is_finite() { number.max(0.0) } else { 0.0 }
}
