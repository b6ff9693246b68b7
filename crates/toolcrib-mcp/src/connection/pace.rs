use std::time::Duration;

use tokio::time::Instant;

/// The number of unrequested messages that are read without a delay.
const BURST: f64 = 256.0;
/// The rate per second beyond that. A pipe buffers about a thousand short messages, and a response
/// may come after them: at this rate after a quarter of a second, for a few per cent of one core.
const PER_SECOND: f64 = 5_000.0;

/// A rate limit for unrequested messages. Excess messages are not dropped: reading pauses until
/// there is room, so that the sender waits.
pub(super) struct Pace {
    room: f64,
    since: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { room: BURST, since: Instant::now() }
    }

    /// Counts that many. Returns how long reading must pause, if at all.
    pub(super) fn take(&mut self, count: usize) -> Option<Duration> {
        let count = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let now = Instant::now();
        let gained = now.duration_since(self.since).as_secs_f64() * PER_SECOND;
        self.since = now;
        self.room = (self.room + gained).min(BURST) - count;
        (self.room < 0.0).then(|| Duration::from_secs_f64(-self.room / PER_SECOND))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_taken_at_once_and_then_five_thousand_per_second() {
        let mut pace = Pace::new();
        assert!((0..256).all(|_| pace.take(1).is_none()));
        let began = Instant::now();
        for _ in 0..10_000 {
            if let Some(wait) = pace.take(1) {
                tokio::time::sleep(wait).await;
            }
        }
        let took = began.elapsed().as_secs_f64();
        assert!((1.9..4.1).contains(&took), "{took}");
    }
}
