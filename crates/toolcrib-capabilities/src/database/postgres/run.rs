//! Statements in one transaction.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio_postgres::{
    CancelToken, Client, Column, IsolationLevel, SimpleQueryMessage, SimpleQueryRow, Transaction,
    error::SqlState, types::Type,
};
use tokio_util::sync::CancellationToken;

use super::{
    PostgresHandle, Shared,
    connect::{Connection, MAX_RECEIVED},
    full_text,
    functions::Notices,
    placeholders::NumberedStatement,
    unknown,
    value::{Argument, Cells, bytes},
};
use crate::database::{DatabaseError, StatementError, TransactionEnd, guard::Access};

/// The limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum of rows of a statement that are returned.
    pub max_rows: usize,
    /// The maximum of bytes of them.
    pub max_bytes: usize,
    /// The time limit of each statement in the server.
    pub timeout: Duration,
}

/// The result of a statement.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct StatementResult {
    /// Its rows as objects, within the limits.
    pub rows: Vec<Value>,
    /// Whether rows were left out.
    pub more: bool,
    /// Whether the first row that was left out is too large by itself.
    pub too_large: bool,
    /// Whether it returns columns.
    pub has_columns: bool,
    /// The number of rows that it inserted, updated or deleted.
    pub changed: u64,
    /// Whether numbers in `json` and `jsonb`, or whole documents, are text because JSON values would
    /// lose digits or members of them.
    pub has_json_as_text: bool,
}

impl PostgresHandle {
    /// Runs the statements in one transaction, in order, with arguments by name; one that is absent
    /// is NULL. If `ends` says so
    /// of a result, with its position, the rest is skipped and everything is rolled back.
    ///
    /// A read-only handle sees one consistent snapshot. On a writable one the transaction is
    /// serializable: it fails if data that it has read was changed by another meanwhile.
    /// Cancellation, or dropping the future, cancels the statement in the server.
    ///
    /// # Errors
    /// [`DatabaseError`]; then everything is rolled back.
    pub async fn run(
        &self,
        statements: &[&str],
        arguments: &Value,
        limits: Limits,
        cancel: &CancellationToken,
        ends: impl Fn(usize, &StatementResult) -> bool + Send + Sync,
    ) -> Result<Vec<StatementResult>, DatabaseError> {
        let reads = self.is_read_only();
        let work = async |transaction: &Transaction<'_>, _: &Notices| {
            let mut all = Vec::with_capacity(statements.len());
            for (position, sql) in statements.iter().enumerate() {
                let ran = statement(transaction, sql, arguments, limits, reads).await?;
                let is_end = ends(position, &ran);
                all.push(ran);
                if is_end {
                    return Ok(TransactionEnd::RollBack(all));
                }
            }
            Ok(TransactionEnd::Commit(all))
        };
        self.transaction(limits.timeout, cancel, work).await
    }

    /// Runs `work` in a transaction; if it fails, all is rolled back.
    pub(super) async fn transaction<T>(
        &self,
        timeout: Duration,
        cancel: &CancellationToken,
        work: impl AsyncFnOnce(&Transaction<'_>, &Notices) -> Result<TransactionEnd<T>, RunError>,
    ) -> Result<T, DatabaseError> {
        let Self { shared, access } = self;
        let cancelled = || DatabaseError::Cancelled { name: Arc::clone(&shared.name) };
        let admitted = async {
            let turn = shared.connections.acquire().await;
            shared.connection(*access).await.map(|connection| (turn, connection))
        };
        let (_turn, mut connection) = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            admitted = admitted => admitted?,
        };
        let mut running = CancelGuard {
            shared: Arc::clone(shared),
            token: Some(connection.client.cancel_token()),
            host: connection.host(),
        };
        let notices = connection.notices.clone();
        let working = async {
            let transaction = begin(&mut connection.client, *access, timeout).await?;
            let settle = tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(None),
                settle = work(&transaction, &notices) => settle?,
            };
            // From here on the outcome is final, whatever is cancelled meanwhile.
            let value = match settle {
                TransactionEnd::Commit(_) if cancel.is_cancelled() => return Ok(None),
                TransactionEnd::Commit(value) => {
                    transaction.commit().await.map_err(RunError::Commit)?;
                    value
                }
                TransactionEnd::RollBack(value) => {
                    transaction.rollback().await?;
                    value
                }
            };
            Ok(Some(value))
        };
        let outcome = match working.await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => {
                running.cancel().await;
                return Err(cancelled());
            }
            Err(error) => Err(shared.run_failure(error, &connection, timeout).await),
        };
        running.token = None;
        shared.put_back(connection, *access).await;
        outcome
    }
}

