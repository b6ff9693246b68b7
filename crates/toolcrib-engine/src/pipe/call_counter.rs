//! The calls made in a turn.

use std::collections::HashMap;

use parking_lot::Mutex;
use toolcrib_core::Digest;

/// The calls of a turn that have a result, with any outcome. The turn of a gateway's session may have
/// millions.
#[derive(Default)]
pub(crate) struct CallCounter(Mutex<CallCounts>);

#[derive(Default)]
struct CallCounts {
    count: usize,
    /// By content id.
    of: HashMap<Digest, u32>,
}

impl CallCounter {
    pub(super) fn note(&self, call: Digest) {
        let mut made = self.0.lock();
        made.count += 1;
        *made.of.entry(call).or_default() += 1;
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().count
    }

    pub(crate) fn count_of(&self, call: Digest) -> usize {
        self.0.lock().of.get(&call).map_or(0, |count| *count as usize)
    }
}
