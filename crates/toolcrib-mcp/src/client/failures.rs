//! When something that failed may be tried again.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolcrib_core::__internal::Backoff;

const BACKOFF: Backoff = Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(30) };
/// Thirty years.
const AGES: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Failures in a row, and the wait after the last one.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u32,
    trouble: Option<Trouble>,
}

/// The last failure, unless a success followed.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) problem: Arc<str>,
    pub(super) until: Instant,
}

impl Failures {
    pub(super) fn failed(&mut self, problem: Arc<str>) {
        self.count = self.count.saturating_add(1);
        let until = Instant::now() + BACKOFF.jittered(self.count);
        self.trouble = Some(Trouble { problem, until });
    }

    /// Notes that the server works; earlier failures still count.
    pub(super) fn works(&mut self) {
        self.trouble = None;
    }

    /// Notes that the server has worked for long enough: the next failure is a first one.
    pub(super) fn healthy(&mut self) {
        *self = Self::default();
    }

    /// Waits at least as long as this, from now on.
    pub(super) fn wait(&mut self, least: Duration) {
        if let Some(trouble) = &mut self.trouble {
            let now = Instant::now();
            // A sum that overflows counts as 30 years.
            let until = now.checked_add(least).unwrap_or(now + AGES);
            trouble.until = trouble.until.max(until);
        }
    }

    pub(super) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether it must not be tried yet.
    pub(super) fn blocks(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn working_again_ends_the_wait_and_only_health_forgets() {
        let mut failures = Failures::default();
        failures.failed("broken".into());
        failures.wait(BACKOFF.cap);
        assert!(failures.blocks());
        failures.works();
        assert!(!failures.blocks());
        failures.failed("broken".into());
        assert_eq!(failures.count(), 2);
        failures.healthy();
        assert_eq!(failures.count(), 0);
    }
}
