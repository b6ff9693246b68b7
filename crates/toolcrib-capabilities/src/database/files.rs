//! The files of a database: their names, who may read them, and errors of them.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    ffi::OsString,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{DatabaseSpec, error::DatabaseError};

/// The side files of SQLite.
pub(super) const OF_SQLITE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The suffixes of the side files of a database, which exist while it is created or used. No other
/// file may have such a name.
pub const SIDE_FILES: [&str; 8] =
    [".lock", ".new", "-wal", "-shm", "-journal", ".new-wal", ".new-shm", ".new-journal"];

/// `path` with a suffix to its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Whether the database's file exists. A symlink is refused: SQLite would follow it out of the
/// folder that the host chose.
pub(crate) fn exists(spec: &DatabaseSpec) -> Result<bool, DatabaseError> {
    match fs::symlink_metadata(&spec.file) {
        Ok(found) if found.is_symlink() => {
            let link = io::Error::other("it is a symbolic link; remove the link");
            Err(failed(spec, "use", &spec.file, link))
        }
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(spec, "look for", &spec.file, error)),
    }
}

/// Removes the access rights of other users from a file that an earlier version created with them.
/// Ignored for a file of another owner and on a disk without modes.
pub(crate) fn tighten(path: &Path) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    let mode = found.permissions().mode();
    if found.is_file() && mode & 0o077 != 0 {
        let _ = fs::set_permissions(path, Permissions::from_mode(mode & 0o700));
    }
}

/// Whether writing to this place is impossible.
pub(crate) fn refuses_writing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

pub(crate) fn failed(
    spec: &DatabaseSpec,
    action: &'static str,
    path: &Path,
    source: io::Error,
) -> DatabaseError {
    DatabaseError::File { name: Arc::clone(&spec.name), action, path: path.to_owned(), source }
}
