//! The sessions of a project.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{SessionRetention, SessionStore as _, SessionStoreError, Store};
use toolcrib_store::SqliteStore;

use super::state::StateFolder;
use crate::file::SessionsSection;

/// The name of the file in the state folder.
const FILE: &str = "sessions.db";

/// The default time since its last use after which a session is removed.
const KEEP_FOR: Duration = Duration::from_hours(30 * 24);

/// The default size of all sessions.
const MAX_BYTES: u64 = 1 << 30;

/// The sessions of a project: the file `sessions.db` in its state folder, and how long they stay.
#[derive(Debug, Clone)]
pub struct Sessions {
    state: StateFolder,
    are_off: bool,
    retention: SessionRetention,
}

impl Sessions {
    pub(crate) fn new(section: &SessionsSection, state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
            are_off: section.are_off,
            retention: SessionRetention {
                keep_for: section.keep_for.unwrap_or(KEEP_FOR),
                max_bytes: section.max_bytes.unwrap_or(MAX_BYTES),
            },
        }
    }

    /// Whether the project stores its runs as sessions, unless a run says otherwise.
    pub fn are_stored(&self) -> bool {
        !self.are_off
    }

    /// Opens the store for a run: creates the state folder and the file if they are missing, and
    /// removes sessions that exceed the retention. Blocking.
    ///
    /// # Errors
    /// [`SessionStoreError`], with the file or folder.
    pub fn open(&self) -> Result<Arc<dyn Store>, SessionStoreError> {
        self.state.make().map_err(|source| SessionStoreError::Io {
            store: self.state.path().display().to_string(),
            doing: "created",
            source: source.into(),
        })?;
        let store = SqliteStore::open(self.state.path().join(FILE))?;
        store.prune(&self.retention)?;
        Ok(Arc::new(store))
    }

    /// Opens the store to inspect or delete sessions; `None` if there is none. Blocking.
    ///
    /// # Errors
    /// [`SessionStoreError`], with the file.
    pub fn open_existing(&self) -> Result<Option<Arc<dyn Store>>, SessionStoreError> {
        let store = SqliteStore::open_existing(self.state.path().join(FILE))?;
        Ok(store.map(|store| Arc::new(store) as Arc<dyn Store>))
    }
}
