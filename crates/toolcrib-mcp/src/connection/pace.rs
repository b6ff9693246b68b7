use std::time::Duration;

use tokio::time::Instant;

/// How many messages that nobody asked for are taken as they come.
const BURST: f64 = 256.0;
/// How many are taken per second beyond that. A pipe holds about a thousand short ones, and an answer
/// stands behind them: at this pace for a quarter of a second, for a few per cent of one core.
const PER_SECOND: f64 = 5_000.0;

/// The pace at which messages that nobody asked for are taken. Those beyond it are not thrown
/// away: nothing is read until there is room for them, so that it is the sender who waits.
pub(super) struct Pace {
    room: f64,
    since: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { room: BURST, since: Instant::now() }
    }

    /// Takes one. Says how long nothing is to be read then, if not at once.
    pub(super) fn take(&mut self) -> Option<Duration> {
        self.take_many(1)
    }

    /// Takes so many at once.
    pub(super) fn take_many(&mut self, count: usize) -> Option<Duration> {
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
        assert!((0..256).all(|_| pace.take().is_none()));
        let began = Instant::now();
        for _ in 0..10_000 {
            if let Some(wait) = pace.take() {
                tokio::time::sleep(wait).await;
            }
        }
        let took = began.elapsed().as_secs_f64();
        assert!((1.9..4.1).contains(&took), "{took}");
    }
}
