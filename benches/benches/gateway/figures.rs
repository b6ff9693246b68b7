//! The figures of a round of calls, and of many rounds together.

use std::time::{Duration, Instant};

use toolcrib_benches::{median, micros, quantile};

/// Warm-up time of a round, which is not measured.
const WARMING: Duration = Duration::from_millis(200);

/// Measured time.
const WINDOW: Duration = Duration::from_millis(700);

/// The measured time of one round. A call counts if it is answered inside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    opens: Instant,
    closes: Instant,
}

impl Window {
    /// A window that begins with the warm-up, now.
    pub(crate) fn now() -> Self {
        let opens = Instant::now() + WARMING;
        Self { opens, closes: opens + WINDOW }
    }

    /// Whether to make further calls.
    pub(crate) fn is_open(&self) -> bool {
        Instant::now() < self.closes
    }

    /// Records a call that was sent at `sent` and is answered now.
    pub(crate) fn note(&self, sent: Instant, times: &mut Vec<f64>) {
        let now = Instant::now();
        if (self.opens..self.closes).contains(&now) {
            times.push(micros(now - sent));
        }
    }
}

/// The figures of one round.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Round {
    /// The median time of a call, in microseconds.
    pub(crate) p50: f64,
    /// The 99th percentile of the time of a call, in microseconds.
    pub(crate) p99: f64,
    /// Calls per second.
    pub(crate) rate: f64,
}

impl Round {
    /// Computed from the times of all counted calls.
    pub(crate) fn of(times: &[f64]) -> Self {
        let each = || times.iter().copied();
        Self {
            p50: median(each()),
            p99: quantile(each(), 0.99),
            rate: times.len() as f64 / WINDOW.as_secs_f64(),
        }
    }
}

/// The rounds of one way with one number of concurrent calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds(pub(crate) Vec<Round>);

impl Rounds {
    /// The median over the rounds of one of their figures.
    pub(crate) fn middle(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.0.iter().map(of))
    }

    /// The median over the rounds of a combination of both ways' figures in the same round. A
    /// temporary disturbance affects both, and so the combination less.
    pub(crate) fn with(&self, other: &Self, both: impl Fn(&Round, &Round) -> f64) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(ours, other)| both(ours, other)))
    }
}
