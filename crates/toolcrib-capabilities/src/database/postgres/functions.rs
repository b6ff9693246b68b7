//! The functions that a statement calls, as the server reports them after it has read the statement
//! and replaced the views in it.
//!
//! A read-only transaction that is rolled back does not undo everything: functions can end other
//! sessions, take locks, or ask other servers. PostgreSQL calls those functions volatile.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use tokio_postgres::{Transaction, error::SqlState};

use super::{placeholders::unbound, run::RunError};
use crate::database::StatementError;

/// The volatile functions of the system that have no side effect.
const WITHOUT_EFFECT: &str = "{clock_timestamp, gen_random_uuid, pg_database_size, pg_indexes_size, \
    pg_is_in_recovery, pg_relation_size, pg_table_size, pg_total_relation_size, random, timeofday}";

/// Makes the server send the tree of each statement that it prepares.
const SEND_TREES: &str = "SET LOCAL client_min_messages = log; \
    SET LOCAL debug_pretty_print = off; SET LOCAL debug_print_rewritten = on";

/// Ends that.
const SEND_NO_TREES: &str =
    "SET LOCAL debug_print_rewritten = off; SET LOCAL client_min_messages = warning";

/// The fields of a tree with the number of a function.
const FIELDS: [&str; 6] =
    [":funcid ", ":opfuncid ", ":aggfnoid ", ":winfnoid ", ":hashfuncid ", ":negfuncid "];

const VOLATILE: &str = "SELECT oid::pg_catalog.regprocedure::text FROM pg_catalog.pg_proc
    WHERE oid = ANY ($1) AND provolatile = 'v' AND NOT (
        pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND proname = ANY ($2::text::name[]))";

/// The details of the notices of a connection; `None` while they are not collected.
#[derive(Debug, Clone, Default)]
pub(super) struct Notices(Arc<Mutex<Option<String>>>);

impl Notices {
    pub(super) fn add(&self, detail: Option<&str>) {
        if let (Some(all), Some(detail)) = (self.0.lock().as_mut(), detail) {
            all.push_str(detail);
        }
    }
}

/// Refuses a statement that has parameters, or calls a function which may have side effects.
pub(super) async fn check(
    transaction: &Transaction<'_>,
    notices: &Notices,
    sql: &str,
) -> Result<(), RunError> {
    transaction.batch_execute(SEND_TREES).await?;
    *notices.0.lock() = Some(String::new());
    let prepared = transaction.prepare(sql).await;
    let tree = notices.0.lock().take().unwrap_or_default();
    let prepared = prepared.map_err(|error| match unbound(sql) {
        Some(parameter)
            if error.code() == Some(&SqlState::SYNTAX_ERROR)
                // Of the operator `?`.
                || (error.code() == Some(&SqlState::UNDEFINED_FUNCTION)
                    && parameter.starts_with('?')) =>
        {
            RunError::Refused(StatementError::Unbound(vec![parameter.to_owned()]))
        }
        _ => RunError::Statement { error, sql: sql.to_owned() },
    })?;
    let parameters: Vec<_> =
        (1..=prepared.params().len()).map(|number| format!("${number}")).collect();
    if !parameters.is_empty() {
        return Err(RunError::Refused(StatementError::Unbound(parameters)));
    }
    transaction.batch_execute(SEND_NO_TREES).await?;
    let refuse = |reason| Err(RunError::Refused(StatementError::Refused(reason)));
    if !tree.contains("{QUERY") {
        return refuse("the server does not report which functions the statement calls".to_owned());
    }
    let numbers: Vec<u32> = numbers(&tree).into_iter().collect();
    let found = transaction.query(VOLATILE, &[&numbers, &WITHOUT_EFFECT]).await?;
    match found.first() {
        None => Ok(()),
        Some(row) => {
            let name: String = row.try_get(0)?;
            refuse(format!("the function {name} may have side effects; remove it"))
        }
    }
}

fn numbers(tree: &str) -> BTreeSet<u32> {
    let of_field = |field| {
        tree.split(field).skip(1).filter_map(|rest: &str| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest.get(..end)?.parse().ok()
        })
    };
    FIELDS.into_iter().flat_map(of_field).collect()
}
