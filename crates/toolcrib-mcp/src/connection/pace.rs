use std::time::Duration;

use tokio::time::Instant;

/// A rate limit: a burst, and then a number per second.
pub(super) struct Pace {
    burst: f64,
    per_second: f64,
    room: f64,
    since: Instant,
}

impl Pace {
    pub(super) fn new(burst: f64, per_second: f64) -> Self {
        Self { burst, per_second, room: burst, since: Instant::now() }
    }

    /// Counts that many, which are not dropped. Returns how long their sender must wait, if at all.
    pub(super) fn take(&mut self, count: usize) -> Option<Duration> {
        self.refill();
        self.room -= f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        (self.room < 0.0).then(|| Duration::from_secs_f64(-self.room / self.per_second))
    }

    /// Counts one, if there is room for it.
    pub(super) fn admits(&mut self) -> bool {
        self.refill();
        let admits = self.room >= 1.0;
        if admits {
            self.room -= 1.0;
        }
        admits
    }

    fn refill(&mut self) {
        let now = Instant::now();
        let gained = now.duration_since(self.since).as_secs_f64() * self.per_second;
        self.since = now;
        self.room = (self.room + gained).min(self.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_taken_at_once_and_then_five_thousand_per_second() {
        let mut pace = Pace::new(256.0, 5_000.0);
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
