//! Files of the host: opened without following a symlink, replaced as a whole, and compared by their
//! stamps.

#![allow(clippy::disallowed_methods, reason = "the host names these files, not a tool's body")]

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

/// Options that fail on a symlink, and do not wait for the other end of a pipe.
pub fn no_follow() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// A new content of a file, synced under a temporary name in the same folder. `persist` gives it the
/// file's name; without that it is removed on drop.
///
/// # Errors
/// The system's.
pub fn draft(path: &Path, mode: u32, content: impl AsRef<[u8]>) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(path);
    // Not `tempfile_in`, whose errors name the temporary file.
    let draft = tempfile::Builder::new().prefix(".draft-").make_in(folder, |draft| {
        OpenOptions::new().write(true).create_new(true).mode(mode).open(draft)
    })?;
    let mut file: &File = draft.as_file();
    file.write_all(content.as_ref())?;
    file.sync_all()?;
    Ok(draft)
}

/// Replaces a file as a whole by one with these permissions. Its folder exists.
///
/// # Errors
/// The system's; then the old file is unchanged.
pub fn replace(path: &Path, mode: u32, content: impl AsRef<[u8]>) -> io::Result<()> {
    draft(path, mode, content)?.persist(path)?;
    Ok(())
}

/// Creates a file as a whole, for the user alone. An existing one stays, such as that of another
/// process.
///
/// # Errors
/// The system's.
pub fn create_private(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    match draft(path, 0o600, content)?.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => Ok(()),
    }
}

/// Whether a folder belongs to the user, and no other user can change it.
pub fn is_private_folder(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && is_of_user(&found))
}

/// Whether a file belongs to the user, and no other user can change it.
pub fn is_of_user(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// The state of a file, without its content. It differs after each change: a file put in place by
/// renaming is another file, whatever its time of modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of a file as it was found.
    pub fn of(found: &Metadata) -> Self {
        Self {
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}
