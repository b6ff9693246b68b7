//! The artifact store of a project.

use std::{io, sync::Arc, time::Duration};

use toolcrib_artifacts::{ArtifactLimits, Artifacts, FileStore, MemoryStore};
use toolcrib_core::{
    ArtifactEntry, ArtifactStore, ArtifactStoreError, Identity, StoreWriter, StoredBytes,
};

use crate::{
    file::ArtifactsSection,
    user::{sessions::Sessions, state::StateFolder},
};

/// The folder of the artifacts, in the state folder.
const FOLDER: &str = "artifacts";

/// The retention of an artifact in a conversation that does not end with its run.
const KEEP_FOR: Duration = Duration::from_hours(24);

/// The memory limit of a turn or session.
const TURN_IN_MEMORY: u64 = 256 << 20;
const SESSION_IN_MEMORY: u64 = 512 << 20;

/// The artifacts of a project.
pub(crate) fn build_artifacts(
    section: &ArtifactsSection,
    state: &StateFolder,
    sessions: &Sessions,
) -> Artifacts {
    let keep_for = section.keep_for.unwrap_or(KEEP_FOR);
    let default = ArtifactLimits::default();
    let (store, default): (Arc<dyn ArtifactStore>, _) = if section.in_memory {
        let store = MemoryStore::new().keep_for(keep_for);
        let limits = ArtifactLimits {
            turn_bytes: TURN_IN_MEMORY,
            session_bytes: SESSION_IN_MEMORY,
            ..default
        };
        (Arc::new(store), limits)
    } else if sessions.are_on_server() {
        (Arc::new(ServerArtifacts { sessions: sessions.clone(), keep_for }), default)
    } else {
        let files = FileStore::new(state.path().join(FOLDER)).keep_for(keep_for);
        (Arc::new(LazyFileStore { state: state.clone(), files }), default)
    };
    let limits = ArtifactLimits {
        turn_bytes: section.max_turn_bytes.unwrap_or(default.turn_bytes),
        session_bytes: section.max_session_bytes.unwrap_or(default.session_bytes),
        answer_chars: section.max_answer_chars.unwrap_or(default.answer_chars),
    };
    Artifacts::with(store, Vec::new(), limits)
}

/// A store in the state folder, created when the first artifact is stored.
struct LazyFileStore {
    state: StateFolder,
    files: FileStore,
}

impl ArtifactStore for LazyFileStore {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        let made = self.state.make().and_then(|()| self.state.folder(FOLDER));
        made.map_err(|source| ArtifactStoreError::Io { doing: "written", source })?;
        self.files.create(owner)
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        self.files.open(owner, id)
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.files.entries(owner)
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.files.remove(owner, id)
    }

    fn forget(&self, owner: &Identity) -> Result<(), ArtifactStoreError> {
        self.files.forget(owner)
    }
}

/// The artifacts in the database of the sessions, which is connected to when the first is stored or read.
struct ServerArtifacts {
    sessions: Sessions,
    keep_for: Duration,
}

impl ServerArtifacts {
    fn store(&self) -> Result<Arc<dyn ArtifactStore>, ArtifactStoreError> {
        let failed = |source| ArtifactStoreError::Io { doing: "reached", source };
        let store = self.sessions.open().map_err(|error| failed(io::Error::other(error)))?;
        store.artifacts(self.keep_for).ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))
    }
}

impl ArtifactStore for ServerArtifacts {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        self.store()?.create(owner)
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        self.store()?.open(owner, id)
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.store()?.entries(owner)
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.store()?.remove(owner, id)
    }

    fn forget(&self, owner: &Identity) -> Result<(), ArtifactStoreError> {
        self.store()?.forget(owner)
    }
}
