//! Retry with backoff and jitter.

use std::time::Duration;

use super::backoff::Backoff;

/// How often something is tried, and how long is waited before it is tried again.
///
/// The wait is a random part of a time that doubles with each attempt and never exceeds
/// [`cap`](Self::cap) ("full jitter"), so that clients that lost a server together do not return
/// together. A longer requested delay, such as `Retry-After`, is honored up to the cap; beyond it,
/// no retry is made.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_core::Retry;
///
/// let retry = Retry { base: Duration::from_secs(1), cap: Duration::from_secs(5), ..Retry::default() };
/// assert_eq!(retry.wait(1, 1.0, None), Some(Duration::from_secs(1)));
/// assert_eq!(retry.wait(2, 0.5, None), Some(Duration::from_secs(1)));
/// assert_eq!(retry.wait(9, 1.0, None), Some(Duration::from_secs(5)));
/// assert_eq!(retry.wait(1, 0.0, Some(Duration::from_secs(3))), Some(Duration::from_secs(3)));
/// assert_eq!(retry.wait(1, 0.0, Some(Duration::from_secs(6))), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Maximum attempts for each source, model or call, the first included. Default: 3.
    pub attempts: u32,
    /// The maximum wait after the first attempt; it doubles with each further one. Default: 200 ms.
    pub base: Duration,
    /// The maximum wait. Default: 20 s.
    pub cap: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, base: Duration::from_millis(200), cap: Duration::from_secs(20) }
    }
}

impl Retry {
    /// A number of attempts in total, with the default waits.
    pub fn attempts(attempts: u32) -> Self {
        Self { attempts, ..Self::default() }
    }

    /// The wait after an attempt, counted from 1: `share`, a random number from 0 to 1, of the
    /// maximum wait, and at least the requested delay. `None` if the requested delay exceeds the
    /// cap.
    pub fn wait(&self, attempt: u32, share: f64, asked: Option<Duration>) -> Option<Duration> {
        let asked = asked.unwrap_or_default();
        if asked > self.cap {
            return None;
        }
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 };
        let backoff = Backoff { base: self.base, cap: self.cap };
        let longest = backoff.longest(attempt.max(1));
        // A float has no more than 53 digits: of a long time, the whole may come out a trifle longer.
        Some(longest.mul_f64(share).min(longest).max(asked))
    }
}
