//! Running a seed script, and saying where it fails.

use std::sync::Arc;

use rusqlite::{
    Batch, Connection, ErrorCode, Statement,
    fallible_iterator::FallibleIterator,
    hooks::{AuthAction, AuthContext, Authorization},
};
use tokio_util::sync::CancellationToken;

use super::{
    DatabaseSpec,
    connection::{configure, error_position, watch},
    error::{DatabaseError, short_message},
};

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
    restrict(connection, cancel).map_err(|error| failed(spec, None, short_message(&error)))?;
    let script = &*spec.seed.sql;
    let mut statements = Batch::new(connection, script);
    // Where the statement at hand begins, as far as is known.
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
            return Err(failed(spec, Some(line_at(script, at)), problem(&error)));
        }
    }
    if !connection.is_autocommit() {
        return Err(failed(spec, None, "it leaves a transaction open; add COMMIT".into()));
    }
    Ok(())
}

fn restrict(connection: &mut Connection, cancel: &CancellationToken) -> rusqlite::Result<()> {
    configure(connection)?;
    connection.authorizer(Some(|cx: AuthContext<'_>| match cx.action {
        AuthAction::Attach { .. } => Authorization::Deny,
        _ => Authorization::Allow,
    }))?;
    watch(connection, cancel)
}

fn run_to_end(statement: &mut Statement<'_>) -> rusqlite::Result<()> {
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

fn problem(error: &rusqlite::Error) -> String {
    if error.sqlite_error_code() == Some(ErrorCode::AuthorizationForStatementDenied) {
        return "a seed makes one file only; leave ATTACH and VACUUM out".into();
    }
    short_message(error)
}

/// From where to where the statement's text stands in the script. Where it cannot be found, it is
/// taken to be empty, and what is reported is the end of the last one that was.
fn extent(statement: &Statement<'_>, script: &str, from: usize) -> (usize, usize) {
    let text = statement.expanded_sql().unwrap_or_default();
    let found = script.get(from..).and_then(|rest| rest.find(&text));
    found.map_or((from, from), |at| (from + at, from + at + text.len()))
}

/// How many bytes of space and comments stand before the first word.
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