/// Begins a transaction in the server.
async fn begin(
    client: &mut Client,
    access: Access,
    timeout: Duration,
) -> Result<Transaction<'_>, tokio_postgres::Error> {
    let (level, reads) = match access {
        Access::Write => (IsolationLevel::Serializable, false),
        Access::Read | Access::Explore => (IsolationLevel::RepeatableRead, true),
    };
    let builder = client.build_transaction().isolation_level(level).read_only(reads);
    let transaction = builder.start().await?;
    // The last three are formats of cells, which a role may have set otherwise.
    let set = format!(
        "SET LOCAL statement_timeout = {}; SET LOCAL datestyle = 'ISO'; \
         SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3",
        timeout.as_millis().max(1)
    );
    transaction.batch_execute(&set).await?;
    Ok(transaction)
}

/// The error of a statement.
pub(super) enum RunError {
    Refused(StatementError),
    /// The server cannot prepare a statement.
    Statement {
        error: tokio_postgres::Error,
        sql: String,
    },
    Driver(tokio_postgres::Error),
    /// Of the commit itself.
    Commit(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for RunError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

/// Cancels the statement in the server if the call ends before it.
struct CancelGuard {
    shared: Arc<Shared>,
    token: Option<CancelToken>,
    host: usize,
}

impl CancelGuard {
    async fn cancel(&mut self) {
        if let (Some(token), Ok(server)) = (self.token.take(), &self.shared.server) {
            server.cancel(token, self.host).await;
        }
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let (Some(token), Ok(runtime)) = (self.token.take(), Handle::try_current()) {
            let (shared, host) = (Arc::clone(&self.shared), self.host);
            // It has a time limit.
            runtime.spawn(async move { Self { shared, token: Some(token), host }.cancel().await });
        }
    }
}

impl Shared {
    /// Returns a connection to the pool, without what a statement may have left in its session.
    async fn put_back(&self, connection: Connection, access: Access) {
        if access == Access::Explore {
            let unlock = "SELECT pg_catalog.pg_advisory_unlock_all()";
            if connection.client.batch_execute(unlock).await.is_err() {
                return;
            }
        }
        if !connection.client.is_closed() {
            self.pool(access).lock().push(connection);
        }
    }

    /// The error of a transaction that failed.
    async fn run_failure(
        &self,
        error: RunError,
        connection: &Connection,
        timeout: Duration,
    ) -> DatabaseError {
        let name = Arc::clone(&self.name);
        match error {
            RunError::Refused(source) => DatabaseError::Refused { name, source },
            RunError::Commit(error) if error.as_db_error().is_none() => {
                DatabaseError::OutcomeUnknown { name }
            }
            RunError::Statement { error, sql } => {
                self.explained(&error, connection, timeout, &sql).await
            }
            RunError::Driver(error) | RunError::Commit(error) => {
                self.explained(&error, connection, timeout, "").await
            }
        }
    }

    async fn explained(
        &self,
        error: &tokio_postgres::Error,
        connection: &Connection,
        timeout: Duration,
        sql: &str,
    ) -> DatabaseError {
        let name = Arc::clone(&self.name);
        if connection.is_exhausted() {
            let most = MAX_RECEIVED / 1024 / 1024;
            let problem = format!(
                "the result has more than {most} MiB, the limit of a call; select fewer columns or \
                 rows"
            );
            return DatabaseError::Limit { name, problem };
        }
        match error.as_db_error() {
            Some(error) if *error.code() == SqlState::QUERY_CANCELED => {
                let timeout = timeout.as_millis();
                let problem =
                    format!("the statement took longer than {timeout} ms; ask for less at a time");
                DatabaseError::Limit { name, problem }
            }
            Some(error) => DatabaseError::Postgres {
                name,
                message: unknown::message(&connection.client, error, sql).await,
                code: error.code().code().into(),
            },
            None => DatabaseError::Server {
                name,
                problem: full_text(error),
                help: "check the server, and try again".to_owned(),
            },
        }
    }
}

async fn statement(
    transaction: &Transaction<'_>,
    sql: &str,
    arguments: &Value,
    limits: Limits,
    reads: bool,
) -> Result<StatementResult, RunError> {
    let numbered = NumberedStatement::of(sql);
    numbered.check().map_err(RunError::Refused)?;
    let sql = &numbered.sql;
    let prepared = transaction.prepare(sql).await;
    let statement = prepared.map_err(|error| RunError::Statement { error, sql: sql.clone() })?;
    let null = Value::Null;
    let named = statement.params().iter().zip(&numbered.names);
    let values: Vec<_> = named
        .map(|(kind, name)| Argument::new(arguments.get(name).unwrap_or(&null), kind))
        .collect();
    // The server runs a statement that writes to its end in any case.
    let most = if reads { i32::try_from(limits.max_rows + 1).unwrap_or(i32::MAX) } else { 0 };
    collect(transaction, &statement, values, most, limits).await.map(|(mut ran, affected)| {
        ran.changed = if counts_changes(sql, ran.has_columns) { affected } else { 0 };
        ran
    })
}

/// Runs a prepared statement for at most `most` rows, 0 for all; also returns the number of rows
/// that the server reports for it.
pub(super) async fn collect(
    transaction: &Transaction<'_>,
    statement: &tokio_postgres::Statement,
    values: Vec<Argument>,
    most: i32,
    limits: Limits,
) -> Result<(StatementResult, u64), RunError> {
    if statement.columns().is_empty() {
        let affected = transaction.execute_raw(statement, values).await?;
        return Ok((StatementResult::default(), affected));
    }
    // The driver receives rows of a portal in the binary format, which few types share with JSON.
    // `FETCH`, as a simple query, returns each type as the server writes it.
    let _portal = transaction.bind_raw(statement, values).await?;
    let cursors = transaction.simple_query(NEWEST_PORTAL).await?;
    let name = cursors.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    });
    let name = name.ok_or_else(|| {
        RunError::Refused(StatementError::Refused(
            "the server does not list the portal of the statement in pg_cursors".to_owned(),
        ))
    })?;
    let count = if most == 0 { "ALL".to_owned() } else { format!("FORWARD {most}") };
    let fetch = format!("FETCH {count} FROM \"{name}\"");
    fetch_rows(transaction, &fetch, statement.columns(), limits).await
}

