//! Statements that a model writes.

use std::collections::HashSet;

use tokio_postgres::{Transaction, error::SqlState};
use tokio_util::sync::CancellationToken;

use super::{
    PostgresHandle,
    explain::{Explained, after_word},
    functions::{self, Notices},
    run::{Limits, RunError, StatementResult, collect, fetch_rows},
};
use crate::database::{DatabaseError, StatementError, TransactionEnd};

/// Why another kind of statement is refused.
const ONLY_QUERIES: &str = "this tool only reads; write SELECT, VALUES, TABLE, WITH or EXPLAIN";

/// The cursor of the statement.
const CURSOR: &str = "toolcrib_explored";

impl PostgresHandle {
    /// Runs one query, as the query of a cursor: PostgreSQL takes there neither statements that
    /// write nor commands. `EXPLAIN` of such a query is permitted too. Everything is rolled back.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn query(
        &self,
        sql: &str,
        limits: Limits,
        cancel: &CancellationToken,
    ) -> Result<StatementResult, DatabaseError> {
        let work = async |transaction: &Transaction<'_>, notices: &Notices| {
            let explained = Explained::of(sql);
            let query = explained.as_ref().map_or(sql, |explained| explained.statement);
            functions::check(transaction, notices, query).await?;
            let declare = format!("DECLARE {CURSOR} NO SCROLL CURSOR WITHOUT HOLD FOR {query}");
            transaction.execute(&declare, &[]).await.map_err(|error| match error.code() {
                // The statement was prepared: it is only no query of a cursor.
                Some(&SqlState::SYNTAX_ERROR) if after_word(query, &["select"]).is_none() => {
                    RunError::Refused(StatementError::Refused(ONLY_QUERIES.to_owned()))
                }
                _ => error.into(),
            })?;
            if let Some(Explained { statement, prefix }) = explained {
                let explain = transaction.prepare(&format!("{prefix}{statement}")).await?;
                let most = i32::try_from(limits.max_rows + 1).unwrap_or(i32::MAX);
                let (ran, _) = collect(transaction, &explain, Vec::new(), most, limits).await?;
                return Ok(TransactionEnd::RollBack(ran));
            }
            let text = format!("FETCH FORWARD {} FROM {CURSOR}", limits.max_rows + 1);
            let fetch = transaction.prepare(&text).await?;
            let mut columns = HashSet::new();
            for column in fetch.columns() {
                if !columns.insert(column.name()) {
                    return Err(RunError::Refused(StatementError::Refused(format!(
                        "two columns are named `{}`; rename one with AS",
                        column.name()
                    ))));
                }
            }
            let (ran, _) = fetch_rows(transaction, &text, fetch.columns(), limits).await?;
            Ok(TransactionEnd::RollBack(ran))
        };
        self.transaction(limits.timeout, cancel, work).await
    }
}
