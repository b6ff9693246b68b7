//! One connection: its transactions, and what is said of statements on it.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, Statement, config::DbConfig, ffi, hooks::AuthContext,
    limits::Limit,
};
use tokio_util::sync::CancellationToken;

use super::{
    error::{StatementError, short_message},
    guard::{Access, Guard, Speaker, locked},
    transaction::Settle,
};

/// How many bytes a text, a blob or a row may have in a statement on a handle: 4 MiB. SQLite's own
/// limit is a thousand million, which one careless expression would take of the memory. Seeds are
/// not bound by it, but statements cannot read what is larger.
pub const MAX_VALUE_BYTES: usize = MAX_VALUE as usize;

/// The same, as SQLite takes it.
const MAX_VALUE: i32 = 4 * 1024 * 1024;

/// Instructions of SQLite's virtual machine between two looks at the cancellation: some tens of
/// microseconds.
const OPS_BETWEEN_LOOKS: i32 = 1000;
/// How long to wait before trying again what another connection keeps from happening.
const BUSY_STEP: Duration = Duration::from_millis(5);
/// How often [`GuardedConnection::describe`] tries again, since nothing can cancel it: 5 seconds.
const DESCRIBE_TRIES: u32 = 1000;

/// What a statement takes and gives, as SQLite prepared it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatementDescription {
    /// Its parameters as written, such as `:order_id`, each once, in the order of their numbers;
    /// one without a name is `?`.
    pub parameters: Vec<String>,
    /// The names of the columns that it gives; none for a statement that gives no rows.
    pub columns: Vec<String>,
    /// Whether it changes nothing.
    pub read_only: bool,
}

/// A connection on which a body may speak.
pub(crate) struct GuardedConnection {
    connection: Connection,
    guard: Arc<Mutex<Guard>>,
}

impl GuardedConnection {
    /// Opens the file, which must be there.
    pub(crate) fn open(file: &Path, access: Access) -> rusqlite::Result<Self> {
        let mode = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::guard(Connection::open_with_flags(file, flags)?, access)
    }

    /// Guards a connection that is open.
    pub(crate) fn guard(mut connection: Connection, access: Access) -> rusqlite::Result<Self> {
        configure(&connection)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
        // A longer one could be prepared, and its text could not be had any more.
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_VALUE)?;
        let guard = Arc::new(Mutex::new(Guard::body(access)));
        let asked = Arc::clone(&guard);
        connection.authorizer(Some(move |cx: AuthContext<'_>| locked(&asked).judge(cx.action)))?;
        Ok(Self { connection, guard })
    }

    /// Runs `work` in one transaction: of one consistent snapshot for [`Access::Read`], with the
    /// database's only write lock from the start for [`Access::Write`]. Unless it is committed,
    /// nothing is changed.
    pub(crate) fn transaction<T>(
        &mut self,
        access: Access,
        cancel: &CancellationToken,
        work: impl FnOnce(&Connection) -> rusqlite::Result<Settle<T>>,
    ) -> rusqlite::Result<T> {
        watch(&mut self.connection, cancel)?;
        let outcome = self.begin(access, cancel).and_then(|()| work(&self.connection));
        // From here on it is settled one way or the other, whatever is cancelled meanwhile.
        self.connection.progress_handler(0, None::<fn() -> bool>)?;
        let outcome = match outcome {
            Ok(Settle::Commit(_)) if cancel.is_cancelled() => Err(interrupted()),
            Ok(Settle::Commit(value)) => self
                .as_host(|connection| {
                    patiently(|| cancel.is_cancelled(), || connection.execute_batch("COMMIT"))
                })
                .map(|()| value),
            Ok(Settle::RollBack(value)) => Ok(value),
            Err(error) => Err(error),
        };
        if !self.connection.is_autocommit() {
            let rolled_back = self.as_host(|connection| connection.execute_batch("ROLLBACK"));
            return outcome.and_then(|value| rolled_back.map(|()| value));
        }
        outcome
    }

    fn begin(&self, access: Access, cancel: &CancellationToken) -> rusqlite::Result<()> {
        self.as_host(|connection| match access {
            Access::Read => {
                connection.execute_batch("BEGIN")?;
                // The snapshot is taken by the first read, not by BEGIN.
                let first_read = "SELECT 1 FROM sqlite_schema LIMIT 1";
                patiently(|| cancel.is_cancelled(), || connection.execute_batch(first_read))
            }
            Access::Write => {
                patiently(|| cancel.is_cancelled(), || connection.execute_batch("BEGIN IMMEDIATE"))
            }
        })
    }

    fn as_host<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let body = std::mem::replace(&mut locked(&self.guard).speaker, Speaker::Host);
        let result = work(&self.connection);
        locked(&self.guard).speaker = body;
        result
    }

    /// Whether no transaction is left open, so that the connection can serve again.
    pub(crate) fn is_settled(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Prepares a statement as a body of that access would.
    pub(crate) fn describe(
        &self,
        sql: &str,
        access: Access,
    ) -> Result<StatementDescription, StatementError> {
        *locked(&self.guard) = Guard::body(access);
        let mut tries = 0;
        let give_up = || {
            tries += 1;
            tries > DESCRIBE_TRIES
        };
        match patiently(give_up, || self.connection.prepare(sql)) {
            Ok(statement) => described(&statement),
            Err(rusqlite::Error::MultipleStatement) => Err(StatementError::Several),
            Err(error) => Err(match locked(&self.guard).refused.take() {
                Some(refused) => refused,
                None => StatementError::Sql {
                    message: short_message(&error),
                    offset: error_position(&error, sql),
                },
            }),
        }
    }
}

/// What holds for every connection, a seed's included, so that a seed makes nothing that the
/// tools' connections would read otherwise.
pub(crate) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // Waiting is done in steps that look at the cancellation.
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    // Without this a misspelt column in double quotes is silently a string.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    Ok(())
}

/// Stops what runs on a connection once it is cancelled.
pub(crate) fn watch(
    connection: &mut Connection,
    cancel: &CancellationToken,
) -> rusqlite::Result<()> {
    let cancel = cancel.clone();
    connection.progress_handler(OPS_BETWEEN_LOOKS, Some(move || cancel.is_cancelled()))
}

/// The byte of `sql` at which SQLite found the error. What it was handed is the end of `sql`.
pub(crate) fn error_position(error: &rusqlite::Error, sql: &str) -> Option<usize> {
    match error {
        rusqlite::Error::SqlInputError { sql: rest, offset, .. } => {
            Some(sql.len().checked_sub(rest.len())? + usize::try_from(*offset).ok()?)
        }
        _ => None,
    }
}

fn described(statement: &Statement<'_>) -> Result<StatementDescription, StatementError> {
    // SQLite makes no statement of a text without one, and so has no text of it.
    if statement.expanded_sql().is_none() {
        return Err(StatementError::Empty);
    }
    let mut seen = HashSet::new();
    let parameters = (1..=statement.parameter_count())
        .map(|number| statement.parameter_name(number).unwrap_or("?"))
        .filter(|name| seen.insert(*name))
        .map(str::to_owned)
        .collect();
    Ok(StatementDescription {
        parameters,
        columns: statement.column_names().map(str::to_owned).collect(),
        read_only: statement.readonly(),
    })
}

/// Tries again, in small steps, what fails only because another connection is at it.
fn patiently<T>(
    mut give_up: impl FnMut() -> bool,
    mut attempt: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    loop {
        match attempt() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && !give_up() =>
            {
                thread::sleep(BUSY_STEP);
            }
            settled => return settled,
        }
    }
}

fn interrupted() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None)
}
