use std::time::Duration;

use crate::internal::chance::random_share;

/// An exponential backoff: a wait that doubles with each failure in a row, up to a cap.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// The longest wait after the first failure.
    pub base: Duration,
    /// The longest wait of all.
    pub cap: Duration,
}

impl Backoff {
    /// The longest wait after this number of failures in a row; zero after none.
    pub fn longest(self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        let doubled = self.base.checked_mul(2_u32.saturating_pow(doublings));
        doubled.map_or(self.cap, |wait| wait.min(self.cap))
    }

    /// A random part of the longest wait ("full jitter"), so that clients that lost one server
    /// together do not come back together.
    pub fn jittered(self, failures: u32) -> Duration {
        self.longest(failures).mul_f64(random_share())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_cap_and_is_a_random_part_of_that() {
        let cap = Duration::from_secs(30);
        let backoff = Backoff { base: Duration::from_millis(200), cap };
        let longest: Vec<_> = (0..10).map(|failures| backoff.longest(failures)).collect();
        assert_eq!(longest[..4], [0, 200, 400, 800].map(Duration::from_millis));
        assert_eq!(longest[9], cap);
        assert_eq!(backoff.longest(u32::MAX), cap);

        let mut waits: Vec<_> = (0..20).map(|_| backoff.jittered(8)).collect();
        assert!(waits.iter().all(|wait| *wait <= backoff.longest(8)), "{waits:?}");
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 1, "all waits are {waits:?}");
    }
}
