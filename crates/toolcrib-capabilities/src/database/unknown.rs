//! Names that a statement uses and its database does not have, with the nearest that it has.

use rusqlite::{Connection, ErrorCode, Row, ffi};
use toolcrib_core::__internal::nearest_names;

const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') \
    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

/// The columns of the tables that a text names.
const COLUMNS: &str = "SELECT DISTINCT c.name FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
    WHERE t.type IN ('table', 'view') AND instr(lower(?1), lower(t.name)) ORDER BY c.name";

/// A name that a database has: as it is compared, and as a statement writes it.
pub(super) struct KnownName {
    pub(super) name: String,
    pub(super) written: String,
}

/// `did you mean …?` with the nearest name, if one is near enough.
pub(super) fn did_you_mean(name: &str, known: &[KnownName]) -> Option<String> {
    let lower: Vec<_> = known.iter().map(|known| known.name.to_lowercase()).collect();
    let near = nearest_names(name, lower.iter().map(String::as_str), 1);
    let position = lower.iter().position(|lower| near.contains(&lower.as_str()))?;
    known.get(position).map(|known| format!("did you mean `{}`?", known.written))
}

/// The same error; one about an unknown table or column also names the nearest.
pub(super) fn with_nearest(connection: &Connection, error: rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqlInputError { error, msg, sql, offset } => {
            let msg = explained(connection, msg, &sql);
            rusqlite::Error::SqlInputError { error, msg, sql, offset }
        }
        rusqlite::Error::SqliteFailure(
            error @ ffi::Error { code: ErrorCode::Unknown, .. },
            Some(message),
        ) => {
            let message = explained(connection, message, "");
            rusqlite::Error::SqliteFailure(error, Some(message))
        }
        other => other,
    }
}

fn explained(connection: &Connection, message: String, sql: &str) -> String {
    // SQLite takes a name in double quotes that it does not know for a string that was meant.
    let (problem, _) = message.split_once(" - should this be").unwrap_or((&message, ""));
    let found = if let Some(table) = problem.strip_prefix("no such table: ") {
        known(connection, TABLES, &[]).and_then(|known| did_you_mean(last(table), &known))
    } else {
        let column = problem.strip_prefix("no such column: ");
        let column = column.or_else(|| Some(problem.split_once(" has no column named ")?.1));
        column.and_then(|column| {
            let known = known(connection, COLUMNS, &[&format!("{sql} {problem}")])?;
            did_you_mean(last(column), &known)
        })
    };
    match found {
        Some(near) => format!("{problem}; {near}"),
        None => message,
    }
}

/// The last part of a name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name).trim_matches('"')
}

fn known(connection: &Connection, sql: &str, parameters: &[&String]) -> Option<Vec<KnownName>> {
    let named = |row: &Row<'_>| {
        let name: String = row.get(0)?;
        let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let written = if is_plain { name.clone() } else { format!("\"{name}\"") };
        Ok(KnownName { name, written })
    };
    let mut statement = connection.prepare(sql).ok()?;
    let rows = statement.query_map(rusqlite::params_from_iter(parameters), named).ok()?;
    rows.collect::<Result<_, _>>().ok()
}
