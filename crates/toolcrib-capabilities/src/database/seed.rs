//! Runs a seed script, and reports the position of an error.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{
    Batch, Connection, ErrorCode, Statement,
    fallible_iterator::FallibleIterator,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
};
use tokio_util::sync::CancellationToken;

use super::{
    DatabaseSpec,
    connection::{OPS_BETWEEN_LOOKS, configure, error_position},
    error::{DatabaseError, short_message},
    unknown::with_nearest,
};

/// The time limit of a seed: many times the time of a million rows.
const MOST_TIME: Duration = Duration::from_secs(10);

/// The size limit of a database created by a seed: 1 GiB.
const MOST_BYTES: i64 = 1024 * 1024 * 1024;

/// The size limit of a text, a blob or a row: 64 MiB.
const MOST_VALUE_BYTES: i32 = 64 * 1024 * 1024;

/// The error of a seed.
pub(crate) fn failed(spec: &DatabaseSpec, line: Option<usize>, problem: String) -> DatabaseError {
    DatabaseError::Seed {
        name: Arc::clone(&spec.name),
        seed: Arc::clone(&spec.seed.name),
        line,
        problem,
    }
}

/// Runs the script, statement by statement.
pub(crate) fn run(
    spec: &DatabaseSpec,
    connection: &mut Connection,
    cancel: &CancellationToken,
) -> Result<(), DatabaseError> {
    let too_long = Arc::new(AtomicBool::new(false));
    restrict(connection, cancel, &too_long)
        .map_err(|error| failed(spec, None, short_message(&error)))?;
    let script = &*spec.seed.sql;
    let mut statements = Batch::new(connection, script);
    // The start of the current statement, as far as known.
    let mut begin = 0;
    loop {
        let step = match statements.next() {
            Ok(None) => break,
            Ok(Some(mut statement)) => {
                let (from, to) = extent(&statement, script, begin);
                begin = from;
                run_to_end(&mut statement).map(|()| begin = to)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = step {
            if cancel.is_cancelled() {
                return Err(DatabaseError::Cancelled { name: Arc::clone(&spec.name) });
            }
            let at = error_position(&error, script)
                .unwrap_or_else(|| begin + blank(script.get(begin..).unwrap_or_default()));
            let problem = if too_long.load(Ordering::Relaxed) {
                let most = MOST_TIME.as_secs();
                format!(
                    "it takes more than {most} s; a recursive query needs an end, and rows that \
                     take so long are better imported by a tool"
                )
            } else {
                problem(&with_nearest(connection, error))
            };
            return Err(failed(spec, Some(line_at(script, at)), problem));
        }
    }
    if !connection.is_autocommit() {
        return Err(failed(spec, None, "it leaves a transaction open; add COMMIT".into()));
    }
    Ok(())
}

fn restrict(
    connection: &mut Connection,
    cancel: &CancellationToken,
    too_long: &Arc<AtomicBool>,
) -> rusqlite::Result<()> {
    configure(connection)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)?;
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    connection.pragma_update(None, "max_page_count", MOST_BYTES / page.max(1))?;
    connection.authorizer(Some(|cx: AuthContext<'_>| match cx.action {
        AuthAction::Attach { .. } => Authorization::Deny,
        // The limit above.
        AuthAction::Pragma { pragma_name, .. }
            if pragma_name.eq_ignore_ascii_case("max_page_count") =>
        {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    }))?;
    let (begun, cancel, too_long) = (Instant::now(), cancel.clone(), Arc::clone(too_long));
    connection.progress_handler(
        OPS_BETWEEN_LOOKS,
        Some(move || {
            let is_over = begun.elapsed() > MOST_TIME;
            too_long.fetch_or(is_over, Ordering::Relaxed);
            is_over || cancel.is_cancelled()
        }),
    )
}

fn run_to_end(statement: &mut Statement<'_>) -> rusqlite::Result<()> {
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

fn problem(error: &rusqlite::Error) -> String {
    if error.sqlite_error_code() == Some(ErrorCode::AuthorizationForStatementDenied) {
        return "a seed creates one file only, of limited size; remove ATTACH and VACUUM, and the \
            pragma max_page_count"
            .into();
    }
    short_message(error)
}

/// The range of the statement's text in the script. If it is not found, the range is empty, at the
/// end of the last statement that was found.
fn extent(statement: &Statement<'_>, script: &str, from: usize) -> (usize, usize) {
    let text = statement.expanded_sql().unwrap_or_default();
    let found = script.get(from..).and_then(|rest| rest.find(&text));
    found.map_or((from, from), |at| (from + at, from + at + text.len()))
}

/// The number of bytes of whitespace and comments before the first word.
fn blank(sql: &str) -> usize {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        let comment_end = if rest.starts_with("--") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 2)
        } else {
            return sql.len() - rest.len();
        };
        match comment_end.and_then(|end| rest.get(end..)) {
            Some(after) => rest = after,
            None => return sql.len(),
        }
    }
}

fn line_at(script: &str, at: usize) -> usize {
    script.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_text_ends_at_the_first_word() {
        for (sql, word) in [
            ("SELECT", 0),
            (" ;\n -- one\n/* two */ SELECT", 21),
            ("-- no end", 9),
            ("/* no end", 9),
            ("", 0),
        ] {
            assert_eq!(blank(sql), word, "{sql:?}");
        }
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!(line_at("a\nb\nc", 0), 1);
        assert_eq!(line_at("a\nb\nc", 2), 2);
        assert_eq!(line_at("a\nb\nc", 99), 3);
    }
}
