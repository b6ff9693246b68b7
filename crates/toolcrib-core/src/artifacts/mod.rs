//! The port to a store for results that are too large for a model.

mod error;
mod line_index;
mod port;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::{
    error::{ArtifactStoreError, CommitError},
    line_index::LineIndex,
    port::{ArtifactCall, ArtifactLog, ArtifactPort, StoredResult},
};
use crate::{json::digest::Digest, names::identity::Identity, tool::text_origin::TextOrigin};

/// Stores the bytes of large results, each under an id of the [`Identity`] that it was made for. No
/// identity can read another's artifacts.
///
/// All methods block: call them where blocking is allowed. A store with an asynchronous client
/// waits for it there (`Handle::block_on`). Any text is a valid id; a store must prevent ids from
/// escaping it, such as by path traversal. One store serves many runs, and several processes may
/// share its storage.
///
/// `toolcrib_testing::stores` tests implementations of this contract.
pub trait ArtifactStore: Send + Sync + 'static {
    /// Starts a write. Nothing is readable before [`StoreWriter::commit`].
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if the store cannot be written to.
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError>;

    /// Opens an artifact. Its content stays readable, byte for byte, even if the id is overwritten
    /// or removed.
    ///
    /// # Errors
    /// [`ArtifactStoreError::Unknown`] if this owner has no artifact under the id, or no longer.
    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError>;

    /// All artifacts of an owner, in order of creation.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if they cannot be listed.
    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError>;

    /// Removes an id; a missing id is not an error.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if it cannot be removed.
    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError>;

    /// Removes all artifacts of an owner whose conversation has ended: there must be no concurrent
    /// writes for the owner. An owner without artifacts is not an error.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if some cannot be removed.
    fn forget(&self, owner: &Identity) -> Result<(), ArtifactStoreError> {
        self.entries(owner)?.iter().try_for_each(|entry| self.remove(owner, &entry.id))
    }
}

/// A write to an [`ArtifactStore`]. Dropping it without a commit discards it.
pub trait StoreWriter: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`ArtifactStoreError::Full`] if the space is exhausted. Nothing of this writer will be kept.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError>;

    /// Commits the content under an id, atomically.
    ///
    /// # Errors
    /// [`CommitError::Taken`] if the id exists and `on_conflict` is [`OnConflict::Fail`]: then the
    /// writer is returned unchanged.
    fn commit(
        self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError>;
}

impl std::fmt::Debug for dyn StoreWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreWriter")
    }
}

/// The bytes of one [`StoredBytes`] content.
pub trait ArtifactReader: Send + Sync + 'static {
    /// Fills a buffer from an offset on and returns the number of bytes read: fewer than requested
    /// only at the end.
    ///
    /// # Errors
    /// [`ArtifactStoreError::Gone`] if another program deleted the bytes from the store.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, ArtifactStoreError>;
}

/// The behavior of a [commit](StoreWriter::commit) under an existing id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// The commit fails, and the existing artifact stays.
    Fail,
    /// The existing artifact is replaced.
    Replace,
}

/// Metadata that is stored with an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactMeta {
    /// The kind of artifact, such as `text` or `json`.
    pub kind: Arc<str>,
    /// The tool that made the result.
    pub tool: Arc<str>,
    /// The call's id, given by the model.
    pub call_id: Arc<str>,
    /// The run of that call.
    pub turn_id: Arc<str>,
    /// Whether the content may come from an untrusted author.
    pub untrusted: bool,
    /// Where the content is from, if it is untrusted. Of entries of earlier versions:
    /// [`TextOrigin::Foreign`].
    #[serde(default)]
    pub text_origin: TextOrigin,
    /// The number of characters (Unicode scalar values), as far as it is UTF-8.
    pub chars: u64,
}

/// A stored artifact, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactEntry {
    /// The id, unique per owner.
    pub id: Arc<str>,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The size in bytes.
    pub bytes: u64,
    /// The number of lines, as counted by [`LineIndex::lines`].
    pub lines: u64,
    /// The time of creation, in milliseconds since 1970.
    pub made_ms: u64,
    /// The metadata.
    pub note: ArtifactMeta,
}

/// The bytes of an opened artifact.
#[derive(Clone)]
pub struct StoredBytes {
    /// The artifact's entry.
    pub entry: ArtifactEntry,
    /// The index of its lines.
    pub lines: Arc<LineIndex>,
    /// Its bytes.
    pub reader: Arc<dyn ArtifactReader>,
}

crate::internal::debug_fields!(StoredBytes, bytes, bytes.entry);
