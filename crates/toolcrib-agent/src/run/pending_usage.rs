//! Usage on its way to the store.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{StoreId, UsageEntry, UsageStore};

/// The usage that the store lacks. Where the run's session adds to the same store, its next write has
/// it, and no other write is needed.
#[derive(Clone, Default)]
pub(super) struct PendingUsage {
    entries: Arc<Mutex<Vec<UsageEntry>>>,
    store: Option<StoreId>,
}

impl PendingUsage {
    pub(super) fn of(store: Option<&Arc<dyn UsageStore>>) -> Self {
        Self { entries: Arc::default(), store: store.and_then(|store| store.store_id()) }
    }

    /// The entries, if a session adds to this store of usage.
    pub(super) fn added_by(&self, session: Option<StoreId>) -> Option<Arc<Mutex<Vec<UsageEntry>>>> {
        let is_same = self.store.is_some() && self.store == session;
        is_same.then(|| Arc::clone(&self.entries))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<UsageEntry>> {
        self.entries.lock()
    }
}
