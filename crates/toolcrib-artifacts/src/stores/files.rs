//! A store of artifacts in files.
//!
//! ```text
//! ROOT/OWNER/DIGEST          a content, under the digest of its bytes
//! ROOT/OWNER/DIGEST.lines    its line index
//! ROOT/OWNER/ID.entry        the entry of an id; named by a digest, so any text is an id
//! ROOT/OWNER/lock            locked while any of these is added or removed
//! ROOT/OWNER/new-…           a draft
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "this is where artifacts are kept; no tool's body names a path here"
)]

use std::{
    collections::HashSet,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tempfile::NamedTempFile;
use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactReader, ArtifactStore, ArtifactStoreError, CommitError,
    Digest, Identity, LineIndex, OnConflict, StoreWriter, StoredBytes,
};
use uuid::Uuid;

use super::{WriteSummary, has_expired};

/// The extension of entry files.
const ENTRY: &str = "entry";

/// The extension of line index files.
const LINES: &str = "lines";

/// The name of the lock file.
const LOCK: &str = "lock";

/// The prefix of files being written.
const DRAFT: &str = "new-";

/// A draft without writes for this time was left by a killed process.
const DRAFT_DIES_AFTER: Duration = Duration::from_hours(24);

/// The number of attempts to make a folder that is removed before it has a file.
const MAKE_TIMES: u32 = 64;

/// The interval of sweeps for expired artifacts.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// An [`ArtifactStore`] in a folder, which several processes may share. Content is written to disk
/// as it arrives, so its size does not depend on memory; commits are atomic, and equal bytes are
/// stored once per owner. Only the process's user can read the folder.
///
/// Writes are not synced to disk: after a power failure the newest artifacts may be missing, and
/// are then unknown.
#[derive(Debug, Clone)]
pub struct FileStore {
    root: Arc<Path>,
    keep: Option<Duration>,
    /// The time of the last sweep; `None` before the first, so that short-lived processes sweep
    /// too.
    swept: Arc<Mutex<Option<Instant>>>,
}

/// The entries of an owner.
struct Entries {
    kept: Vec<StoredEntry>,
    /// Whether all entries were readable.
    are_all: bool,
}

/// The content of an entry file.
#[derive(Serialize, Deserialize)]
struct StoredEntry {
    /// Sort key by creation: a UUID that begins with the time.
    order: String,
    entry: ArtifactEntry,
}

impl FileStore {
    /// A store in this folder, which is created on the first write. Artifacts stay until they are
    /// removed; see [`keep_for`](Self::keep_for).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into(), keep: None, swept: Arc::default() }
    }

    /// Sets the time after which artifacts expire. Expired ones are no longer found; their space is
    /// freed by the next [`sweep`](Self::sweep), triggered by writes and reads: the first
    /// immediately, later ones once a minute. Default: no expiry.
    #[must_use]
    pub fn keep_for(mut self, keep: Duration) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Frees the space of expired artifacts, and of drafts of killed processes.
    ///
    /// # Errors
    /// [`ArtifactStoreError::Io`] if the folder cannot be read. Concurrent removals are not an
    /// error.
    pub fn sweep(&self) -> Result<(), ArtifactStoreError> {
        let owners = match fs::read_dir(&self.root) {
            Ok(owners) => owners,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(ArtifactStoreError::of_io("swept", error)),
        };
        for owner in owners.flatten() {
            let owner = OwnerFolder(owner.path());
            let Ok(lock) = owner.lock() else { continue };
            // Unreadable owners are retried with the next sweep.
            let Ok(mut entries) = owner.entries() else { continue };
            let expired: Vec<_> = entries.kept.extract_if(.., |kept| !self.is_live(kept)).collect();
            for kept in &expired {
                // Failed removals are retried with the next sweep.
                let _ = owner.forget(&kept.entry.id);
            }
            owner.remove_leftovers(&entries);
            owner.remove_if_empty(lock);
        }
        Ok(())
    }

    fn sweep_now_and_then(&self) {
        if self.keep.is_none() {
            return;
        }
        let mut swept = self.swept.lock();
        if swept.is_none_or(|swept| swept.elapsed() >= SWEEP_EVERY) {
            *swept = Some(Instant::now());
            drop(swept);
            // A failed sweep is retried, and expired artifacts are not found in any case.
            let _ = self.sweep();
        }
    }

    fn owner(&self, owner: &Identity) -> OwnerFolder {
        let Identity { tenant, principal, conversation } = owner;
        let name = Digest::of_json(&json!([tenant, principal, **conversation]));
        OwnerFolder(self.root.join(name.to_string()))
    }

    fn is_live(&self, kept: &StoredEntry) -> bool {
        !has_expired(kept.entry.made_ms, self.keep)
    }
}

