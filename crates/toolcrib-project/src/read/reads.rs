//! The files that a load reads, each once: the checked bytes are the bytes that are used.

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use toolcrib_core::{Digest, DigestHasher};

use super::{
    open::open_file,
    owner::FileOwner,
    text_file::{FileError, MAX_SEED, MAX_TEXT, decoded},
};

/// The files read so far. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadFiles(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    /// Whether the load is over; then nothing is stored any more.
    closed: bool,
    by_path: BTreeMap<PathBuf, FileRecord>,
}

#[derive(Debug)]
struct FileRecord {
    digest: Digest,
    /// `None` for files with a digest only.
    owner: Option<(u32, u32)>,
    /// Kept for a second reader, unless it is large.
    text: Option<Arc<str>>,
    judged: Judged,
}

/// How the user's consent depends on a file. A file that is read in both ways is judged as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Judged {
    /// By the values that are taken from it; a text for a model is none.
    ByValues,
    /// By its bytes.
    #[default]
    AsAWhole,
}

impl ReadFiles {
    /// The text of a file by its resolved path, of at most `limit` bytes, without a byte order
    /// mark.
    pub(crate) fn text(
        &self,
        path: &Path,
        limit: u64,
        judged: Judged,
    ) -> Result<String, FileError> {
        let kept = self.with(|files| {
            let record = files.by_path.get_mut(path)?;
            record.judged = record.judged.max(judged);
            record.text.clone()
        });
        if let Some(text) = kept {
            return Ok(text.as_ref().to_owned());
        }
        let (bytes, owner) = read(path, limit)?;
        let digest = Digest::of(&bytes);
        let text = decoded(bytes)?;
        let kept = (limit <= MAX_TEXT).then(|| Arc::from(text.as_str()));
        self.note(path, FileRecord { digest, owner: Some(owner), text: kept, judged });
        Ok(text)
    }

    /// Records the bytes of a program by its resolved path. A too large one is recorded by its size
    /// and its time of change, an unreadable one by that time alone.
    pub(crate) fn program(&self, path: &Path) {
        // In pieces: a program may have many megabytes, and servers start with it.
        let mut hasher = DigestHasher::new();
        let (digest, owner) = match copy(path, MAX_SEED, &mut hasher) {
            Ok(owner) => (hasher.finish(), Some(owner)),
            Err(_) => {
                let stamp = path.metadata().map(|found| {
                    (found.len(), found.mtime(), found.mtime_nsec(), found.uid(), found.mode())
                });
                let stamp = stamp.ok();
                let owner = stamp.map(|(.., uid, mode)| (uid, mode));
                (Digest::of(format!("{stamp:?}")), owner)
            }
        };
        self.note(path, FileRecord { digest, owner, text: None, judged: Judged::AsAWhole });
    }

    /// Records the target of a symlink.
    pub(crate) fn link(&self, link: &Path, to: &Path) {
        let digest = Digest::of(to.as_os_str().as_encoded_bytes());
        self.note(link, FileRecord { digest, owner: None, text: None, judged: Judged::AsAWhole });
    }

    /// The digests of the files below a folder that are judged as a whole, by their path in it. A
    /// symlink has that of its target's path.
    pub(crate) fn digests_below(&self, folder: &Path) -> BTreeMap<PathBuf, Digest> {
        self.with(|files| {
            let whole = files.by_path.iter().filter(|(_, seen)| seen.judged == Judged::AsAWhole);
            let below = whole.filter_map(|(path, seen)| {
                Some((path.strip_prefix(folder).ok()?.to_owned(), seen.digest))
            });
            below.collect()
        })
    }

    /// The files that were read, each with its owner.
    pub(crate) fn owned(&self) -> Vec<FileOwner> {
        self.with(|files| {
            let owned = files.by_path.iter().filter_map(|(path, seen)| {
                let (uid, mode) = seen.owner?;
                Some(FileOwner { path: path.clone(), uid, mode, is_folder: false })
            });
            owned.collect()
        })
    }

    /// The files, programs and links that were read.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.with(|files| files.by_path.keys().cloned().collect())
    }

    /// Clears everything, and stores nothing from now on.
    pub(crate) fn close(&self) {
        self.with(|files| *files = Files { closed: true, by_path: BTreeMap::new() });
    }

    fn note(&self, path: &Path, mut seen: FileRecord) {
        self.with(|files| {
            if !files.closed {
                let before = files.by_path.get(path).map(|before| before.judged);
                seen.judged = seen.judged.max(before.unwrap_or(seen.judged));
                files.by_path.insert(path.to_owned(), seen);
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Files) -> T) -> T {
        work(&mut self.0.lock())
    }
}

/// The bytes of a regular file by its resolved path, with the owner and the mode of the opened
/// file.
fn read(path: &Path, limit: u64) -> Result<(Vec<u8>, (u32, u32)), FileError> {
    let mut bytes = Vec::new();
    let owner = copy(path, limit, &mut bytes)?;
    Ok((bytes, owner))
}

/// The same into a writer.
fn copy(path: &Path, limit: u64, to: &mut impl io::Write) -> Result<(u32, u32), FileError> {
    let file = open_file(path)?;
    let found = file.metadata().map_err(FileError::Unreadable)?;
    if io::copy(&mut file.take(limit + 1), to).map_err(FileError::Unreadable)? > limit {
        return Err(FileError::TooLarge { limit });
    }
    Ok((found.uid(), found.mode()))
}
