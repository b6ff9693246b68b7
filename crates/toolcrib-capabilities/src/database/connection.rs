//! One connection: its transactions, and descriptions of statements.

use std::{cell::Cell, collections::HashSet, path::Path, sync::Arc, thread, time::Duration};

use parking_lot::Mutex;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, Statement, config::DbConfig, ffi, functions::FunctionFlags,
    hooks::AuthContext, limits::Limit, types::Null,
};
use tokio_util::sync::CancellationToken;

use super::{
    error::{StatementError, short_message},
    guard::{Access, Guard, Speaker},
    math,
    unknown::with_nearest,
};

/// The size limit of a text, a blob or a row in a statement on a handle: 4 MiB. SQLite's own limit
/// is a thousand million bytes, which one careless expression could allocate. Seeds are exempt, but
/// statements cannot read larger values.
pub const MAX_VALUE_BYTES: usize = MAX_VALUE as usize;

/// The same in SQLite's type.
const MAX_VALUE: i32 = 4 * 1024 * 1024;

/// The same limit for statements of a model: 1 MiB. Functions such as `instr` take a time that is
/// the product of two lengths, and SQLite does not look at the cancellation within one.
const MAX_EXPLORED_VALUE: i32 = 1024 * 1024;

/// The size limit of a text, a blob or a row, by access.
pub(crate) fn limit(access: Access) -> usize {
    match access {
        Access::Read | Access::Write => MAX_VALUE_BYTES,
        Access::Explore => MAX_EXPLORED_VALUE as usize,
    }
}

/// The length limit of a statement of a model: 100 kB.
const MAX_EXPLORING_SQL: i32 = 100_000;

/// The length limit of a pattern of `LIKE` and `GLOB` in statements of a model, for the same reason.
const MAX_EXPLORING_PATTERN: i32 = 1000;

/// The memory of SQLite in this process, from the first statement of a model on: 2 GiB. Sorting and
/// grouping in such a statement need memory instead of temporary files, which nothing limits; and
/// a seed in memory has 1 GiB.
const MOST_MEMORY: i64 = 2 * 1024 * 1024 * 1024;

/// Instructions of SQLite's virtual machine between two checks of the cancellation: some tens of
/// microseconds.
pub(super) const OPS_BETWEEN_LOOKS: i32 = 1000;

/// The same for statements of a model, in which each instruction may be slow.
const EXPLORING_OPS_BETWEEN_LOOKS: i32 = 10;

/// The delay before a retry while another connection has a lock.
const BUSY_STEP: Duration = Duration::from_millis(5);
/// The maximum of retries of [`GuardedConnection::describe`], which cannot be cancelled: 5 seconds.
const DESCRIBE_TRIES: u32 = 1000;

/// The end of a transaction whose function has not failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd<T> {
    /// Keeps its changes.
    Commit(T),
    /// Rolls its changes back; the value is still returned.
    RollBack(T),
}

/// The parameters and columns of a statement, as SQLite prepared it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatementDescription {
    /// Its parameters as written, such as `:order_id`, each once, in the order of their numbers;
    /// one without a name is `?`.
    pub parameters: Vec<String>,
    /// The names of its columns; empty for a statement that returns no rows.
    pub columns: Vec<String>,
    /// Whether it changes nothing.
    pub read_only: bool,
}

/// A connection for statements of tool bodies.
pub(crate) struct GuardedConnection {
    connection: Connection,
    guard: Arc<Mutex<Guard>>,
    /// The version of the schema whose virtual tables are connected.
    connected: Cell<Option<i64>>,
}

impl GuardedConnection {
    /// Opens the file, which must exist.
    pub(crate) fn open(file: &Path, access: Access) -> rusqlite::Result<Self> {
        let mode = match access {
            Access::Read | Access::Explore => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::guard(Connection::open_with_flags(file, flags)?, access)
    }

    /// Guards an open connection.
    pub(crate) fn guard(mut connection: Connection, access: Access) -> rusqlite::Result<Self> {
        configure(&connection)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // Views and triggers of the file cannot call functions with side effects.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
        // A longer statement could be prepared, but its text would not be available any more.
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_VALUE)?;
        if access == Access::Explore {
            limit_exploring(&connection)?;
        }
        let guard = Arc::new(Mutex::new(Guard::body(access)));
        authorize(&mut connection, Arc::clone(&guard))?;
        Ok(Self { connection, guard, connected: Cell::new(None) })
    }

