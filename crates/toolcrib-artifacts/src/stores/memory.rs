//! Artifacts in memory: gone with the process.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use indexmap::IndexMap;
use toolcrib_core::{
    CommitError, Identity, IfTaken, SpoolEntry, SpoolError, SpoolNote, SpoolReader, SpoolStore,
    SpoolWriter, Spooled,
};

use super::{Written, has_expired};

type Owners = HashMap<Identity, IndexMap<Arc<str>, Spooled>>;

/// A [`SpoolStore`] in memory. Cloning shares it. Neighbour: a [`FileStore`](crate::FileStore)
/// outlives the process, and holds what is larger than memory.
#[derive(Clone, Default)]
pub struct MemoryStore {
    owners: Arc<Mutex<Owners>>,
    keep: Option<Duration>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets artifacts go so long after they were made. Default: with the process.
    #[must_use]
    pub fn keep_for(mut self, keep: Duration) -> Self {
        self.keep = Some(keep);
        self
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_live(&self, spooled: &Spooled) -> bool {
        !has_expired(spooled.entry.made_ms, self.keep)
    }
}

impl SpoolStore for MemoryStore {
    fn create(&self, owner: &Identity) -> Result<Box<dyn SpoolWriter>, SpoolError> {
        if self.keep.is_some() {
            self.owners().retain(|_, kept| {
                kept.retain(|_, spooled| self.is_live(spooled));
                !kept.is_empty()
            });
        }
        Ok(Box::new(MemoryWriter {
            store: self.clone(),
            owner: owner.clone(),
            bytes: Vec::new(),
            written: Written::new(),
        }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<Spooled, SpoolError> {
        let owners = self.owners();
        let found = owners.get(owner).and_then(|kept| kept.get(id));
        let live = found.filter(|spooled| self.is_live(spooled));
        live.cloned().ok_or_else(|| SpoolError::Unknown { id: id.into() })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<SpoolEntry>, SpoolError> {
        let owners = self.owners();
        let kept = owners.get(owner).into_iter().flat_map(IndexMap::values);
        Ok(kept
            .filter(|spooled| self.is_live(spooled))
            .map(|spooled| spooled.entry.clone())
            .collect())
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), SpoolError> {
        if let Some(kept) = self.owners().get_mut(owner) {
            kept.shift_remove(id);
        }
        Ok(())
    }

    fn forget(&self, owner: &Identity) -> Result<(), SpoolError> {
        self.owners().remove(owner);
        Ok(())
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("keep", &self.keep).finish_non_exhaustive()
    }
}

struct MemoryWriter {
    store: MemoryStore,
    owner: Identity,
    bytes: Vec<u8>,
    written: Written,
}

impl SpoolWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        // A result that does not fit into memory is this result's failure, not the process's.
        self.bytes
            .try_reserve(bytes.len())
            .map_err(|_| SpoolError::Full { source: io::ErrorKind::OutOfMemory.into() })?;
        self.bytes.extend_from_slice(bytes);
        self.written.push(bytes);
        Ok(())
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: SpoolNote,
        if_taken: IfTaken,
    ) -> Result<SpoolEntry, CommitError> {
        let store = self.store.clone();
        let mut owners = store.owners();
        let there = owners.get(&self.owner).and_then(|kept| kept.get(id));
        if if_taken == IfTaken::Fail && there.is_some_and(|there| store.is_live(there)) {
            return Err(CommitError::Taken { id: id.into(), writer: self });
        }
        let Self { owner, bytes, written, .. } = *self;
        let (entry, lines) = written.finish(id, note);
        let reader = Arc::new(Bytes(bytes));
        let spooled = Spooled { entry: entry.clone(), lines: Arc::new(lines), reader };
        let kept = owners.entry(owner).or_default();
        kept.shift_remove(id);
        kept.insert(id.into(), spooled);
        Ok(entry)
    }
}

struct Bytes(Vec<u8>);

impl SpoolReader for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, SpoolError> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let there = self.0.get(from..).unwrap_or_default();
        let count = there.len().min(into.len());
        if let (Some(to), Some(bytes)) = (into.get_mut(..count), there.get(..count)) {
            to.copy_from_slice(bytes);
        }
        Ok(count)
    }
}
