//! The files that a conversation has read, for the refusal of stale writes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;

use crate::{internal::lru_cache::LruCache, json::digest::Digest};

/// The limit of remembered files of one conversation. The least recently used one is evicted; a
/// write over it is then refused until it is read again. An engine that remembers a
/// thousand conversations stays below 200 MB, with usual paths.
const MOST_FILES: usize = 512;

/// One read of a file: the content that a model knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The digest of the whole content, also if only a part of it was returned.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change, where the file system has one. For people: a change is detected
    /// by the digest.
    pub modified: Option<SystemTime>,
    /// The turn of the read.
    pub turn_id: Arc<str>,
    /// The iteration of the read, from 1.
    pub iteration: u32,
}

/// The files that the calls of one conversation have read or written, by their resolved paths.
///
/// Code that reads a file for a model records its content here. Code that writes compares first: a
/// file that changed since, or was never read, is refused with
/// [`StaleWrite`](crate::ErrorCode::StaleWrite). The handles of the files capability do both.
#[derive(Debug)]
pub struct FileReads(Mutex<LruCache<PathBuf, FileRead>>);

impl Default for FileReads {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MOST_FILES)))
    }
}

impl FileReads {
    /// The last recorded content of a file, if any.
    pub fn get(&self, path: &Path) -> Option<FileRead> {
        self.0.lock().get(path).cloned()
    }

    /// Records the content of a file.
    pub fn record(&self, path: PathBuf, read: FileRead) {
        self.0.lock().insert(path, read);
    }

    /// Removes a file that no longer exists.
    pub fn forget(&self, path: &Path) {
        self.0.lock().remove(path);
    }
}
