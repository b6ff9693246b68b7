//! What a round of calls finds, and what many rounds say together.

use std::time::{Duration, Instant};

use toolcrib_benches::{median, micros, quantile};

/// How long a round runs before anything counts.
const WARMING: Duration = Duration::from_millis(200);

/// How long what counts takes.
const WINDOW: Duration = Duration::from_millis(700);

/// The time of one round. A call counts if it is answered while the window is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    opens: Instant,
    closes: Instant,
}

impl Window {
    /// One that begins with the warming, now.
    pub(crate) fn now() -> Self {
        let opens = Instant::now() + WARMING;
        Self { opens, closes: opens + WINDOW }
    }

    /// Whether calls are still to be made.
    pub(crate) fn is_open(&self) -> bool {
        Instant::now() < self.closes
    }

    /// Notes a call that was sent then and has been answered now.
    pub(crate) fn note(&self, sent: Instant, times: &mut Vec<f64>) {
        let now = Instant::now();
        if (self.opens..self.closes).contains(&now) {
            times.push(micros(now - sent));
        }
    }
}

/// What one round found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Round {
    /// The median time of a call, in microseconds.
    pub(crate) p50: f64,
    /// What 99 of 100 calls lie below, in microseconds.
    pub(crate) p99: f64,
    /// Calls per second.
    pub(crate) rate: f64,
}

impl Round {
    /// From the times of all calls that counted.
    pub(crate) fn of(times: &[f64]) -> Self {
        let each = || times.iter().copied();
        Self {
            p50: median(each()),
            p99: quantile(each(), 0.99),
            rate: times.len() as f64 / WINDOW.as_secs_f64(),
        }
    }
}

/// The rounds of one way and one number of calls at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds(pub(crate) Vec<Round>);

impl Rounds {
    /// The median over the rounds of one of a round's figures.
    pub(crate) fn middle(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.0.iter().map(of))
    }

    /// The median over the rounds of what both ways found in the same one, put together. What
    /// disturbs the machine for a while disturbs both, and so the figure less.
    pub(crate) fn with(&self, other: &Self, both: impl Fn(&Round, &Round) -> f64) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(ours, other)| both(ours, other)))
    }
}
