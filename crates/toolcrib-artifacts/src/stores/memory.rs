//! A store of artifacts in memory: gone with the process.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use indexmap::IndexMap;
use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactReader, ArtifactStore, ArtifactStoreError, CommitError,
    Identity, OnConflict, StoreWriter, StoredBytes,
};

use super::{WriteSummary, has_expired};

type Owners = HashMap<Identity, IndexMap<Arc<str>, StoredBytes>>;

/// An [`ArtifactStore`] in memory. Clones share it. Neighbor: a [`FileStore`](crate::FileStore)
/// outlives the process, and can store more than memory.
#[derive(Clone, Default)]
pub struct MemoryStore {
    owners: Arc<Mutex<Owners>>,
    keep: Option<Duration>,
}

impl MemoryStore {
    /// Creates a store without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time after which artifacts expire. Default: never.
    #[must_use]
    pub fn keep_for(mut self, keep: Duration) -> Self {
        self.keep = Some(keep);
        self
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock()
    }

    fn is_live(&self, stored: &StoredBytes) -> bool {
        !has_expired(stored.entry.made_ms, self.keep)
    }
}

impl ArtifactStore for MemoryStore {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        if self.keep.is_some() {
            self.owners().retain(|_, kept| {
                kept.retain(|_, stored| self.is_live(stored));
                !kept.is_empty()
            });
        }
        Ok(Box::new(MemoryWriter {
            store: self.clone(),
            owner: owner.clone(),
            bytes: Vec::new(),
            written: WriteSummary::new(),
        }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        let owners = self.owners();
        let found = owners.get(owner).and_then(|kept| kept.get(id));
        let live = found.filter(|stored| self.is_live(stored));
        live.cloned().ok_or_else(|| ArtifactStoreError::Unknown { id: id.into() })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        let owners = self.owners();
        let kept = owners.get(owner).into_iter().flat_map(IndexMap::values);
        Ok(kept.filter(|stored| self.is_live(stored)).map(|stored| stored.entry.clone()).collect())
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        if let Some(kept) = self.owners().get_mut(owner) {
            kept.shift_remove(id);
        }
        Ok(())
    }

    fn forget(&self, owner: &Identity) -> Result<(), ArtifactStoreError> {
        self.owners().remove(owner);
        Ok(())
    }
}

toolcrib_core::__internal::debug_fields!(MemoryStore { keep, .. });

struct MemoryWriter {
    store: MemoryStore,
    owner: Identity,
    bytes: Vec<u8>,
    written: WriteSummary,
}

impl StoreWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError> {
        // An allocation failure fails this result, not the process.
        self.bytes
            .try_reserve(bytes.len())
            .map_err(|_| ArtifactStoreError::Full { source: io::ErrorKind::OutOfMemory.into() })?;
        self.bytes.extend_from_slice(bytes);
        self.written.push(bytes);
        Ok(())
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        let store = self.store.clone();
        let mut owners = store.owners();
        let there = owners.get(&self.owner).and_then(|kept| kept.get(id));
        if on_conflict == OnConflict::Fail && there.is_some_and(|there| store.is_live(there)) {
            return Err(CommitError::Taken { id: id.into(), writer: self });
        }
        let Self { owner, bytes, written, .. } = *self;
        let (entry, lines) = written.finish(id, note);
        let reader = Arc::new(Bytes(bytes));
        let stored = StoredBytes { entry: entry.clone(), lines: Arc::new(lines), reader };
        let kept = owners.entry(owner).or_default();
        kept.shift_remove(id);
        kept.insert(id.into(), stored);
        Ok(entry)
    }
}

struct Bytes(Vec<u8>);

impl ArtifactReader for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, ArtifactStoreError> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let there = self.0.get(from..).unwrap_or_default();
        let count = there.len().min(into.len());
        if let (Some(to), Some(bytes)) = (into.get_mut(..count), there.get(..count)) {
            to.copy_from_slice(bytes);
        }
        Ok(count)
    }
}