impl ArtifactStore for FileStore {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        self.sweep_now_and_then();
        let owner = self.owner(owner);
        let failed = |error| ArtifactStoreError::of_io("written", error);
        let draft = owner.begin().map_err(failed)?;
        let written = WriteSummary::new();
        Ok(Box::new(FileWriter { store: self.clone(), owner, draft, written }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        self.sweep_now_and_then();
        let owner = self.owner(owner);
        let gone = |error| ArtifactStoreError::of_io("read", error);
        let found = owner.entry(id).map_err(gone)?.filter(|kept| self.is_live(kept));
        let StoredEntry { entry, .. } =
            found.ok_or_else(|| ArtifactStoreError::Unknown { id: id.into() })?;
        let file = File::open(owner.content(&entry.digest)).map_err(gone)?;
        let length = file.metadata().map_err(gone)?.len();
        let lines = fs::read(owner.lines(&entry.digest)).map_err(gone)?;
        let lines = LineIndex::from_bytes(&lines)
            .filter(|lines| lines.bytes() == entry.bytes && length == entry.bytes)
            .ok_or_else(|| gone(io::ErrorKind::UnexpectedEof.into()))?;
        Ok(StoredBytes {
            entry,
            lines: Arc::new(lines),
            reader: Arc::new(FileReader { file, length }),
        })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.sweep_now_and_then();
        let kept = self.owner(owner).entries();
        let kept = kept.map_err(|error| ArtifactStoreError::of_io("listed", error))?;
        let live = kept.kept.into_iter().filter(|kept| self.is_live(kept));
        Ok(live.map(|kept| kept.entry).collect())
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        let owner = self.owner(owner);
        let failed = |error| ArtifactStoreError::of_io("removed", error);
        if !owner.0.is_dir() {
            return Ok(());
        }
        let _lock = owner.lock().map_err(failed)?;
        if let Some(kept) = owner.entry(id).map_err(failed)? {
            owner.forget(id).map_err(failed)?;
            owner.forget_content(&kept.entry.digest);
        }
        Ok(())
    }

    fn forget(&self, owner: &Identity) -> Result<(), ArtifactStoreError> {
        let owner = self.owner(owner);
        if !owner.0.is_dir() {
            return Ok(());
        }
        // Another process may be committing. Without a lock file the owner is empty.
        let _lock = owner.lock();
        match fs::remove_dir_all(owner.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ArtifactStoreError::of_io("removed", error))
            }
            _ => Ok(()),
        }
    }
}

/// The folder of one owner.
struct OwnerFolder(PathBuf);

