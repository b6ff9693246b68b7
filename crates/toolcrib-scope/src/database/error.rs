use std::{io, path::PathBuf, sync::Arc};

use super::connection::MAX_VALUE_BYTES;

/// What can go wrong with a declared database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// It was to be made anew, or its file is gone, and somebody holds it open.
    #[error(
        "database `{name}` is in use by another Toolcrib process; end that one before {file} is made anew"
    )]
    InUse {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
    },
    /// It was to be made anew, and its file was not made by this program: it is not replaced.
    #[error(
        "{file} of database `{name}` was not made by Toolcrib, or by a version that did not mark its \
         databases: it is not replaced; move it away, and a new one is made from the seed"
    )]
    NotOurs {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
    },
    /// Its file is there and SQLite cannot read it. It is never overwritten.
    #[error(
        "{file} of database `{name}` cannot be read as a database: {problem}; \
         move it away, and a new one is made from the seed"
    )]
    Unreadable {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The seed script fails. Nothing was left behind.
    #[error(
        "the seed of database `{name}` fails at {seed}{}: {problem}",
        line.map(|line| format!(":{line}")).unwrap_or_default()
    )]
    Seed {
        /// The database.
        name: Arc<str>,
        /// The seed's name, as the host gave it.
        seed: Arc<str>,
        /// The line of the statement that fails, from 1, where it could be found.
        line: Option<usize>,
        /// What SQLite says.
        problem: String,
    },
    /// A file could not be made, locked, moved or removed.
    #[error("database `{name}`: could not {action} {path}: {source}")]
    File {
        /// The database.
        name: Arc<str>,
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Cancelled before it was done. Nothing was changed.
    #[error("cancelled while working on database `{name}`")]
    Cancelled {
        /// The database.
        name: Arc<str>,
    },
    /// It was opened by [`Database::inspect`](super::Database::inspect), so nothing runs on it.
    #[error("database `{name}` was opened to look at its schema only; open it to run statements")]
    InspectOnly {
        /// The database.
        name: Arc<str>,
    },
    /// A text, a blob or a row is larger than [`MAX_VALUE_BYTES`]. What the transaction had done was
    /// undone.
    #[error(
        "database `{name}`: a text, a blob or a row has more than {} MiB, which is the most that a \
         statement may pass, build or read; ask for less at a time, or pass less",
        MAX_VALUE_BYTES / 1024 / 1024
    )]
    TooLarge {
        /// The database.
        name: Arc<str>,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// A statement, or SQLite itself, failed. What the transaction had done was undone.
    #[error("database `{name}`: {}", short_message(source))]
    Sql {
        /// The database.
        name: Arc<str>,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

/// Why a statement cannot be run through a [`DatabaseHandle`](super::DatabaseHandle).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// There is nothing in it but space and comments.
    #[error("the statement is empty")]
    Empty,
    /// More than one statement in one text; SQLite would only run the first.
    #[error("the text holds more than one statement; give each a text of its own")]
    Several,
    /// It writes, and the handle only reads.
    #[error("the statement writes, and the handle only reads")]
    Writes,
    /// It does what no statement on any handle may do.
    #[error("{0}")]
    Refused(String),
    /// SQLite does not take it.
    #[error("{message}")]
    Sql {
        /// What SQLite says.
        message: String,
        /// The byte in the text where it is wrong, from 0, where SQLite says so.
        offset: Option<usize>,
    },
    /// The database itself failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// SQLite's own words, without the statement's text that rusqlite adds.
pub(crate) fn short_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
