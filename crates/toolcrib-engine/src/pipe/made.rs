//! The calls made in a turn.

use parking_lot::{Mutex, MutexGuard};

use toolcrib_core::Digest;

/// The content ids of all calls of a turn that have a result, with any outcome.
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
        self.0.lock()
    }
}
