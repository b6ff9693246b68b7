//! How often the same one is asked again, and when.

use std::time::Duration;

/// How often something is tried, and how long is waited before it is tried again.
///
/// The wait is a random part of a time that doubles with each attempt and never exceeds
/// [`cap`](Self::cap) ("full jitter"), so that those who lost one server together do not come back
/// together. One who asks to be left alone for longer is left alone for so long, if that is within
/// the cap; otherwise nothing is tried.
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
    /// How often each source, model or call is tried in all, the first time included. Default: 3.
    pub attempts: u32,
    /// The longest wait after the first attempt; it doubles with each further one. Default: 200 ms.
    pub base: Duration,
    /// The longest wait of all. Default: 20 s.
    pub cap: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, base: Duration::from_millis(200), cap: Duration::from_secs(20) }
    }
}

impl Retry {
    /// So many attempts in all, with the waits of the default.
    pub fn attempts(attempts: u32) -> Self {
        Self { attempts, ..Self::default() }
    }

    /// How long is waited after an attempt, counted from 1: `share`, a chance from 0 to 1, of the
    /// longest wait, and at least what is asked for. `None` when more is asked for than the cap
    /// allows.
    pub fn wait(&self, attempt: u32, share: f64, asked: Option<Duration>) -> Option<Duration> {
        let asked = asked.unwrap_or_default();
        if asked > self.cap {
            return None;
        }
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 };
        let longest = self.longest_after(attempt);
        // A float has no more than 53 digits: of a long time, the whole may come out a trifle longer.
        Some(longest.mul_f64(share).min(longest).max(asked))
    }

    fn longest_after(&self, attempt: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        self.base.checked_mul(doubled).map_or(self.cap, |time| time.min(self.cap))
    }
}
