//! What has been called in a turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_core::Digest;

/// The content ids of all calls of a turn that have a result, whatever came of them.
#[derive(Default)]
pub(crate) struct CallsMade(Mutex<Vec<Digest>>);

impl CallsMade {
    pub(super) fn note(&self, call: Digest) {
        self.lock().push(call);
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn count_of(&self, call: Digest) -> usize {
        self.lock().iter().filter(|made| **made == call).count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
