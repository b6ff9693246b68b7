//! Artifacts in files.
//!
//! ```text
//! ROOT/OWNER/DIGEST          a content, under the digest of its bytes
//! ROOT/OWNER/DIGEST.lines    where its lines are
//! ROOT/OWNER/ID.entry        what an id stands for; the name is a digest too, so any text is an id
//! ROOT/OWNER/lock            held while any of these is put in place or taken away
//! ROOT/OWNER/new-…           what is being written
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
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolcrib_core::{
    CommitError, Digest, Identity, IfTaken, LineIndex, SpoolEntry, SpoolError, SpoolNote,
    SpoolReader, SpoolStore, SpoolWriter, Spooled,
};
use uuid::Uuid;

use super::{Written, has_expired};

/// How the name of what stands for an id ends.
const ENTRY: &str = "entry";

/// How the name of what says where lines are ends.
const LINES: &str = "lines";

/// The file that is locked.
const LOCK: &str = "lock";

/// How the names of files that are being written begin.
const DRAFT: &str = "new-";

/// A draft that nobody has written to for so long was left by a process that was killed.
const DRAFT_DIES_AFTER: Duration = Duration::from_hours(24);

/// How often a folder is made that is taken away before anything is in it.
const MAKE_TIMES: u32 = 8;

/// How often a store that lets artifacts go looks for those that have to.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// A [`SpoolStore`] in a folder, which several processes may share. What is written goes to the disk
/// as it comes, so its size is not a matter of memory; it is there in whole or not at all, and the
/// same bytes are kept once per owner. Only the process's user can read the folder.
///
/// Nothing is waited for until it has reached the disk: after a power failure the newest artifacts may
/// be missing, and are then unknown.
#[derive(Debug, Clone)]
pub struct FileStore {
    root: Arc<Path>,
    keep: Option<Duration>,
    /// When it last looked for what has expired; `None` before it has, which a process that is soon over
    /// would never come to otherwise.
    swept: Arc<Mutex<Option<Instant>>>,
}

/// The entries of an owner.
struct Entries {
    kept: Vec<Kept>,
    /// Whether there are no others, which cannot be read.
    are_all: bool,
}

/// What stands in an entry's file.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Sorts by when it was put there: a UUID that begins with the time.
    order: String,
    entry: SpoolEntry,
}

