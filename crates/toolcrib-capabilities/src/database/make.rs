//! Creates a database's file from its seed, and opens an existing one for the first time.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{Connection, OpenFlags};
use tokio_util::sync::CancellationToken;

use super::{
    DatabaseSpec,
    connection::{GuardedConnection, TransactionEnd},
    error::{DatabaseError, short_message},
    files::{OF_SQLITE, beside, exists, failed, refuses_writing, tighten},
    guard::Access,
    replace::{self, APPLICATION_ID, ExclusiveConnection},
    seed,
};
use crate::host_file::no_follow;

/// Whether SQLite's side files are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideFiles {
    /// As SQLite needs them, even to read.
    Kept,
    /// None is created and none is changed. Concurrent writes may not be seen, or only in part, so
    /// it should not be open for long.
    Untouched,
    /// None can be created. A file without them is copied into memory as a whole.
    Copied,
}

/// Creates the file. An existing one is kept under another name, which is returned. Requires the
/// exclusive lock, so that there is at most one draft and existing files are from a killed process.
pub(crate) fn make(
    spec: &DatabaseSpec,
    exclusive: Option<&ExclusiveConnection>,
    cancel: &CancellationToken,
) -> Result<Option<PathBuf>, DatabaseError> {
    let draft = beside(&spec.file, ".new");
    remove(spec, &draft)?;
    let outcome = write(spec, &draft, cancel).and_then(|()| put_in_place(spec, exclusive, &draft));
    if outcome.is_err() {
        // The first error is reported; the next creation removes the draft too.
        let _ = remove(spec, &draft);
    }
    outcome
}

fn write(
    spec: &DatabaseSpec,
    draft: &Path,
    cancel: &CancellationToken,
) -> Result<(), DatabaseError> {
    // The system reports why it cannot be created, SQLite only that it cannot be opened. SQLite
    // gives its side files the mode of this one.
    let options = OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
    options.open(draft).map_err(|source| failed(spec, "make", draft, source))?;
    let in_seed = |error: rusqlite::Error| seed::failed(spec, None, short_message(&error));
    let mut connection = Connection::open(draft).map_err(in_seed)?;
    // The draft has no readers until it is complete, so one sync at the end is sufficient.
    connection
        .execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;")
        .map_err(in_seed)?;
    seed::run(spec, &mut connection, cancel)?;
    // After the seed, which may set another one.
    connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(in_seed)?;
    // In this mode, readers and the writer never block each other.
    connection.execute_batch("PRAGMA journal_mode = WAL;").map_err(in_seed)?;
    connection.close().map_err(|(_, error)| in_seed(error))?;
    sync(draft).map_err(|source| failed(spec, "sync", draft, source))
}

fn put_in_place(
    spec: &DatabaseSpec,
    exclusive: Option<&ExclusiveConnection>,
    draft: &Path,
) -> Result<Option<PathBuf>, DatabaseError> {
    let kept = if exists(spec)? { Some(replace::keep(spec, exclusive)?) } else { None };
    // A log without its database: the new database would use it. If the process is killed here, the
    // file is missing and the next process creates it.
    remove(spec, &spec.file)?;
    fs::rename(draft, &spec.file).map_err(|source| failed(spec, "put in place", draft, source))?;
    if let Some(folder) = spec.file.parent() {
        sync(folder).map_err(|source| failed(spec, "sync", folder, source))?;
    }
    Ok(kept)
}