/// The name that the driver has given to the portal which was bound last.
const NEWEST_PORTAL: &str = "SELECT name FROM pg_catalog.pg_cursors WHERE name ~ '^p[0-9]+$' \
    ORDER BY creation_time DESC, length(name) DESC, name DESC LIMIT 1";

/// Runs a `FETCH` of a cursor with these columns.
pub(super) async fn fetch_rows(
    transaction: &Transaction<'_>,
    fetch: &str,
    columns: &[Column],
    limits: Limits,
) -> Result<(StatementResult, u64), RunError> {
    let mut stream = pin!(transaction.client().simple_query_raw(fetch).await?);
    let mut ran = StatementResult { has_columns: true, ..StatementResult::default() };
    let (mut bytes, mut fetched) = (0, 0);
    let mut cells = Cells::default();
    while let Some(message) = stream.try_next().await? {
        let row = match message {
            SimpleQueryMessage::Row(row) if !ran.more => row,
            SimpleQueryMessage::CommandComplete(count) => {
                fetched = count;
                continue;
            }
            _ => continue,
        };
        let of_row = row_bytes(columns, &row)?;
        bytes += of_row;
        let full = ran.rows.len() == limits.max_rows;
        ran.more = full || bytes > limits.max_bytes;
        ran.too_large = !full && of_row > limits.max_bytes;
        if !ran.more {
            ran.rows.push(row_json(columns, &row, &mut cells)?);
        }
    }
    ran.has_json_as_text = cells.has_json_as_text;
    Ok((ran, fetched))
}

/// The driver does not report whether a count is of rows that were read or changed.
fn counts_changes(sql: &str, has_columns: bool) -> bool {
    let word = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
    let writes = ["INSERT", "UPDATE", "DELETE", "MERGE"];
    !has_columns || writes.iter().any(|write| word.is_some_and(|w| w.eq_ignore_ascii_case(write)))
}

fn row_bytes(columns: &[Column], row: &SimpleQueryRow) -> Result<usize, tokio_postgres::Error> {
    let mut sum = 0;
    for (position, column) in columns.iter().enumerate() {
        let text = row.try_get(position)?.unwrap_or_default();
        // Two digits are one byte, of which only the number is returned.
        let of_cell = if *column.type_() == Type::BYTEA { bytes(text) } else { text.len() };
        sum += column.name().len() + of_cell;
    }
    Ok(sum)
}

fn row_json(
    columns: &[Column],
    row: &SimpleQueryRow,
    cells: &mut Cells,
) -> Result<Value, tokio_postgres::Error> {
    let mut object = Map::with_capacity(columns.len());
    for (position, column) in columns.iter().enumerate() {
        let text = row.try_get(position)?;
        let cell = text.map_or(Value::Null, |text| cells.read(column.type_(), text));
        object.insert(column.name().to_owned(), cell);
    }
    Ok(Value::Object(object))
}
