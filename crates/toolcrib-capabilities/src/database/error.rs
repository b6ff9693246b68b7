use std::{io, path::PathBuf, sync::Arc};

/// An error of a declared database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// It was to be recreated, or its file is gone, while another process has it open.
    #[error(
        "database `{name}` is in use by another Toolcrib process; end that process before {file} \
         is recreated"
    )]
    InUse {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
    },
    /// It was to be recreated, and another program than Toolcrib has its file open.
    #[error(
        "{file} of database `{name}` is open in another program; close it there before the \
         database is recreated"
    )]
    HeldByOther {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
    },
    /// It was to be recreated, and its file was not created by this program: it is not replaced.
    #[error(
        "{file} of database `{name}` was not created by Toolcrib, or by a version that did not \
         mark its databases: it is not replaced; move it away, and a new one is created from \
         the seed"
    )]
    NotOurs {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
    },
    /// Its file exists and SQLite cannot read it. It is never overwritten.
    #[error(
        "{file} of database `{name}` cannot be read as a database: {problem}; move it away, and a \
         new one is created from the seed"
    )]
    Unreadable {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The file of a database that was not created by Toolcrib cannot be used.
    #[error("{file} of database `{name}` {problem}; {help}")]
    CannotOpen {
        /// The database.
        name: Arc<str>,
        /// Its file.
        file: PathBuf,
        /// The problem; ends a sentence about the file.
        problem: String,
        /// The next step.
        help: &'static str,
    },
    /// The seed script fails. No partial database remains.
    #[error(
        "the seed of database `{name}` fails at {seed}{}: {problem}",
        line.map(|line| format!(":{line}")).unwrap_or_default()
    )]
    Seed {
        /// The database.
        name: Arc<str>,
        /// The seed's name from the host.
        seed: Arc<str>,
        /// The line of the failed statement, from 1, if known.
        line: Option<usize>,
        /// SQLite's message.
        problem: String,
    },
    /// A file could not be created, locked, moved or removed.
    #[error("database `{name}`: could not {action} {path}: {source}")]
    File {
        /// The database.
        name: Arc<str>,
        /// The failed action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Cancelled before it was finished. Nothing was changed.
    #[error("cancelled while working on database `{name}`")]
    Cancelled {
        /// The database.
        name: Arc<str>,
    },
    /// It was opened by [`Database::inspect`](super::Database::inspect), which runs no statements.
    #[error("database `{name}` was opened only to inspect its schema; open it to run statements")]
    InspectOnly {
        /// The database.
        name: Arc<str>,
    },
    /// A text, a blob or a row is larger than the limit of the handle,
    /// [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES) unless it is for exploring. The transaction was
    /// rolled back.
    #[error(
        "database `{name}`: a text, a blob or a row has more than {} MiB, the limit of a \
         statement; ask for less at a time, or pass less",
        limit / 1024 / 1024
    )]
    TooLarge {
        /// The database.
        name: Arc<str>,
        /// The limit, in bytes.
        limit: usize,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A database server cannot be used.
    #[error("database `{name}`: {problem}; {help}")]
    Server {
        /// The database.
        name: Arc<str>,
        /// The problem. It does not contain the password.
        problem: String,
        /// The next step.
        help: String,
    },
    /// A statement in a server reached a limit. The transaction was rolled back.
    #[error("database `{name}`: {problem}")]
    Limit {
        /// The database.
        name: Arc<str>,
        /// The problem, and the next step.
        problem: String,
    },
    /// The connection broke while a transaction was committed: it may have been.
    #[error("database `{name}`: the connection broke while the transaction was committed")]
    OutcomeUnknown {
        /// The database.
        name: Arc<str>,
    },
    /// A statement failed in PostgreSQL. The transaction was rolled back.
    #[error("database `{name}`: {message}")]
    Postgres {
        /// The database.
        name: Arc<str>,
        /// The server's message.
        message: String,
        /// The server's code, SQLSTATE.
        code: Arc<str>,
    },
    /// A statement was refused. The transaction was rolled back.
    #[error("database `{name}`: {source}")]
    Refused {
        /// The database.
        name: Arc<str>,
        /// The reason.
        source: StatementError,
    },
    /// A statement, or SQLite itself, failed. The transaction was rolled back.
    #[error("database `{name}`: {}", short_message(error))]
    Sql {
        /// The database.
        name: Arc<str>,
        /// SQLite's error. It is not a cause, whose text would repeat this one's.
        error: rusqlite::Error,
    },
}

/// Why a statement cannot be run through a [`DatabaseHandle`](super::DatabaseHandle).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// The text contains only whitespace and comments.
    #[error("the statement is empty")]
    Empty,
    /// More than one statement in one text; SQLite would only run the first.
    #[error("the text contains more than one statement; pass each separately")]
    Several,
    /// It writes, and the handle is read-only.
    #[error("the statement writes, and the handle is read-only")]
    Writes,
    /// It has parameters, and nothing gives them values.
    #[error(
        "the statement has a parameter without a value: `{}`; write the value itself",
        .0.join("`, `")
    )]
    Unbound(Vec<String>),
    /// No handle permits this statement.
    #[error("{0}")]
    Refused(String),
    /// The database rejects it.
    #[error("{message}")]
    Sql {
        /// The database's message, with the nearest name if it does not know a table or a column.
        message: String,
        /// The byte offset of the error, from 0, if the database reports it.
        offset: Option<usize>,
    },
    /// The database itself failed.
    #[error(transparent)]
    Database(Box<DatabaseError>),
}

impl From<DatabaseError> for StatementError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(Box::new(error))
    }
}

/// SQLite's message, without the statement's text that rusqlite adds.
pub(crate) fn short_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
