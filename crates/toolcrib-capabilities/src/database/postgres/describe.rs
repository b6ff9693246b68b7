//! Checks of statements while a project is loaded, outside any async runtime.

use std::{sync::Arc, thread};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Column, error::ErrorPosition};

use super::{
    PostgresDatabase, PostgresHandle, Shared, connect::Connection, placeholders::NumberedStatement,
    unknown,
};
use crate::database::{DatabaseError, StatementDescription, StatementError, guard::Access};

/// A connection with its own runtime, which makes progress only while something waits for it.
pub(super) struct BlockingConnection {
    /// Precedes the runtime, which its task needs to end.
    connection: Option<Connection>,
    runtime: Option<Runtime>,
}

impl Drop for BlockingConnection {
    fn drop(&mut self) {
        drop(self.connection.take());
        // Waiting for it is not permitted within another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl PostgresHandle {
    /// Prepares one statement in the server, and returns its parameters and columns. Runs nothing.
    /// Blocks; the connection is kept until [`PostgresDatabase::end_checks`].
    ///
    /// # Errors
    /// [`StatementError`].
    pub fn describe(&self, sql: &str) -> Result<StatementDescription, StatementError> {
        let numbered = NumberedStatement::of(sql);
        self.shared.checked(Access::Read, |runtime, connection| {
            runtime.block_on(describe(connection, &numbered))
        })?
    }
}

impl PostgresDatabase {
    /// Connects, and for `exploring` checks the role. Blocks; the connection is kept until
    /// [`end_checks`](Self::end_checks).
    ///
    /// # Errors
    /// [`DatabaseError::Server`].
    pub fn check(&self, exploring: bool) -> Result<(), DatabaseError> {
        if exploring {
            // A role is checked with each connection for exploring.
            drop(self.0.checking.lock().take());
        }
        let access = if exploring { Access::Explore } else { Access::Read };
        self.0.checked(access, |_, _| ())
    }

    /// Closes the connection that statements were checked with.
    pub fn end_checks(&self) {
        drop(self.0.checking.lock().take());
    }
}

impl Shared {
    /// Runs a check on a thread that belongs to no runtime.
    fn checked<T: Send>(
        &self,
        access: Access,
        check: impl FnOnce(&Runtime, &Connection) -> T + Send,
    ) -> Result<T, DatabaseError> {
        let work = || {
            let mut kept = self.checking.lock();
            if kept.is_none() {
                *kept = Some(self.start_checking(access)?);
            }
            match kept.as_ref() {
                Some(BlockingConnection {
                    connection: Some(connection),
                    runtime: Some(runtime),
                }) => {
                    connection.permit_call();
                    Ok(check(runtime, connection))
                }
                _ => Err(self.no_runtime("it is closed")),
            }
        };
        thread::scope(|scope| scope.spawn(work).join())
            .unwrap_or_else(|_| Err(self.no_runtime("the check panicked")))
    }

    fn start_checking(&self, access: Access) -> Result<BlockingConnection, DatabaseError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| self.no_runtime(&error.to_string()))?;
        let connection = runtime.block_on(self.connection(access))?;
        Ok(BlockingConnection { connection: Some(connection), runtime: Some(runtime) })
    }

    fn no_runtime(&self, problem: &str) -> DatabaseError {
        DatabaseError::Server {
            name: Arc::clone(&self.name),
            problem: format!("it could not be checked: {problem}"),
            help: "try again".to_owned(),
        }
    }
}

async fn describe(
    connection: &Connection,
    numbered: &NumberedStatement,
) -> Result<StatementDescription, StatementError> {
    numbered.check()?;
    let statement = match connection.client.prepare(&numbered.sql).await {
        Ok(statement) => statement,
        Err(error) => {
            let Some(error) = error.as_db_error() else {
                return Err(StatementError::Sql {
                    message: super::full_text(&error),
                    offset: None,
                });
            };
            let offset = match error.position() {
                Some(ErrorPosition::Original(character)) => numbered.written(*character),
                _ => None,
            };
            let message = unknown::message(&connection.client, error, &numbered.sql).await;
            return Err(StatementError::Sql { message, offset });
        }
    };
    let columns: Vec<_> = statement.columns().iter().map(Column::name).map(str::to_owned).collect();
    Ok(StatementDescription {
        parameters: numbered.names.iter().map(|name| format!(":{name}")).collect(),
        read_only: !columns.is_empty(),
        columns,
    })
}