    /// Runs `work` in one transaction: of one consistent snapshot for [`Access::Read`], with the
    /// database's only write lock from the start for [`Access::Write`]. Unless it is committed,
    /// nothing is changed.
    pub(crate) fn transaction<T>(
        &mut self,
        access: Access,
        cancel: &CancellationToken,
        work: impl FnOnce(&Connection) -> rusqlite::Result<TransactionEnd<T>>,
    ) -> rusqlite::Result<T> {
        *self.guard.lock() = Guard::body(access);
        watch(&mut self.connection, access, cancel)?;
        let outcome = self.begin(access, cancel).and_then(|()| work(&self.connection));
        // From here on the outcome is final, whatever is cancelled meanwhile.
        self.connection.progress_handler(0, None::<fn() -> bool>)?;
        let outcome = match outcome {
            Ok(TransactionEnd::Commit(_)) if cancel.is_cancelled() => Err(interrupted()),
            Ok(TransactionEnd::Commit(value)) => self
                .as_host(|connection| {
                    patiently(|| cancel.is_cancelled(), || connection.execute_batch("COMMIT"))
                })
                .map(|()| value),
            Ok(TransactionEnd::RollBack(value)) => Ok(value),
            Err(error) => Err(self.as_host(|connection| with_nearest(connection, error))),
        };
        if !self.connection.is_autocommit() {
            let rolled_back = self.as_host(|connection| connection.execute_batch("ROLLBACK"));
            return outcome.and_then(|value| rolled_back.map(|()| value));
        }
        outcome
    }

    fn begin(&self, access: Access, cancel: &CancellationToken) -> rusqlite::Result<()> {
        self.as_host(|connection| match access {
            Access::Read | Access::Explore => {
                connection.execute_batch("BEGIN")?;
                // The snapshot is taken by the first read, not by BEGIN.
                patiently(|| cancel.is_cancelled(), || self.connect_virtual_tables(connection))
            }
            Access::Write => {
                patiently(|| cancel.is_cancelled(), || connection.execute_batch("BEGIN IMMEDIATE"))
            }
        })
    }

    /// Takes a snapshot, and connects the virtual tables unless those of this schema are connected. An R-tree
    /// prepares its own statements when it is connected, also those that write; a body that only reads may
    /// not prepare them. A table that cannot be connected is left to the statement that uses it.
    fn connect_virtual_tables(&self, connection: &Connection) -> rusqlite::Result<()> {
        let version = connection.query_row("PRAGMA schema_version", [], |row| row.get(0))?;
        if self.connected.get() == Some(version) {
            return Ok(());
        }
        let mut names = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage = 0")?;
        let mut rows = names.query([])?;
        while let Some(row) = rows.next()? {
            let Ok(name) = row.get::<_, String>(0) else { continue };
            let query = format!("SELECT 1 FROM \"{}\"", name.replace('"', "\"\""));
            if let Err(error) = connection.prepare(&query)
                && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
            {
                return Err(error);
            }
        }
        self.connected.set(Some(version));
        Ok(())
    }

    fn as_host<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let body = std::mem::replace(&mut self.guard.lock().speaker, Speaker::Host);
        let result = work(&self.connection);
        self.guard.lock().speaker = body;
        result
    }

    /// Reads the schema. Waits at most 5 seconds for a program that has the file locked.
    pub(crate) fn read_schema(&self) -> rusqlite::Result<()> {
        let mut tries = 0;
        let give_up = || {
            tries += 1;
            tries > DESCRIBE_TRIES
        };
        let first_read = "SELECT 1 FROM sqlite_schema LIMIT 1";
        self.as_host(|connection| patiently(give_up, || connection.execute_batch(first_read)))
    }

    /// Whether no transaction is open, so that the connection can be reused.
    pub(crate) fn is_settled(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Why a statement of the last transaction was refused, if one was.
    pub(crate) fn take_refusal(&self) -> Option<StatementError> {
        self.guard.lock().refused.take()
    }

    /// Prepares a statement as a body with that access would.
    pub(crate) fn describe(
        &self,
        sql: &str,
        access: Access,
    ) -> Result<StatementDescription, StatementError> {
        *self.guard.lock() = Guard::body(access);
        let mut tries = 0;
        let give_up = || {
            tries += 1;
            tries > DESCRIBE_TRIES
        };
        let prepare = || {
            self.as_host(|connection| self.connect_virtual_tables(connection))?;
            self.connection.prepare(sql)
        };
        match patiently(give_up, prepare) {
            Ok(statement) => described(&statement),
            Err(rusqlite::Error::MultipleStatement) => Err(StatementError::Several),
            Err(error) if is_empty_statement(&error) => Err(StatementError::Empty),
            Err(error) => {
                let refused = self.guard.lock().refused.take();
                Err(refused.unwrap_or_else(|| StatementError::Sql {
                    offset: error_position(&error, sql),
                    message: short_message(
                        &self.as_host(|connection| with_nearest(connection, error)),
                    ),
                }))
            }
        }
    }
}

