//! Runs a function in one transaction, outside the async runtime.

use std::{panic::resume_unwind, sync::Arc};

use rusqlite::{Connection, ErrorCode};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::{
    DatabaseHandle, Shared, State,
    connection::{StatementDescription, TransactionEnd, is_empty_statement, limit},
    error::{DatabaseError, StatementError},
    guard::Access,
};

impl DatabaseHandle {
    /// Runs a function in one transaction on the blocking pool.
    ///
    /// A read-only handle sees one consistent snapshot. A writable one has the database's only
    /// write lock from the start, so that data it reads stays true until it writes; while another
    /// writer has the lock, it waits. The number of concurrent readers is that of processors; the
    /// others wait. Cancellation, or dropping the future, ends waiting and stops a running
    /// statement within some thousand of SQLite's steps; it cannot stop the function's own code. If
    /// the function fails or panics, or cancellation came before the commit, everything is rolled
    /// back; once committed, the value is returned even if cancellation came meanwhile.
    ///
    /// ```
    /// # use toolcrib_capabilities::database::{DatabaseError, DatabaseHandle, TransactionEnd};
    /// # use tokio_util::sync::CancellationToken;
    /// async fn orders(
    ///     desk: &DatabaseHandle,
    ///     cancel: &CancellationToken,
    /// ) -> Result<u32, DatabaseError> {
    ///     desk.transaction(cancel, |connection| {
    ///         let count =
    ///             connection.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
    ///         Ok(TransactionEnd::Commit(count))
    ///     })
    ///     .await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`DatabaseError::Sql`] if the function or the commit fails;
    /// [`TooLarge`](DatabaseError::TooLarge) if a value is larger than
    /// [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES); [`Cancelled`](DatabaseError::Cancelled);
    /// [`InspectOnly`](DatabaseError::InspectOnly).
    ///
    /// # Panics
    /// If the function panics; and outside a tokio runtime.
    pub async fn transaction<T, F>(
        &self,
        cancel: &CancellationToken,
        work: F,
    ) -> Result<T, DatabaseError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<TransactionEnd<T>> + Send + 'static,
    {
        let cancel = cancel.child_token();
        let _dropped = cancel.clone().drop_guard();
        let shared = Arc::clone(&self.shared);
        let access = self.access;
        // Writers wait for each other anyway.
        let _turn = if access == Access::Write {
            None
        } else {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(self.shared.cancelled()),
                turn = self.shared.reading.acquire() => turn.ok(),
            }
        };
        match spawn_blocking(move || shared.transaction(access, &cancel, work)).await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime shut down before it began.
                Err(_) => Err(self.shared.cancelled()),
            },
        }
    }
}

impl Shared {
    fn transaction<T>(
        &self,
        access: Access,
        cancel: &CancellationToken,
        work: impl FnOnce(&Connection) -> rusqlite::Result<TransactionEnd<T>>,
    ) -> Result<T, DatabaseError> {
        let State::Open { pools, .. } = &self.state else {
            return Err(DatabaseError::InspectOnly { name: Arc::clone(&self.name) });
        };
        if cancel.is_cancelled() {
            return Err(self.cancelled());
        }
        let pool = pools.of(access);
        let mut connection = pool.take(&self.file).map_err(|source| self.failed(source))?;
        // A panic drops the connection, and SQLite rolls back.
        let outcome = connection.transaction(access, cancel, work);
        let refusal = connection.take_refusal();
        pool.put_back(connection);
        outcome.map_err(|source| {
            if cancel.is_cancelled() {
                self.cancelled()
            } else if let Some(source) = refusal {
                DatabaseError::Refused { name: Arc::clone(&self.name), source }
            } else if source.sqlite_error_code() == Some(ErrorCode::TooBig) {
                DatabaseError::TooLarge {
                    name: Arc::clone(&self.name),
                    limit: limit(access),
                    source,
                }
            } else {
                self.failed(source)
            }
        })
    }

    pub(super) fn describe(
        &self,
        access: Access,
        sql: &str,
    ) -> Result<StatementDescription, StatementError> {
        let pool = match &self.state {
            State::Inspected(connection) => return connection.lock().describe(sql, access),
            State::Open { pools, .. } => pools.of(access),
        };
        let connection = pool.take(&self.file).map_err(|source| self.failed(source))?;
        let description = connection.describe(sql, access);
        pool.put_back(connection);
        description
    }

    fn failed(&self, error: rusqlite::Error) -> DatabaseError {
        let name = Arc::clone(&self.name);
        if is_empty_statement(&error) {
            return DatabaseError::Refused { name, source: StatementError::Empty };
        }
        DatabaseError::Sql { name, error }
    }

    fn cancelled(&self) -> DatabaseError {
        DatabaseError::Cancelled { name: Arc::clone(&self.name) }
    }
}
