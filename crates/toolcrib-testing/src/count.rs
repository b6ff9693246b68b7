//! The number of things in progress.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    /// Counts one more until the guard is dropped.
    pub(crate) fn begin(&self) -> CountGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        CountGuard(Arc::clone(&self.0))
    }

    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) struct CountGuard(Arc<AtomicUsize>);

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
