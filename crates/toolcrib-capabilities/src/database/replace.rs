//! Replaces a database: only one that was created here, and its old file is kept.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{
    DatabaseSpec,
    error::DatabaseError,
    files::{OF_SQLITE, beside, failed, tighten},
};

/// SQLite's application id of each database that is created here: `Tlcb`. A foreign database in the
/// same place is never replaced.
pub(crate) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"Tlcb");

/// The magic bytes of a database file, and the offset of its application id.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const ID_AT: usize = 68;

/// Refuses a file that was not created here. Requires the exclusive lock.
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

/// Checks only the header, so that our own damaged database can be replaced too.
fn is_ours(file: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(file)?.is_file() {
        return Ok(false);
    }
    let mut header = Vec::new();
    File::open(file)?.take(100).read_to_end(&mut header)?;
    let id = header.get(ID_AT..ID_AT + 4);
    Ok(header.starts_with(MAGIC) && id == Some(&APPLICATION_ID.to_be_bytes()))
}

/// A connection that shares the file with no other program. It is open until the file is kept.
pub(crate) struct ExclusiveConnection(Connection);

impl ExclusiveConnection {
    /// Takes the file for this process alone, at once or not at all; `None` without a file, or for
    /// one that SQLite cannot read. Requires the exclusive lock.
    ///
    /// Nothing else in this process may open the file from then on: closing it would release the
    /// lock.
    pub(crate) fn take(spec: &DatabaseSpec) -> Result<Option<Self>, DatabaseError> {
        match Self::open(&spec.file) {
            Ok(exclusive) => Ok(Some(exclusive)),
            Err(error) if is_busy(&error) => Err(DatabaseError::HeldByOther {
                name: Arc::clone(&spec.name),
                file: spec.file.clone(),
            }),
            Err(_) => Ok(None),
        }
    }

    fn open(file: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(Duration::ZERO)?;
        // With a log, this denies the file to other connections, also to idle ones.
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;")?;
        Ok(Self(connection))
    }

    /// Writes the content of the log into the database, and removes the log.
    fn fold_log_in(&self) -> rusqlite::Result<()> {
        self.0.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Renames the database's file to the first free name `FILE.old-N`. Requires the exclusive lock.
pub(crate) fn keep(
    spec: &DatabaseSpec,
    exclusive: Option<&ExclusiveConnection>,
) -> Result<PathBuf, DatabaseError> {
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    let mut names = (1_u64..).map(|n| beside(&spec.file, &format!(".old-{n}")));
    let Some(old) = names.find(is_free) else {
        return Err(failed(spec, "keep", &spec.file, io::ErrorKind::AlreadyExists.into()));
    };
    // If it fails, the log is kept too.
    let _ = exclusive.map(ExclusiveConnection::fold_log_in);
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
