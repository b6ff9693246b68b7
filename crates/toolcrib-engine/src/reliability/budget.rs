//! A limit on retries, so that they cannot multiply an outage.

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The maximum number of retries of an engine, per stage and over all its turns: the number of
/// first attempts times `share`, and a few more. A retry beyond it does not happen; evaluation
/// continues with the next rules.
///
/// Each first attempt adds `share` of a retry to a bucket with capacity `burst`, and each second
/// adds `per_second`; each retry removes one. Only retries with the same provider count: the number
/// of other providers limits the attempts with those.
///
/// The share is that of tower's and Finagle's retry budgets, 20 %. Both add ten a second, which
/// suits a service; an agent makes few calls, so one a second does here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    /// Retries per first attempt. Default: 0.2.
    pub share: f64,
    /// Retries per second, independent of first attempts. Default: 1.
    pub per_second: f64,
    /// Capacity of the bucket; it is full at first. Default: 10.
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
    /// Time of the last access; `None` before the first, so that it can be created without a clock.
    at: Option<Instant>,
}

impl Bucket {
    pub(super) fn new(budget: RetryBudget) -> Self {
        let now = Level { retries: f64::from(budget.burst), at: None };
        Self { budget, now: Mutex::new(now) }
    }

    /// Counts a first attempt.
    pub(super) fn deposit(&self) {
        self.lock().add(positive(self.budget.share), self.budget.burst);
    }

    /// Whether a retry may be made; counts it as made.
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
        // No code under this lock can panic half-way.
        self.now.lock()
    }
}

impl Level {
    fn add(&mut self, retries: f64, burst: u32) {
        self.retries = (self.retries + retries).min(f64::from(burst));
    }
}

/// NaN and negative numbers count as zero.
fn positive(number: f64) -> f64 {
    if number.is_finite() { number.max(0.0) } else { 0.0 }
}
