//! When something that failed may be tried again.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

/// The longest that the first failure is waited for; each further one doubles it.
const BASE: Duration = Duration::from_millis(200);
/// The longest wait.
const CAP: Duration = Duration::from_secs(30);
/// Thirty years.
const AGES: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Failures in a row, and the wait that they ask for: a random part of a time that doubles with
/// each, so that those who lost one server together do not come back together.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    trouble: Option<Trouble>,
}

/// What went wrong the last time, as long as nothing went right since.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) problem: Arc<str>,
    pub(super) until: Instant,
}

impl Backoff {
    pub(super) fn failed(&mut self, problem: Arc<str>) {
        let longest = longest(self.failures);
        self.failures = self.failures.saturating_add(1);
        let until = Instant::now() + longest.mul_f64(random_share());
        self.trouble = Some(Trouble { problem, until });
    }

    /// It works, as far as one can see; what failed before still counts.
    pub(super) fn works(&mut self) {
        self.trouble = None;
    }

    /// It has worked for long enough: the next failure is a first one.
    pub(super) fn healthy(&mut self) {
        *self = Self::default();
    }

    /// Waits at least as long as this, from now on.
    pub(super) fn wait(&mut self, least: Duration) {
        if let Some(trouble) = &mut self.trouble {
            let now = Instant::now();
            // A time that cannot be told is one that nobody lives to see.
            let until = now.checked_add(least).unwrap_or(now + AGES);
            trouble.until = trouble.until.max(until);
        }
    }

    pub(super) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether it must not be tried yet.
    pub(super) fn blocks(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.until > Instant::now())
    }
}

fn longest(failures_before: u32) -> Duration {
    BASE.checked_mul(2_u32.saturating_pow(failures_before)).map_or(CAP, |time| time.min(CAP))
}

/// From 0 to 1. Chance is all that is asked of it, so the keys of the standard library's hasher do.
fn random_share() -> f64 {
    f64::from(RandomState::new().hash_one(()) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_wait_doubles_up_to_a_cap_and_is_a_random_part_of_that() {
        let allowed: Vec<_> = (0..10).map(longest).collect();
        assert_eq!(allowed[..3], [200, 400, 800].map(Duration::from_millis));
        assert_eq!(allowed[8..], [CAP; 2]);
        assert_eq!(longest(u32::MAX), CAP);

        let mut waits = Vec::new();
        for _ in 0..20 {
            let mut backoff = Backoff { failures: 7, trouble: None };
            backoff.failed("broken".into());
            waits.push(backoff.trouble().unwrap().until - Instant::now());
        }
        assert!(waits.iter().all(|wait| *wait <= longest(7)), "{waits:?}");
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 1, "all waits are {waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn working_again_ends_the_wait_and_only_health_forgets() {
        let mut backoff = Backoff::default();
        backoff.failed("broken".into());
        backoff.wait(CAP);
        assert!(backoff.blocks());
        backoff.works();
        assert!(!backoff.blocks());
        backoff.failed("broken".into());
        assert_eq!(backoff.failures(), 2);
        backoff.healthy();
        assert_eq!(backoff.failures(), 0);
    }
}
