//! Making a database's file from its seed, and opening what is there for the first time.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    ffi::OsString,
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
    connection::GuardedConnection,
    error::{DatabaseError, short_message},
    guard::Access,
    lock::{failed, refuses_writing},
    private::{no_follow, tighten},
    replace::{self, APPLICATION_ID},
    seed,
    transaction::Settle,
};

/// What SQLite keeps beside a database's file.
pub(super) const OF_SQLITE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What is put behind a database's file name to name the files that may stand beside it while it is
/// made or used, and that no other file may therefore be called.
pub const SIDE_FILES: [&str; 8] =
    [".lock", ".new", "-wal", "-shm", "-journal", ".new-wal", ".new-shm", ".new-journal"];

/// Whether SQLite's files beside a database are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// As SQLite needs them, even to read.
    Kept,
    /// None is made and none is changed. What is written while the connection is open may not be
    /// seen, or in part, so it should not be open for long.
    Untouched,
}

/// `path` with something put behind its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Whether the database's file is there. A symbolic link is refused: SQLite would follow it out of
/// the folder that the host chose.
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

/// Makes the file. One that is there is kept under another name, which is returned. To be called
/// under the exclusive lock, so that there is one draft at most and what lies about is from a process
/// that was killed.
pub(crate) fn make(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<Option<PathBuf>, DatabaseError> {
    let draft = beside(&spec.file, ".new");
    remove(spec, &draft)?;
    let outcome = write(spec, &draft, cancel).and_then(|()| put_in_place(spec, &draft));
    if outcome.is_err() {
        // The first error is the one to report; whoever makes it next removes the draft too.
        let _ = remove(spec, &draft);
    }
    outcome
}

fn write(
    spec: &DatabaseSpec,
    draft: &Path,
    cancel: &CancellationToken,
) -> Result<(), DatabaseError> {
    // The system says why it cannot be made, SQLite only that it cannot be opened.
    // SQLite gives its side files the mode of this one.
    let options = OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
    options.open(draft).map_err(|source| failed(spec, "make", draft, source))?;
    let in_seed = |error: rusqlite::Error| seed::failed(spec, None, short_message(&error));
    let mut connection = Connection::open(draft).map_err(in_seed)?;
    // Nobody reads the draft before it is whole, so one sync at the end is enough.
    connection
        .execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;")
        .map_err(in_seed)?;
    seed::run(spec, &mut connection, cancel)?;
    // After the seed, which may set another one.
    connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(in_seed)?;
    // Readers then never wait for the writer, nor it for them.
    connection.execute_batch("PRAGMA journal_mode = WAL;").map_err(in_seed)?;
    connection.close().map_err(|(_, error)| in_seed(error))?;
    sync(draft).map_err(|source| failed(spec, "sync", draft, source))
}

fn put_in_place(spec: &DatabaseSpec, draft: &Path) -> Result<Option<PathBuf>, DatabaseError> {
    let kept = if exists(spec)? { Some(replace::keep(spec)?) } else { None };
    // A log without its database: the new one would take it for its own. If the process is killed
    // here, the file is missing and the next one makes it.
    remove(spec, &spec.file)?;
    fs::rename(draft, &spec.file).map_err(|source| failed(spec, "put in place", draft, source))?;
    if let Some(folder) = spec.file.parent() {
        sync(folder).map_err(|source| failed(spec, "sync", folder, source))?;
    }
    Ok(kept)
}

/// Removes a database's file and what SQLite keeps beside it, the file itself first.
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

/// Opens the file, which is there, to read, and reads from it; says how to open it again.
pub(crate) fn verify(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<(GuardedConnection, Beside), DatabaseError> {
    refuse_empty(spec)?;
    for suffix in [""].iter().chain(&OF_SQLITE) {
        tighten(&beside(&spec.file, suffix));
    }
    let outcome = match first_read(spec, cancel, Beside::Kept) {
        // SQLite cannot keep beside the file what it needs.
        Err(_) if is_sealed(&spec.file) => first_read(spec, cancel, Beside::Untouched)
            .map(|connection| (connection, Beside::Untouched)),
        outcome => outcome.map(|connection| (connection, Beside::Kept)),
    };
    outcome.map_err(|error| failed_to_read(spec, cancel, &error))
}

/// Whether the system lets this process make no file beside the database. To be called under the
/// shared lock, so that nobody's draft is in the way.
fn is_sealed(file: &Path) -> bool {
    let draft = beside(file, ".new");
    let options = OpenOptions::new().write(true).create(true).mode(0o600).clone();
    match no_follow(options).open(&draft) {
        Ok(_) => {
            // Left behind, it would be cleared by the next one who makes the database.
            let _ = fs::remove_file(&draft);
            false
        }
        Err(error) => refuses_writing(&error),
    }
}

/// Opens the file if it is there, else a memory with the seed in it; writes nothing.
pub(crate) fn inspect(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<GuardedConnection, DatabaseError> {
    if exists(spec)? {
        refuse_empty(spec)?;
        return first_read(spec, cancel, Beside::Untouched)
            .map_err(|error| failed_to_read(spec, cancel, &error));
    }
    preview(spec, cancel)
}

/// A database in memory with the seed in it, whether or not the file is there.
pub(crate) fn preview(
    spec: &DatabaseSpec,
    cancel: &CancellationToken,
) -> Result<GuardedConnection, DatabaseError> {
    let in_seed = |error: rusqlite::Error| seed::failed(spec, None, short_message(&error));
    let mut connection = Connection::open_in_memory().map_err(in_seed)?;
    seed::run(spec, &mut connection, cancel)?;
    GuardedConnection::guard(connection, Access::Read).map_err(in_seed)
}

/// Opens the file, which must be there.
pub(crate) fn open(
    file: &Path,
    access: Access,
    beside: Beside,
) -> rusqlite::Result<GuardedConnection> {
    match beside {
        Beside::Kept => GuardedConnection::open(file, access),
        Beside::Untouched => open_untouched(file, access),
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

/// `file:PATH?how`, with all but the plainest characters of the path escaped.
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
    beside: Beside,
) -> rusqlite::Result<GuardedConnection> {
    let mut connection = open(&spec.file, Access::Read, beside)?;
    connection.transaction(Access::Read, cancel, |_| Ok(Settle::RollBack(())))?;
    Ok(connection)
}

/// SQLite takes an empty file for an empty database; one that was made is never empty.
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