/// Removes a database's file and SQLite's side files, the file itself first.
fn remove(spec: &DatabaseSpec, file: &Path) -> Result<(), DatabaseError> {
    let sides = OF_SQLITE.iter().map(|suffix| beside(file, suffix));
    for path in std::iter::once(file.to_owned()).chain(sides) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(spec, "remove", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Opens the existing file to read, and reads from it; returns how to open it again.
pub(crate) fn verify(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<(GuardedConnection, SideFiles), DatabaseError> {
    refuse_empty(spec)?;
    for suffix in [""].iter().chain(&OF_SQLITE) {
        tighten(&beside(&spec.file, suffix));
    }
    let outcome = match first_read(spec, cancel, SideFiles::Kept) {
        // SQLite cannot create its side files.
        Err(_) if is_sealed(&spec.file) => first_read(spec, cancel, SideFiles::Untouched)
            .map(|connection| (connection, SideFiles::Untouched)),
        outcome => outcome.map(|connection| (connection, SideFiles::Kept)),
    };
    outcome.map_err(|error| failed_to_read(spec, cancel, &error))
}

/// Whether this process cannot create files next to the database. Requires the shared lock, so that
/// no other process has a draft.
fn is_sealed(file: &Path) -> bool {
    let draft = beside(file, ".new");
    match no_follow().write(true).create(true).mode(0o600).open(&draft) {
        Ok(_) => {
            // If it remains, the next creation of the database removes it.
            let _ = fs::remove_file(&draft);
            false
        }
        Err(error) => refuses_writing(&error),
    }
}

/// Opens the file if it exists, else a database in memory with the seed; writes nothing.
pub(crate) fn inspect(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<GuardedConnection, DatabaseError> {
    if exists(spec)? {
        refuse_empty(spec)?;
        return first_read(spec, cancel, SideFiles::Untouched)
            .map_err(|error| failed_to_read(spec, cancel, &error));
    }
    preview(spec, cancel)
}

/// A database in memory with the seed, whether or not the file exists.
pub(crate) fn preview(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<GuardedConnection, DatabaseError> {
    let in_seed = |error: rusqlite::Error| seed::failed(spec, None, short_message(&error));
    let mut connection = Connection::open_in_memory().map_err(in_seed)?;
    seed::run(spec, &mut connection, cancel)?;
    GuardedConnection::guard(connection, Access::Read).map_err(in_seed)
}

/// Opens the file, which must exist.
pub(crate) fn open(
    file: &Path,
    access: Access,
    beside: SideFiles,
) -> rusqlite::Result<GuardedConnection> {
    match beside {
        SideFiles::Kept => GuardedConnection::open(file, access),
        SideFiles::Untouched => open_untouched(file, access),
        SideFiles::Copied => super::file::open_copied(file, access),
    }
}

fn open_untouched(file: &Path, access: Access) -> rusqlite::Result<GuardedConnection> {
    let log = fs::metadata(beside(file, "-wal")).map_or(0, |log| log.len());
    // With a log, pages of the file may be out of date, so the log must be read too.
    let how = if log == 0 { "immutable=1" } else { "readonly_shm=1" };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    GuardedConnection::guard(Connection::open_with_flags(uri(file, how), flags)?, access)
}

/// `file:PATH?how`, with special characters of the path escaped.
fn uri(file: &Path, how: &str) -> String {
    let mut uri = String::from("file:");
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push('?');
    uri.push_str(how);
    uri
}

fn first_read(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
    beside: SideFiles,
) -> rusqlite::Result<GuardedConnection> {
    let mut connection = open(&spec.file, Access::Read, beside)?;
    connection.transaction(Access::Read, cancel, |_| Ok(TransactionEnd::RollBack(())))?;
    Ok(connection)
}

/// SQLite accepts an empty file as an empty database; a created one is never empty.
fn refuse_empty(spec: &DatabaseSpec) -> Result<(), DatabaseError> {
    if fs::metadata(&spec.file).is_ok_and(|file| file.len() == 0) {
        return Err(unreadable(spec, "it is empty".into()));
    }
    Ok(())
}

fn failed_to_read(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
    error: &rusqlite::Error,
) -> DatabaseError {
    if cancel.is_cancelled() {
        return DatabaseError::Cancelled { name: Arc::clone(&spec.name) };
    }
    unreadable(spec, short_message(error))
}

fn unreadable(spec: &DatabaseSpec, problem: String) -> DatabaseError {
    DatabaseError::Unreadable { name: Arc::clone(&spec.name), file: spec.file.clone(), problem }
}
