//! The body: one call, one transaction.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{ErrorCode, ToolContext, ToolError, ToolOutput};
use toolcrib_scope::database::{
    DatabaseError, DatabaseHandle, Settle,
    rusqlite::{self, Connection, types::Value as SqlValue},
};

use super::{
    arguments::{Parameter, bind},
    outcome::{Outcome, Rows},
};

/// A statement that has been checked.
pub(super) struct Prepared {
    pub(super) sql: String,
    pub(super) on_empty: Option<String>,
    /// For each of SQLite's parameter numbers, from 1, the position of the tool's parameter.
    pub(super) bound: Vec<usize>,
}

/// What runs when the tool is called.
pub(super) struct Body {
    pub(super) handle: DatabaseHandle,
    pub(super) parameters: Vec<Parameter>,
    pub(super) statements: Vec<Prepared>,
    pub(super) max_rows: usize,
}

impl Body {
    pub(super) async fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let values = bind(&self.parameters, &args)?;
        let body = Arc::clone(&self);
        self.handle
            .transaction(cx.cancellation(), move |connection| body.run(connection, &values))
            .await
            .map(|outcome| ToolOutput::json(outcome.into()))
            .map_err(tool_error)
    }

    fn run(
        &self,
        connection: &Connection,
        values: &[SqlValue],
    ) -> rusqlite::Result<Settle<Outcome>> {
        let before_all = connection.total_changes();
        let mut shown = Rows::default();
        for Prepared { sql, on_empty, bound } in &self.statements {
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
                return Ok(Settle::RollBack(Outcome::Empty { note: note.clone() }));
            }
            if statement.column_count() > 0 {
                shown = rows;
            }
        }
        let changed = connection.total_changes() - before_all;
        Ok(Settle::Commit(Outcome::Done { rows: shown, changed }))
    }
}

fn tool_error(error: DatabaseError) -> ToolError {
    match error {
        DatabaseError::Cancelled { .. } => ToolError::new(
            ErrorCode::Cancelled,
            "the call was cut off before it was done; nothing was changed",
        )
        .caused_by(error),
        DatabaseError::InspectOnly { .. } => {
            ToolError::new(ErrorCode::NotAvailable, error.to_string()).caused_by(error)
        }
        other => other.into(),
    }
}