/// Whether the text of a statement was empty. It compares the variant's text, because the oldest
/// permitted version of rusqlite does not have the variant.
pub(crate) fn is_empty_statement(error: &rusqlite::Error) -> bool {
    format!("{error:?}") == "Empty"
}

/// Settings of every connection, including a seed's, so that tools' connections read a seed's
/// objects the same way.
pub(crate) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // Waiting is done in steps that check the cancellation.
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    // Without this a misspelled column in double quotes is silently a string.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    math::add(connection)
}

/// Has the guard judge each act of a statement when it is prepared.
fn authorize(connection: &mut Connection, guard: Arc<Mutex<Guard>>) -> rusqlite::Result<()> {
    connection.authorizer(Some(move |cx: AuthContext<'_>| guard.lock().judge(cx.action)))
}

/// Limits what one statement of a model can cost.
fn limit_exploring(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_EXPLORED_VALUE)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_EXPLORING_SQL)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_EXPLORING_PATTERN)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update_and_check(None, "hard_heap_limit", MOST_MEMORY, |_| Ok(()))?;
    // With the characters to remove, their time is the product of two lengths in small steps.
    for name in ["trim", "ltrim", "rtrim"] {
        connection.create_scalar_function(
            name,
            2,
            FunctionFlags::SQLITE_UTF8,
            move |_| -> rusqlite::Result<Null> {
                let refused = format!("{name} takes one argument here; remove the second");
                Err(rusqlite::Error::UserFunctionError(refused.into()))
            },
        )?;
    }
    Ok(())
}

/// Interrupts a connection when it is cancelled.
fn watch(
    connection: &mut Connection,
    access: Access,
    cancel: &CancellationToken,
) -> rusqlite::Result<()> {
    let cancel = cancel.clone();
    let ops = match access {
        Access::Explore => EXPLORING_OPS_BETWEEN_LOOKS,
        Access::Read | Access::Write => OPS_BETWEEN_LOOKS,
    };
    connection.progress_handler(ops, Some(move || cancel.is_cancelled()))
}

/// The byte of `sql` at which SQLite found the error. SQLite receives a suffix of `sql`.
pub(crate) fn error_position(error: &rusqlite::Error, sql: &str) -> Option<usize> {
    match error {
        rusqlite::Error::SqlInputError { sql: rest, offset, .. } => {
            Some(sql.len().checked_sub(rest.len())? + usize::try_from(*offset).ok()?)
        }
        _ => None,
    }
}

fn described(statement: &Statement<'_>) -> Result<StatementDescription, StatementError> {
    // SQLite prepares no statement from blank text.
    if statement.expanded_sql().is_none() {
        return Err(StatementError::Empty);
    }
    let mut seen = HashSet::new();
    let parameters = (1..=statement.parameter_count())
        .map(|number| statement.parameter_name(number).unwrap_or("?"))
        .filter(|name| seen.insert(*name))
        .map(str::to_owned)
        .collect();
    // A list or an iterator: it differs between the permitted versions of rusqlite.
    let mut columns = Vec::new();
    for name in statement.column_names() {
        columns.push(name.to_owned());
    }
    Ok(StatementDescription { parameters, columns, read_only: statement.readonly() })
}

/// Retries, in small steps, an operation that fails only because another connection has a lock.
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
