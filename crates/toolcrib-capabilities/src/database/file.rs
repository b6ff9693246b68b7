//! Opens the existing file of another program.
//!
//! Nothing here opens the file but SQLite: closing another descriptor of it would release the locks
//! of all connections of this process. The exception is a copy of a file that no connection has open.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use rusqlite::{Connection, ErrorCode, MAIN_DB, ffi};
use rustix::fs::{Access as Right, access};

use super::{
    FileSpec,
    connection::GuardedConnection,
    error::{DatabaseError, short_message},
    files::beside,
    guard::Access,
    make::SideFiles,
};
use crate::host_file::FileStamp;

/// The size limit of a database that is copied into memory for each transaction: 256 MiB, some tenths
/// of a second.
const MOST_COPIED: u64 = 256 * 1024 * 1024;

/// The number of copies until one is made while the file does not change.
const COPY_TRIES: u32 = 3;

/// The bytes of the header that say whether a database is in WAL mode, and their value if not.
const MODE_AT: [usize; 2] = [18, 19];
const NOT_WAL: u8 = 1;

/// Opens the file for the first time, and reads its schema; returns how to open it again.
pub(crate) fn open(spec: &FileSpec) -> Result<(GuardedConnection, SideFiles), DatabaseError> {
    check(spec)?;
    let first_read = |how| -> rusqlite::Result<_> {
        let connection = super::make::open(&spec.file, Access::Read, how)?;
        connection.read_schema()?;
        Ok((connection, how))
    };
    first_read(SideFiles::Kept)
        .or_else(|error| {
            // Only a database in WAL mode without side files needs to create any, to be read.
            let code = error.sqlite_error_code();
            let is_sealed = matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
                && !has_side_files(&spec.file)
                && !is_writable_folder(&spec.file);
            if is_sealed { first_read(SideFiles::Copied) } else { Err(error) }
        })
        .map_err(|error| explained(spec, &error))
}

/// The errors that SQLite reports without a reason, or not at all.
fn check(spec: &FileSpec) -> Result<(), DatabaseError> {
    let found = fs::metadata(&spec.file);
    let (problem, help) = match &found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => (
            "does not exist".to_owned(),
            "correct `file`; to create a new database, declare a `seed`",
        ),
        Err(error) => (format!("cannot be found: {error}"), "permit this user to reach it"),
        Ok(found) if !found.is_file() => {
            ("is not a file".to_owned(), "name the file of an SQLite database")
        }
        Ok(found) if found.len() == 0 => {
            ("is empty".to_owned(), "name the file of an SQLite database")
        }
        Ok(_) if access(&spec.file, Right::READ_OK).is_err() => {
            ("may not be read by this user".to_owned(), "permit this user to read it")
        }
        Ok(_) if spec.writable && access(&spec.file, Right::WRITE_OK).is_err() => (
            "may not be written by this user".to_owned(),
            "permit this user to write it, or remove `writable = true`",
        ),
        Ok(_) if spec.writable && !is_writable_folder(&spec.file) => (
            "is in a folder that this user may not write, and SQLite needs a journal there"
                .to_owned(),
            "permit this user to write in the folder, or remove `writable = true`",
        ),
        Ok(_) => return Ok(()),
    };
    Err(cannot_open(spec, problem, help))
}

fn explained(spec: &FileSpec, error: &rusqlite::Error) -> DatabaseError {
    let has_journal = beside(&spec.file, "-journal").exists();
    let (problem, help) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => (
            "is not an SQLite database, or it is encrypted".to_owned(),
            "name the file of an SQLite 3 database without encryption",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            "is locked by another program".to_owned(),
            "end its transaction, or switch it to WAL mode, in which readers do not wait",
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) if has_journal => (
            "has a journal of an interrupted write, which only a writer can roll back".to_owned(),
            "open it once with the program that writes it",
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => (
            format!("cannot be opened: {}", short_message(error)),
            "permit this user to write in its folder, where SQLite keeps the files -wal and -shm",
        ),
        _ => (
            format!("cannot be read: {}", short_message(error)),
            "check it with the program that writes it",
        ),
    };
    cannot_open(spec, problem, help)
}

fn cannot_open(spec: &FileSpec, problem: String, help: &'static str) -> DatabaseError {
    let (name, file) = (Arc::clone(&spec.name), spec.file.clone());
    DatabaseError::CannotOpen { name, file, problem, help }
}

fn is_writable_folder(file: &Path) -> bool {
    file.parent().is_some_and(|folder| access(folder, Right::WRITE_OK).is_ok())
}

fn has_side_files(file: &Path) -> bool {
    ["-wal", "-shm"].iter().any(|suffix| beside(file, suffix).exists())
}

/// Opens a copy in memory; the file itself if a writer has created the side files meanwhile.
pub(crate) fn open_copied(file: &Path, access: Access) -> rusqlite::Result<GuardedConnection> {
    for _ in 0..COPY_TRIES {
        if has_side_files(file) {
            return GuardedConnection::open(file, access);
        }
        let stamp = || fs::metadata(file).map(|found| FileStamp::of(&found));
        let before = stamp().map_err(|error| unreadable(&error))?;
        let copy = copy(file).map_err(|error| unreadable(&error))?;
        if !has_side_files(file) && stamp().is_ok_and(|after| after == before) {
            let mut connection = Connection::open_in_memory()?;
            connection.deserialize_read_exact(MAIN_DB, copy.as_slice(), copy.len(), true)?;
            return GuardedConnection::guard(connection, access);
        }
    }
    Err(unreadable(&io::Error::other("it changes while it is copied")))
}

/// The bytes of a database without a log, marked as one that needs none.
fn copy(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST_COPIED + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_COPIED {
        return Err(io::Error::other(format!(
            "its folder cannot be written, and it is larger than {} MiB, the limit of a copy",
            MOST_COPIED / 1024 / 1024
        )));
    }
    for at in MODE_AT {
        if let Some(mode) = bytes.get_mut(at) {
            *mode = NOT_WAL;
        }
    }
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> rusqlite::Error {
    let code = ffi::Error::new(ffi::SQLITE_IOERR_READ);
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}
