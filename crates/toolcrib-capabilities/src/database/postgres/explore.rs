//! Statements that a model writes.

use std::collections::HashSet;

use tokio_postgres::Transaction;
use tokio_util::sync::CancellationToken;

use super::{
    PostgresHandle,
    functions::{self, Notices},
    run::{Limits, RunError, StatementResult, collect},
};
use crate::database::{DatabaseError, StatementError, TransactionEnd};

/// The cursor of the statement.
const CURSOR: &str = "toolcrib_explored";

impl PostgresHandle {
    /// Runs one query, as the query of a cursor: PostgreSQL takes there neither statements that
    /// write nor commands. Everything is rolled back.
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
            functions::check(transaction, notices, sql).await?;
            let declare = format!("DECLARE {CURSOR} NO SCROLL CURSOR WITHOUT HOLD FOR {sql}");
            transaction.execute(&declare, &[]).await?;
            let fetch = format!("FETCH FORWARD {} FROM {CURSOR}", limits.max_rows + 1);
            let fetch = transaction.prepare(&fetch).await?;
            let mut columns = HashSet::new();
            for column in fetch.columns() {
                if !columns.insert(column.name()) {
                    return Err(RunError::Refused(StatementError::Refused(format!(
                        "two columns are named `{}`; rename one with AS",
                        column.name()
                    ))));
                }
            }
            let (ran, _) = collect(transaction, &fetch, Vec::new(), 0, limits).await?;
            Ok(TransactionEnd::RollBack(ran))
        };
        self.transaction(limits.timeout, cancel, work).await
    }
}
