//! The body: one call, one transaction.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use toolcrib_capabilities::database::{
    DatabaseError, TransactionEnd,
    postgres::{DEFAULT_STATEMENT_TIMEOUT, Limits, PostgresHandle, StatementResult},
    rusqlite::{self, Connection, types::Value as SqlValue},
};
use toolcrib_core::{ErrorCode, ToolContext, ToolError, ToolOutput};

use super::{
    MAX_ROWS_BYTES, SqlHandle,
    arguments::{Parameter, bind},
    outcome::{Outcome, Rows},
};

/// A statement that has been checked.
pub(super) struct PreparedStatement {
    pub(super) sql: String,
    pub(super) on_empty: Option<String>,
    /// For each of SQLite's parameter numbers, from 1, the position of the tool's parameter.
    pub(super) bound: Vec<usize>,
}

/// The handler of the tool.
pub(super) struct Body {
    pub(super) handle: SqlHandle,
    pub(super) parameters: Vec<Parameter>,
    pub(super) statements: Vec<PreparedStatement>,
    pub(super) max_rows: usize,
    pub(super) timeout: Option<Duration>,
}

impl Body {
    pub(super) async fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = match &self.handle {
            SqlHandle::Sqlite(handle) => {
                let values = bind(&self.parameters, &args)?;
                let body = Arc::clone(&self);
                let work = move |connection: &Connection| body.run(connection, &values);
                handle.transaction(cx.cancellation(), work).await
            }
            SqlHandle::Postgres(handle) => self.run_on_server(handle, &args, &cx).await,
        };
        outcome.map(|outcome| ToolOutput::json(outcome.into())).map_err(tool_error)
    }

    async fn run_on_server(
        &self,
        handle: &PostgresHandle,
        args: &Value,
        cx: &ToolContext,
    ) -> Result<Outcome, DatabaseError> {
        let statements: Vec<_> = self.statements.iter().map(|one| one.sql.as_str()).collect();
        let limits = limits(self.max_rows, self.timeout);
        let note = |position: usize, ran: &StatementResult| {
            let note = self.statements.get(position)?.on_empty.as_ref()?;
            let is_empty = ran.rows.is_empty() && !ran.more && ran.changed == 0;
            is_empty.then(|| note.clone())
        };
        let ends = |position, ran: &StatementResult| note(position, ran).is_some();
        let all = handle.run(&statements, args, limits, cx.cancellation(), ends).await?;
        let last = all.last().and_then(|ran| note(all.len() - 1, ran));
        if let Some(note) = last {
            return Ok(Outcome::Empty { note });
        }
        let changed = all.iter().map(|ran| ran.changed).sum();
        let shown = all.into_iter().rev().find(|ran| ran.has_columns);
        Ok(Outcome::Done { rows: shown.unwrap_or_default().into(), changed })
    }

    fn run(
        &self,
        connection: &Connection,
        values: &[SqlValue],
    ) -> rusqlite::Result<TransactionEnd<Outcome>> {
        let before_all = connection.total_changes();
        let mut shown = Rows::default();
        for PreparedStatement { sql, on_empty, bound } in &self.statements {
            let before = connection.total_changes();
            let mut statement = connection.prepare_cached(sql)?;
            for (number, value) in (1..).zip(bound.iter().map(|position| values.get(*position))) {
                statement.raw_bind_parameter(number, value)?;
            }
            let rows = Rows::collect(&mut statement, self.max_rows)?;
            if let Some(note) = on_empty
                && rows.is_empty()
                && connection.total_changes() == before
            {
                return Ok(TransactionEnd::RollBack(Outcome::Empty { note: note.clone() }));
            }
            if statement.column_count() > 0 {
                shown = rows;
            }
        }
        let changed = connection.total_changes() - before_all;
        Ok(TransactionEnd::Commit(Outcome::Done { rows: shown, changed }))
    }
}

/// The limits of a call in a server.
pub(crate) fn limits(max_rows: usize, timeout: Option<Duration>) -> Limits {
    let timeout = timeout.unwrap_or(DEFAULT_STATEMENT_TIMEOUT);
    Limits { max_rows, max_bytes: MAX_ROWS_BYTES, timeout }
}

pub(crate) fn tool_error(error: DatabaseError) -> ToolError {
    match error {
        DatabaseError::Cancelled { .. } => ToolError::new(
            ErrorCode::Cancelled,
            "the call was cut off before it was done; nothing was changed",
        )
        .caused_by(error),
        DatabaseError::InspectOnly { .. } => {
            ToolError::new(ErrorCode::NotAvailable, error.to_string()).caused_by(error)
        }
        // Class 22: data that the server cannot read as the type of the parameter.
        DatabaseError::Postgres { ref code, .. } if code.starts_with("22") => {
            ToolError::input_invalid(error.to_string()).caused_by(error)
        }
        DatabaseError::Postgres { ref code, .. } if ["40001", "40P01"].contains(&&**code) => {
            let message =
                "another transaction changed the same rows; nothing was changed, try again";
            ToolError::new(ErrorCode::ExecutionFailed, message).caused_by(error)
        }
        DatabaseError::OutcomeUnknown { .. } => {
            let message = "the connection broke at the end; the changes may have been made";
            ToolError::new(ErrorCode::OutcomeUnknown, message).caused_by(error)
        }
        DatabaseError::Server { .. } => {
            let message = "the database server cannot be used now";
            ToolError::new(ErrorCode::ExecutionFailed, message).caused_by(error)
        }
        other => other.into(),
    }
}
