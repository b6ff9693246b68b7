//! Where results are kept that are too large for a model: a port.

mod error;
mod line_index;
mod spooler;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::{
    error::{CommitError, SpoolError},
    line_index::{INDEX_BLOCK, LineIndex},
    spooler::{KeptEntries, KeptResult, SpooledCall, Spooler},
};
use crate::{digest::Digest, identity::Identity};

/// Keeps the bytes of large results, each under an id of the [`Identity`] that it was made for.
/// Nothing of one identity is ever found by another.
///
/// All methods block: call them where blocking is allowed. A store behind an asynchronous client
/// waits for it there (`Handle::block_on`). Any text is an id; a store makes sure that none reaches
/// beyond it. One store serves many runs, and several processes may share what is behind it.
///
/// `toolcrib_artifacts::conformance` holds an implementation to this contract.
pub trait SpoolStore: Send + Sync + 'static {
    /// Begins to write. Nothing is there to be read before [`SpoolWriter::commit`].
    ///
    /// # Errors
    /// [`SpoolError`] when there is no place to write to.
    fn create(&self, owner: &Identity) -> Result<Box<dyn SpoolWriter>, SpoolError>;

    /// What is kept under an id. What is handed out stays readable, byte for byte, also when the id
    /// is written again or removed.
    ///
    /// # Errors
    /// [`SpoolError::Unknown`] when this owner has nothing under the id, or no longer.
    fn open(&self, owner: &Identity, id: &str) -> Result<Spooled, SpoolError>;

    /// All that an owner has, in the order in which it was made.
    ///
    /// # Errors
    /// [`SpoolError`] when it cannot be listed.
    fn entries(&self, owner: &Identity) -> Result<Vec<SpoolEntry>, SpoolError>;

    /// Takes an id out; one that is not there is fine.
    ///
    /// # Errors
    /// [`SpoolError`] when it stays.
    fn remove(&self, owner: &Identity, id: &str) -> Result<(), SpoolError>;

    /// Takes out all that an owner has, who is not heard of again: nobody may write for them at the
    /// same time. An owner who has nothing is fine.
    ///
    /// # Errors
    /// [`SpoolError`] when something stays.
    fn forget(&self, owner: &Identity) -> Result<(), SpoolError> {
        self.entries(owner)?.iter().try_for_each(|entry| self.remove(owner, &entry.id))
    }
}

/// Bytes on their way into a [`SpoolStore`]. Dropped without a commit, it leaves nothing behind.
pub trait SpoolWriter: Send {
    /// Takes more bytes.
    ///
    /// # Errors
    /// [`SpoolError::Full`] when there is no room for them. Nothing of this writer will be kept.
    fn write(&mut self, bytes: &[u8]) -> Result<(), SpoolError>;

    /// Keeps all of it under an id, at once or not at all.
    ///
    /// # Errors
    /// [`CommitError::Taken`] when the id is, and `if_taken` says [`IfTaken::Fail`]: then the writer
    /// comes back as it was.
    fn commit(
        self: Box<Self>,
        id: &str,
        note: SpoolNote,
        if_taken: IfTaken,
    ) -> Result<SpoolEntry, CommitError>;
}

impl std::fmt::Debug for dyn SpoolWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SpoolWriter")
    }
}

/// The bytes of one [`Spooled`] content.
pub trait SpoolReader: Send + Sync + 'static {
    /// Fills a buffer from an offset on, as far as there are bytes, and says how many there were:
    /// fewer than asked for only at the end.
    ///
    /// # Errors
    /// [`SpoolError::Gone`] when the bytes were taken away behind the store's back.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, SpoolError>;
}

/// What becomes of a [commit](SpoolWriter::commit) under an id that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfTaken {
    /// It fails, and what is there stays.
    Fail,
    /// It takes the place of what is there.
    Replace,
}

/// What is said of a content by whoever keeps it, and stays with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolNote {
    /// The kind of artifact, such as `text` or `json`.
    pub kind: Arc<str>,
    /// The tool whose result it is.
    pub tool: Arc<str>,
    /// The call that it came of, as the model named it.
    pub call_id: Arc<str>,
    /// The run of that call.
    pub run_id: Arc<str>,
    /// Whether somebody else may have written it.
    pub untrusted: bool,
    /// How many characters it has (Unicode scalar values), as far as it is UTF-8.
    pub chars: u64,
}

/// One content that is kept, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolEntry {
    /// The id, unique among its owner's.
    pub id: Arc<str>,
    /// The digest of the bytes.
    pub digest: Digest,
    /// How many bytes.
    pub bytes: u64,
    /// How many lines, as [`LineIndex::lines`] counts them.
    pub lines: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// What was said of it.
    pub note: SpoolNote,
}

/// One content, to be read.
#[derive(Clone)]
pub struct Spooled {
    /// What is known of it.
    pub entry: SpoolEntry,
    /// Where its lines are.
    pub lines: Arc<LineIndex>,
    /// Its bytes.
    pub reader: Arc<dyn SpoolReader>,
}

impl std::fmt::Debug for Spooled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Spooled").field(&self.entry).finish()
    }
}
