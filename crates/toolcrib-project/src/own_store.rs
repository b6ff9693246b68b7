//! The store of sessions, opened when a tool first needs it.

use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::{
    FoundMessage, KvArea, KvError, KvStore, KvWrite, SessionOwner, SessionSearch,
    SessionStore as _, SessionStoreError,
};
use toolcrib_store::{MemoryStore, SqliteStore};

use crate::sessions::Sessions;

/// The store of a project for its tools. In memory if the project stores no sessions.
#[derive(Debug, Clone)]
pub(crate) struct OwnStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sessions: Sessions,
    file: Mutex<Option<SqliteStore>>,
    memory: MemoryStore,
}

impl OwnStore {
    pub(crate) fn new(sessions: &Sessions) -> Self {
        let (file, memory) = (Mutex::default(), MemoryStore::new());
        Self(Arc::new(Shared { sessions: sessions.clone(), file, memory }))
    }

    /// The file; `None` if the project stores no sessions.
    fn file(&self) -> Result<Option<SqliteStore>, SessionStoreError> {
        if !self.0.sessions.are_stored() {
            return Ok(None);
        }
        let mut file = self.0.file.lock();
        if file.is_none() {
            *file = Some(self.0.sessions.open()?);
        }
        Ok(file.clone())
    }

    pub(crate) fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        match self.file()? {
            Some(file) => file.search(owner, search),
            None => self.0.memory.search(owner, search),
        }
    }
}

impl KvStore for OwnStore {
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError> {
        match self.file()? {
            Some(file) => file.value(area, key),
            None => self.0.memory.value(area, key),
        }
    }

    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError> {
        match self.file()? {
            Some(file) => file.keys(area, prefix),
            None => self.0.memory.keys(area, prefix),
        }
    }

    fn put(&self, area: &KvArea, write: KvWrite<'_>) -> Result<(), KvError> {
        match self.file()? {
            Some(file) => file.put(area, write),
            None => self.0.memory.put(area, write),
        }
    }
}
