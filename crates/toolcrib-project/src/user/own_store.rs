//! The store of sessions, opened when a tool first needs it.

use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::{
    FoundMessage, KvArea, KvError, KvStore, KvWrite, SessionOwner, SessionSearch,
    SessionStoreError, Store,
};
use toolcrib_store::SqliteStore;

use super::sessions::Sessions;

/// The store of a project for its tools. In memory if the project stores no sessions.
#[derive(Debug, Clone)]
pub(crate) struct OwnStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sessions: Sessions,
    opened: Mutex<Option<Arc<dyn Store>>>,
}

impl OwnStore {
    pub(crate) fn new(sessions: &Sessions) -> Self {
        Self(Arc::new(Shared { sessions: sessions.clone(), opened: Mutex::default() }))
    }

    fn store(&self) -> Result<Arc<dyn Store>, SessionStoreError> {
        let mut opened = self.0.opened.lock();
        if let Some(store) = &*opened {
            return Ok(Arc::clone(store));
        }
        let store = match self.0.sessions.are_stored() {
            true => self.0.sessions.open()?,
            false => Arc::new(SqliteStore::in_memory()?),
        };
        *opened = Some(Arc::clone(&store));
        Ok(store)
    }

    pub(crate) fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        self.store()?.search(owner, search)
    }
}

impl KvStore for OwnStore {
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError> {
        // Not locked during the query: others would wait for a database that does not answer.
        let opened = self.0.opened.lock().clone();
        // Reading creates no store: the folder may be read-only.
        if let Some(store) = opened {
            return store.value(area, key);
        }
        if self.0.sessions.are_stored() && self.0.sessions.open_existing()?.is_none() {
            return Ok(None);
        }
        self.store()?.value(area, key)
    }

    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError> {
        self.store()?.keys(area, prefix)
    }

    fn put(&self, area: &KvArea, write: KvWrite<'_>) -> Result<(), KvError> {
        self.store()?.put(area, write)
    }
}
