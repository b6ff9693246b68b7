//! The sessions of a project.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolcrib_core::{SessionRetention, SessionStore as _, SessionStoreError, Store};
use toolcrib_store::{PostgresStore, ServerFinding, SqliteStore};

use super::{secrets::ProjectSecrets, state::StateFolder};
use crate::file::{SessionsSection, StorePlace};

/// The name of the file in the state folder.
const FILE: &str = "sessions.db";

/// The default time since its last use after which a session is removed.
const KEEP_FOR: Duration = Duration::from_hours(30 * 24);

/// The default size of all sessions.
const MAX_BYTES: u64 = 1 << 30;

/// The time between two removals in a database. A file is pruned whenever it is opened.
const PRUNE_EVERY: Duration = Duration::from_hours(1);

/// The sessions of a project: where they are stored, and how long they stay.
#[derive(Debug, Clone)]
pub struct Sessions {
    place: SessionPlace,
    retention: SessionRetention,
}

#[derive(Debug, Clone)]
enum SessionPlace {
    /// The file `sessions.db` in the state folder.
    File { state: StateFolder, are_off: bool },
    /// A PostgreSQL database.
    Server(Arc<StoreServer>),
}

/// The database of a URL, which is connected to when it is first needed.
#[derive(Debug)]
struct StoreServer {
    url: StoreUrl,
    accept_loss: bool,
    /// With the time of the last removal.
    opened: Mutex<Option<(PostgresStore, Instant)>>,
}

/// The source of a URL.
pub(crate) enum StoreUrl {
    /// Given by the caller.
    Given(Arc<str>),
    /// A secret of the project.
    Secret { secrets: ProjectSecrets, name: Arc<str> },
    /// None, because the project is not trusted; the text ends a sentence.
    Held(Arc<str>),
}

impl StoreUrl {
    pub(crate) fn get(&self) -> Result<Arc<str>, SessionStoreError> {
        let failed = |source| {
            let (store, doing) = ("the database of the store".to_owned(), "opened");
            SessionStoreError::Io { store, doing, source }
        };
        match self {
            Self::Given(url) => Ok(Arc::clone(url)),
            Self::Secret { secrets, name } => match secrets.get(name) {
                Ok(url) => Ok(url.expose().into()),
                Err(error) => Err(failed(error.into())),
            },
            Self::Held(reason) => Err(failed(reason.to_string().into())),
        }
    }
}

impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreUrl(…)")
    }
}

impl Sessions {
    /// `given` is a URL that replaces the project's own place.
    pub(crate) fn new(
        section: &SessionsSection,
        state: &StateFolder,
        given: Option<&str>,
        secrets: &ProjectSecrets,
        held: Option<&Arc<str>>,
    ) -> Self {
        let url = match (given, &section.place, held) {
            (Some(url), ..) => Some(StoreUrl::Given(url.into())),
            (None, StorePlace::Server(_), Some(reason)) => Some(StoreUrl::Held(Arc::clone(reason))),
            (None, StorePlace::Server(name), None) => {
                let (secrets, name) = (secrets.clone(), Arc::clone(&name.value));
                Some(StoreUrl::Secret { secrets, name })
            }
            (None, StorePlace::File | StorePlace::None, _) => None,
        };
        let place = match url {
            Some(url) => {
                let (accept_loss, opened) = (section.accept_loss, Mutex::default());
                SessionPlace::Server(Arc::new(StoreServer { url, accept_loss, opened }))
            }
            None => SessionPlace::File {
                state: state.clone(),
                are_off: matches!(section.place, StorePlace::None),
            },
        };
        Self {
            place,
            retention: SessionRetention {
                keep_for: section.keep_for.unwrap_or(KEEP_FOR),
                max_bytes: section.max_bytes.unwrap_or(MAX_BYTES),
            },
        }
    }

    /// Whether the project stores its runs as sessions, unless a run says otherwise.
    pub fn are_stored(&self) -> bool {
        !matches!(self.place, SessionPlace::File { are_off: true, .. })
    }

    /// Whether they are in a database, which keeps artifacts too.
    pub(crate) fn are_on_server(&self) -> bool {
        matches!(self.place, SessionPlace::Server(_))
    }

    /// Opens the store for a run: creates the state folder and the file if they are missing, or connects to the
    /// database, and removes sessions that exceed the retention. Blocking.
    ///
    /// # Errors
    /// [`SessionStoreError`], with the file, folder or database.
    pub fn open(&self) -> Result<Arc<dyn Store>, SessionStoreError> {
        match &self.place {
            SessionPlace::Server(server) => server.open(&self.retention),
            SessionPlace::File { state, .. } => {
                state.make().map_err(|source| SessionStoreError::Io {
                    store: state.path().display().to_string(),
                    doing: "created",
                    source: source.into(),
                })?;
                let store = SqliteStore::open(state.path().join(FILE))?;
                store.prune(&self.retention)?;
                Ok(Arc::new(store))
            }
        }
    }

    /// Inspects the server of the store; `None` if it is a file. Blocking.
    ///
    /// # Errors
    /// [`SessionStoreError`], with the database.
    pub fn inspect(&self) -> Result<Option<Vec<ServerFinding>>, SessionStoreError> {
        match &self.place {
            SessionPlace::Server(server) => server.connect()?.inspect().map(Some),
            SessionPlace::File { .. } => Ok(None),
        }
    }

    /// Opens the store to inspect or delete sessions; `None` if there is none. Blocking.
    ///
    /// # Errors
    /// [`SessionStoreError`], with the file or database.
    pub fn open_existing(&self) -> Result<Option<Arc<dyn Store>>, SessionStoreError> {
        match &self.place {
            SessionPlace::Server(server) => server.open(&self.retention).map(Some),
            SessionPlace::File { state, .. } => {
                let store = SqliteStore::open_existing(state.path().join(FILE))?;
                Ok(store.map(|store| Arc::new(store) as Arc<dyn Store>))
            }
        }
    }
}

impl StoreServer {
    fn connect(&self) -> Result<PostgresStore, SessionStoreError> {
        Ok(PostgresStore::connect(&self.url.get()?)?.accept_loss(self.accept_loss))
    }

    fn open(&self, retention: &SessionRetention) -> Result<Arc<dyn Store>, SessionStoreError> {
        let mut opened = self.opened.lock();
        let (store, pruned) = match &mut *opened {
            Some((store, pruned)) if pruned.elapsed() < PRUNE_EVERY => {
                return Ok(Arc::new(store.clone()));
            }
            Some((store, pruned)) => (store, pruned),
            none => {
                let new = (self.connect()?, Instant::now());
                let (store, pruned) = none.insert(new);
                (store, pruned)
            }
        };
        *pruned = Instant::now();
        let store = store.clone();
        drop(opened);
        store.prune(retention)?;
        Ok(Arc::new(store))
    }
}
