//! Replacing a database: only one that was made here, and its file is kept.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{Connection, OpenFlags};

use super::{
    DatabaseSpec,
    error::DatabaseError,
    lock::failed,
    make::{OF_SQLITE, beside},
    private::tighten,
};

/// SQLite's application id of each database that is made here: `Tlcb`. A database of somebody else,
/// put where ours lies, is never replaced.
pub(crate) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"Tlcb");

/// What a database file begins with, and where its application id is.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const ID_AT: usize = 68;

/// Refuses a file that was not made here. To be called under the exclusive lock.
pub(crate) fn check_is_ours(spec: &DatabaseSpec) -> Result<(), DatabaseError> {
    match is_ours(&spec.file) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(DatabaseError::NotOurs { name: Arc::clone(&spec.name), file: spec.file.clone() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(spec, "read", &spec.file, error)),
    }
}

/// By the header alone, so that a database of ours that is damaged can be replaced too.
fn is_ours(file: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(file)?.is_file() {
        return Ok(false);
    }
    let mut header = Vec::new();
    File::open(file)?.take(100).read_to_end(&mut header)?;
    let id = header.get(ID_AT..ID_AT + 4);
    Ok(header.starts_with(MAGIC) && id == Some(&APPLICATION_ID.to_be_bytes()))
}

/// Gives the database's file the first free name `FILE.old-N`. To be called under the exclusive lock.
pub(crate) fn keep(spec: &DatabaseSpec) -> Result<PathBuf, DatabaseError> {
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    let mut names = (1_u64..).map(|n| beside(&spec.file, &format!(".old-{n}")));
    let Some(old) = names.find(is_free) else {
        return Err(failed(spec, "keep", &spec.file, io::ErrorKind::AlreadyExists.into()));
    };
    // Where it fails, the log is kept too.
    let _ = fold_log_in(&spec.file);
    // The log goes first: if the process is killed in between, no new database finds an old log.
    for suffix in OF_SQLITE.iter().chain(&[""]) {
        let (from, to) = (beside(&spec.file, suffix), beside(&old, suffix));
        match fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(spec, "keep", &from, error));
            }
            _ => tighten(&to),
        }
    }
    Ok(old)
}

/// Writes what is in the log into the database, and removes the log.
fn fold_log_in(file: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
}
