//! Whether the lines of a gateway's logs are written.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The state of a log that the writer of its lines maintains, for `/metrics` and, if it is
/// [required](crate::gateway::GatewayBuilder::require), for calls and `/readyz`. Clones share it.
#[derive(Clone)]
pub struct LogHealth(Arc<Shared>);

struct Shared {
    name: &'static str,
    lost: AtomicU64,
    is_failing: AtomicBool,
}

impl LogHealth {
    /// A log that can be written, with its name in metrics, such as `audit`.
    pub fn new(name: &'static str) -> Self {
        let (lost, is_failing) = (AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Shared { name, lost, is_failing }))
    }

    /// The name in metrics.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Counts a line that could not be written.
    pub fn lost(&self) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
        self.0.is_failing.store(true, Ordering::Release);
    }

    /// The log is written again.
    pub fn recovered(&self) {
        self.0.is_failing.store(false, Ordering::Release);
    }

    /// The number of lines that could not be written.
    pub fn lost_lines(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Whether the last line could not be written.
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Acquire)
    }
}

toolcrib_core::__internal::debug_fields!(
    LogHealth,
    health,
    name = health.0.name,
    lost = health.lost_lines(),
    is_failing = health.is_failing()
);

/// A log without which nothing is called.
#[derive(Clone)]
pub(crate) struct RequiredLog {
    pub(crate) health: LogHealth,
    /// Tries to write it again.
    pub(crate) retry: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl RequiredLog {
    /// Whether it can be written. One that failed is tried again.
    pub(crate) fn is_written(&self) -> bool {
        !self.health.is_failing() || (self.retry)()
    }
}
