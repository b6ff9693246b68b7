//! The files that conversations have read.

use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::{__internal::Bounded, FileReads, Identity, Tool};

/// The limit of remembered conversations; the least recently used one is evicted. Its next write
/// over an existing file is refused until the file is read again.
const MOST_CONVERSATIONS: usize = 1_024;

/// The files that calls have read, by the conversation that they were made for.
#[derive(Debug)]
pub(crate) struct SessionReads(Mutex<Bounded<Arc<Identity>, Arc<FileReads>>>);

impl Default for SessionReads {
    fn default() -> Self {
        Self(Mutex::new(Bounded::new(MOST_CONVERSATIONS)))
    }
}

impl SessionReads {
    /// The files that the conversation of a call has read; `None` for a tool without files.
    pub(crate) fn of_call(&self, tool: &Tool, identity: &Arc<Identity>) -> Option<Arc<FileReads>> {
        tool.capabilities().all_files().next()?;
        let mut known = self.0.lock();
        if let Some(reads) = known.get(identity) {
            return Some(Arc::clone(reads));
        }
        let reads = Arc::<FileReads>::default();
        let evicted = known.insert(Arc::clone(identity), Arc::clone(&reads));
        drop(known);
        // Without the lock, as it may contain hundreds of paths.
        drop(evicted);
        Some(reads)
    }

    /// Removes a conversation that has ended.
    pub(crate) fn forget(&self, identity: &Identity) {
        let gone = self.0.lock().remove(identity);
        drop(gone);
    }
}
