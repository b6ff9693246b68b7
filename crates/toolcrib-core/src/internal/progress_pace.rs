//! The rate of progress messages.

use std::time::Duration;

use tokio::time::Instant;

/// The number of messages without a delay: a call that reports a few steps is shown them all.
const BURST: u32 = 4;

/// The time between two messages after a burst. With it there are at most nine messages in any
/// second, and with the last one of a call, which is never delayed, ten.
const INTERVAL: Duration = Duration::from_millis(200);

/// A rate limit for the progress messages of one call.
#[derive(Debug, Default)]
pub struct ProgressPace {
    next: Option<Instant>,
}

impl ProgressPace {
    /// Counts a message; returns the earliest time of the next one.
    pub fn count(&mut self) -> Instant {
        let now = Instant::now();
        let full_burst = now.checked_sub(INTERVAL * (BURST - 1)).unwrap_or(now);
        let next = self.next.unwrap_or(full_burst).max(full_burst) + INTERVAL;
        self.next = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_at_once_and_a_second_has_at_most_nine() {
        let mut pace = ProgressPace::default();
        let (began, mut times) = (Instant::now(), Vec::new());
        for _ in 0..40 {
            times.push(began.elapsed());
            tokio::time::sleep_until(pace.count()).await;
        }
        assert_eq!(times[3], Duration::ZERO);
        assert!(times[4] > Duration::ZERO);
        for (at, time) in times.iter().enumerate().skip(9) {
            assert!(*time - times[at - 9] >= Duration::from_secs(1), "{times:?}");
        }
    }
}