impl FileStore {
    /// A store in this folder, which is made when something is first written. Artifacts stay until they
    /// are removed; see [`keep_for`](Self::keep_for).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into(), keep: None, swept: Arc::default() }
    }

    /// Lets artifacts go so long after they were made. They are not found any more from then on; the
    /// space is free with the next [`sweep`](Self::sweep), which writers and readers cause, the first at
    /// once and others once a minute. Default: artifacts stay.
    #[must_use]
    pub fn keep_for(mut self, keep: Duration) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Frees the space of what has expired, and of what a killed process has left half written.
    ///
    /// # Errors
    /// [`SpoolError::Io`] when the folder cannot be read. What others take away meanwhile is fine.
    pub fn sweep(&self) -> Result<(), SpoolError> {
        let owners = match fs::read_dir(&self.root) {
            Ok(owners) => owners,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(SpoolError::of_io("swept", error)),
        };
        for owner in owners.flatten() {
            let owner = OwnerFolder(owner.path());
            let Ok(lock) = owner.lock() else { continue };
            // What cannot be read now is looked at with the next sweep.
            let Ok(mut entries) = owner.entries() else { continue };
            let expired: Vec<_> = entries.kept.extract_if(.., |kept| !self.is_live(kept)).collect();
            for kept in &expired {
                // What cannot be taken away is tried again with the next sweep.
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
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.is_none_or(|swept| swept.elapsed() >= SWEEP_EVERY) {
            *swept = Some(Instant::now());
            drop(swept);
            // A sweep that fails is tried again, and what has expired is not found either way.
            let _ = self.sweep();
        }
    }

    fn owner(&self, owner: &Identity) -> OwnerFolder {
        let Identity { tenant, principal, conversation } = owner;
        let name = Digest::of_json(&json!([tenant, principal, **conversation]));
        OwnerFolder(self.root.join(name.to_string()))
    }

    fn is_live(&self, kept: &Kept) -> bool {
        !has_expired(kept.entry.made_ms, self.keep)
    }
}

impl SpoolStore for FileStore {
    fn create(&self, owner: &Identity) -> Result<Box<dyn SpoolWriter>, SpoolError> {
        self.sweep_now_and_then();
        let owner = self.owner(owner);
        let failed = |error| SpoolError::of_io("written", error);
        let draft = owner.draft();
        let file = owner.begin(&draft).map_err(failed)?;
        Ok(Box::new(FileWriter {
            store: self.clone(),
            owner,
            draft: Draft(draft),
            file,
            written: Written::new(),
        }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<Spooled, SpoolError> {
        self.sweep_now_and_then();
        let owner = self.owner(owner);
        let gone = |error| SpoolError::of_io("read", error);
        let found = owner.entry(id).map_err(gone)?.filter(|kept| self.is_live(kept));
        let Kept { entry, .. } = found.ok_or_else(|| SpoolError::Unknown { id: id.into() })?;
        let file = File::open(owner.content(&entry.digest)).map_err(gone)?;
        let length = file.metadata().map_err(gone)?.len();
        let lines = fs::read(owner.lines(&entry.digest)).map_err(gone)?;
        let lines = LineIndex::from_bytes(&lines)
            .filter(|lines| lines.bytes() == entry.bytes && length == entry.bytes)
            .ok_or_else(|| gone(io::ErrorKind::UnexpectedEof.into()))?;
        Ok(Spooled { entry, lines: Arc::new(lines), reader: Arc::new(FileReader { file, length }) })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<SpoolEntry>, SpoolError> {
        self.sweep_now_and_then();
        let kept = self.owner(owner).entries();
        let kept = kept.map_err(|error| SpoolError::of_io("listed", error))?;
        let live = kept.kept.into_iter().filter(|kept| self.is_live(kept));
        Ok(live.map(|kept| kept.entry).collect())
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), SpoolError> {
        let owner = self.owner(owner);
        let failed = |error| SpoolError::of_io("removed", error);
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

    fn forget(&self, owner: &Identity) -> Result<(), SpoolError> {
        let owner = self.owner(owner);
        if !owner.0.is_dir() {
            return Ok(());
        }
        // Another process may be putting something in place. Where none can be had, there is nothing.
        let _lock = owner.lock();
        match fs::remove_dir_all(owner.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SpoolError::of_io("removed", error))
            }
            _ => Ok(()),
        }
    }
}

/// The folder of one owner.
struct OwnerFolder(PathBuf);

impl OwnerFolder {
    /// Refuses what somebody has put in the folder's place: a link would lead out of the store.
    fn check(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.0) {
            Ok(there) if !there.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Begins a file that is written, in a folder that is made if it is missing. One that was empty may
    /// be taken away in between.
    fn begin(&self, draft: &Path) -> io::Result<File> {
        for _ in 1..MAKE_TIMES {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
            self.check()?;
            match create(draft) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                begun => return begun,
            }
        }
        create(draft)
    }

    /// Held until it is dropped. The system lets go of it when the process ends in whatever way.
    fn lock(&self) -> io::Result<File> {
        let path = self.0.join(LOCK);
        loop {
            self.check()?;
            let options = OpenOptions::new().create(true).append(true).mode(0o600).to_owned();
            let file = options.open(&path)?;
            file.lock()?;
            // One that was taken away with its folder, while this waited for it, guards nothing.
            let (held, there) = (file.metadata()?, fs::metadata(&path));
            if there.is_ok_and(|there| there.ino() == held.ino()) {
                return Ok(file);
            }
        }
    }

    /// Takes the folder away where nothing is in it. It is there again when somebody writes.
    fn remove_if_empty(&self, lock: File) {
        let Ok(files) = fs::read_dir(&self.0) else { return };
        let is_lock =
            |file: io::Result<fs::DirEntry>| file.is_ok_and(|file| file.file_name() == LOCK);
        if files.into_iter().all(is_lock) {
            let _ = fs::remove_file(self.0.join(LOCK));
            // It stays where somebody has begun to write meanwhile.
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

    fn draft(&self) -> PathBuf {
        self.0.join(format!("{DRAFT}{}", Uuid::new_v4()))
    }

    /// What an id stands for.
    fn entry(&self, id: &str) -> io::Result<Option<Kept>> {
        self.check()?;
        match fs::read(self.entry_file(id)) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All entries, in the order in which they were put there.
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
                // Taken away meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        entries.kept.sort_unstable_by(|a, b| a.order.cmp(&b.order));
        Ok(entries)
    }

    /// Takes an entry out. Under the lock.
    fn forget(&self, id: &str) -> io::Result<()> {
        match fs::remove_file(self.entry_file(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes a content away, if no entry stands for it. Under the lock; what stays all the same goes
    /// with a sweep.
    fn forget_content(&self, digest: &Digest) {
        let Ok(others) = self.entries() else { return };
        if others.are_all && !others.kept.iter().any(|other| other.entry.digest == *digest) {
            let _ = fs::remove_file(self.content(digest));
            let _ = fs::remove_file(self.lines(digest));
        }
    }

    /// Takes away what was left by processes that were killed: drafts, and contents that no entry
    /// stands for. Under the lock.
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

    /// Puts what was written in place: the content, where its lines are, and the entry last, because
    /// what it stands for is there from then on. Under the lock.
    fn put_kept(&self, draft: &Draft, lines: &LineIndex, kept: &Kept) -> io::Result<()> {
        fs::rename(&draft.0, self.content(&kept.entry.digest))?;
        self.put(&self.lines(&kept.entry.digest), &lines.to_bytes())?;
        self.put(&self.entry_file(&kept.entry.id), &serde_json::to_vec(kept)?)
    }

    /// Puts some bytes into a file, which is there in whole or not at all.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let draft = Draft(self.draft());
        create(&draft.0)?.write_all(bytes)?;
        fs::rename(&draft.0, path)
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A file that is being written; gone when dropped, unless it was renamed.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

struct FileWriter {
    store: FileStore,
    owner: OwnerFolder,
    draft: Draft,
    file: File,
    written: Written,
}

impl SpoolWriter for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        self.file.write_all(bytes).map_err(|error| SpoolError::of_io("written", error))?;
        self.written.push(bytes);
        Ok(())
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: SpoolNote,
        if_taken: IfTaken,
    ) -> Result<SpoolEntry, CommitError> {
        let failed = |error| SpoolError::of_io("kept", error);
        let _lock = self.owner.lock().map_err(failed)?;
        let before = self.owner.entry(id).map_err(failed)?;
        let is_taken = match &before {
            Some(kept) => self.store.is_live(kept),
            // One that cannot be read is somebody's all the same.
            None => self.owner.entry_file(id).exists(),
        };
        if if_taken == IfTaken::Fail && is_taken {
            return Err(CommitError::Taken { id: id.into(), writer: self });
        }
        let Self { owner, draft, written, .. } = *self;
        let (entry, lines) = written.finish(id, note);
        let kept = Kept { order: Uuid::now_v7().to_string(), entry };
        if let Err(error) = owner.put_kept(&draft, &lines, &kept) {
            // What is there of it would only take the room that is left.
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

impl SpoolReader for FileReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, SpoolError> {
        let mut count = 0;
        while offset < self.length
            && let Some(rest) = into.get_mut(count..).filter(|rest| !rest.is_empty())
        {
            match self.file.read_at(rest, offset + count as u64) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SpoolError::of_io("read", error)),
            }
        }
        Ok(count)
    }
}