impl OwnerFolder {
    /// Refuses a symlink in place of the folder: it would lead out of the store.
    fn check(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.0) {
            Ok(there) if !there.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Creates a draft, and its folder if it is missing. An empty folder may be removed in between.
    fn begin(&self) -> io::Result<NamedTempFile> {
        for _ in 1..MAKE_TIMES {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
            self.check()?;
            match made.and_then(|()| self.draft()) {
                // It existed when it was to be made, and was removed before anything else.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                begun => return begun,
            }
        }
        self.draft()
    }

    /// Locked until dropped. The operating system releases it when the process ends for any reason.
    fn lock(&self) -> io::Result<File> {
        let path = self.0.join(LOCK);
        loop {
            self.check()?;
            let options = OpenOptions::new().create(true).append(true).mode(0o600).to_owned();
            let file = options.open(&path)?;
            file.lock()?;
            // A lock file that was removed with its folder during the wait protects nothing.
            let (held, there) = (file.metadata()?, fs::metadata(&path));
            if there.is_ok_and(|there| there.ino() == held.ino()) {
                return Ok(file);
            }
        }
    }

    /// Removes the folder if it is empty. The next write creates it again.
    fn remove_if_empty(&self, lock: File) {
        let Ok(files) = fs::read_dir(&self.0) else { return };
        let is_lock =
            |file: io::Result<fs::DirEntry>| file.is_ok_and(|file| file.file_name() == LOCK);
        if files.into_iter().all(is_lock) {
            let _ = fs::remove_file(self.0.join(LOCK));
            // It stays if another process has started a write.
            let _ = fs::remove_dir(&self.0);
        }
        drop(lock);
    }

    fn content(&self, digest: &Digest) -> PathBuf {
        self.0.join(digest.to_string())
    }

    fn lines(&self, digest: &Digest) -> PathBuf {
        self.content(digest).with_extension(LINES)
    }

    fn entry_file(&self, id: &str) -> PathBuf {
        self.0.join(Digest::of(id).to_string()).with_extension(ENTRY)
    }

    /// A file being written; removed on drop, unless it is given its name.
    fn draft(&self) -> io::Result<NamedTempFile> {
        // Not `tempfile_in`, whose errors name the temporary file.
        tempfile::Builder::new().prefix(DRAFT).make_in(&self.0, |path| {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
        })
    }

    /// The entry of an id.
    fn entry(&self, id: &str) -> io::Result<Option<StoredEntry>> {
        self.check()?;
        match fs::read(self.entry_file(id)) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All entries, in the order of creation.
    fn entries(&self) -> io::Result<Entries> {
        self.check()?;
        let mut entries = Entries { kept: Vec::new(), are_all: true };
        let files = match fs::read_dir(&self.0) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(entries),
            Err(error) => return Err(error),
        };
        for file in files {
            let path = file?.path();
            if path.extension().is_none_or(|extension| extension != ENTRY) {
                continue;
            }
            match fs::read(&path) {
                Ok(text) => match serde_json::from_slice(&text) {
                    Ok(kept) => entries.kept.push(kept),
                    Err(_) => entries.are_all = false,
                },
                // Removed concurrently.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        entries.kept.sort_unstable_by(|a, b| a.order.cmp(&b.order));
        Ok(entries)
    }

    /// Removes an entry. Requires the lock.
    fn forget(&self, id: &str) -> io::Result<()> {
        match fs::remove_file(self.entry_file(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes a content that no entry refers to. Requires the lock; failures are retried by a
    /// sweep.
    fn forget_content(&self, digest: &Digest) {
        let Ok(others) = self.entries() else { return };
        if others.are_all && !others.kept.iter().any(|other| other.entry.digest == *digest) {
            let _ = fs::remove_file(self.content(digest));
            let _ = fs::remove_file(self.lines(digest));
        }
    }

    /// Removes leftovers of killed processes: drafts, and contents that no entry refers to.
    /// Requires the lock.
    fn remove_leftovers(&self, live: &Entries) {
        let Ok(files) = fs::read_dir(&self.0) else { return };
        let contents = live.kept.iter().map(|kept| kept.entry.digest.to_string());
        let contents: HashSet<_> = contents.collect();
        for file in files.flatten() {
            let path = file.path();
            let (name, kind) = (path.file_stem().unwrap_or_default(), path.extension());
            let name = name.to_string_lossy();
            let is_dead = if name.starts_with(DRAFT) {
                let written = file.metadata().and_then(|metadata| metadata.modified());
                let age = written.ok().and_then(|written| written.elapsed().ok());
                age.is_some_and(|age| age >= DRAFT_DIES_AFTER)
            } else {
                let is_content = name != LOCK && kind.is_none_or(|kind| kind == LINES);
                live.are_all && is_content && !contents.contains(&*name)
            };
            if is_dead {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Moves the files into place: the content, its line index, and the entry last, because it
    /// makes the artifact visible. Requires the lock.
    fn put_kept(
        &self,
        draft: NamedTempFile,
        lines: &LineIndex,
        kept: &StoredEntry,
    ) -> io::Result<()> {
        draft.persist(self.content(&kept.entry.digest))?;
        self.put(&self.lines(&kept.entry.digest), &lines.to_bytes())?;
        self.put(&self.entry_file(&kept.entry.id), &serde_json::to_vec(kept)?)
    }

    /// Writes a file atomically.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut draft = self.draft()?;
        draft.as_file_mut().write_all(bytes)?;
        draft.persist(path)?;
        Ok(())
    }
}

struct FileWriter {
    store: FileStore,
    owner: OwnerFolder,
    draft: NamedTempFile,
    written: WriteSummary,
}

impl StoreWriter for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError> {
        let written = self.draft.as_file_mut().write_all(bytes);
        written.map_err(|error| ArtifactStoreError::of_io("written", error))?;
        self.written.push(bytes);
        Ok(())
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        let failed = |error| ArtifactStoreError::of_io("kept", error);
        let _lock = self.owner.lock().map_err(failed)?;
        let before = self.owner.entry(id).map_err(failed)?;
        let is_taken = match &before {
            Some(kept) => self.store.is_live(kept),
            // An unreadable entry still takes the id.
            None => self.owner.entry_file(id).exists(),
        };
        if on_conflict == OnConflict::Fail && is_taken {
            return Err(CommitError::Taken { id: id.into(), writer: self });
        }
        let Self { owner, draft, written, .. } = *self;
        let (entry, lines) = written.finish(id, note);
        let kept = StoredEntry { order: Uuid::now_v7().to_string(), entry };
        if let Err(error) = owner.put_kept(draft, &lines, &kept) {
            // A partial content would only use space.
            owner.forget_content(&kept.entry.digest);
            return Err(failed(error).into());
        }
        if let Some(before) = before {
            owner.forget_content(&before.entry.digest);
        }
        Ok(kept.entry)
    }
}

struct FileReader {
    file: File,
    length: u64,
}

impl ArtifactReader for FileReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, ArtifactStoreError> {
        let mut count = 0;
        while offset < self.length
            && let Some(rest) = into.get_mut(count..).filter(|rest| !rest.is_empty())
        {
            match self.file.read_at(rest, offset + count as u64) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ArtifactStoreError::of_io("read", error)),
            }
        }
        Ok(count)
    }
}
