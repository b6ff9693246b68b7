//! Tools of the kind `sql`.

use toolcrib_config::Spot;
use toolcrib_core::Tool;
use toolcrib_scope::database::Database;
use toolcrib_tools::sql::{DEFAULT_MAX_ROWS, SqlStatement, SqlToolError, SqlToolSpec};

use super::Source;
use crate::{build::databases::Databases, config::SqlSection};

pub(super) fn build(sql: &SqlSection, source: &Source<'_>, databases: &Databases) -> Option<Tool> {
    let database = databases.of_tool(
        sql.database.as_ref(),
        &source.section.at,
        source.names.grant.as_deref(),
        source.problems,
    )?;
    if sql.statements.is_empty() {
        return None;
    }
    let statements = sql.statements.iter().map(|statement| SqlStatement {
        sql: statement.sql.value.to_string(),
        on_empty: statement.on_empty.as_deref().map(str::to_owned),
    });
    let spec = SqlToolSpec {
        max_rows: sql.max_rows.unwrap_or(DEFAULT_MAX_ROWS),
        ..SqlToolSpec::new(source.declaration.clone(), statements)
    };
    match spec.build(database) {
        Ok(tool) => Some(tool),
        Err(errors) => {
            for error in errors.errors {
                if let Some(at) = place(&error, sql, source) {
                    source.refuse(&at, error.to_string(), may_be_outdated(&error, database));
                }
            }
            None
        }
    }
}

/// Where it is wrong: at the very character if that can be told. `None` for what was recorded when
/// the section was read, and for what only follows from that.
fn place(error: &SqlToolError, sql: &SqlSection, source: &Source<'_>) -> Option<Spot> {
    let section = source.section;
    match error {
        SqlToolError::Definition(_) => source.place_of_definition(),
        SqlToolError::UnknownParameter { .. } | SqlToolError::UnusedParameter { .. }
            if !source.schema_is_sound =>
        {
            None
        }
        SqlToolError::UnusedParameter { parameter } => {
            Some(section.input.place_of(parameter, &section.at))
        }
        _ => {
            let statement = error.statement().and_then(|index| sql.statements.get(index));
            Some(statement.map_or_else(
                || section.at.clone(),
                |statement| {
                    let sql = &statement.sql;
                    sql.place(match error {
                        SqlToolError::UnknownParameter { parameter, .. } => {
                            find_parameter(&sql.value, parameter)
                        }
                        _ => error.offset(),
                    })
                },
            ))
        }
    }
}

/// What SQLite does not know may be in the seed and not yet in a database made from an older one.
fn may_be_outdated(error: &SqlToolError, database: &Database) -> Option<String> {
    let is_unknown = error.offset().is_some();
    (is_unknown && database.seed_has_changed()).then(|| {
        format!(
            "the seed has changed since the database {} was made from it; `--fresh` makes a new one \
             and keeps the old file",
            database.file().display()
        )
    })
}

/// Where `:name` stands, and not merely the beginning of a longer name.
fn find_parameter(sql: &str, name: &str) -> Option<usize> {
    let written = format!(":{name}");
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    sql.match_indices(&written)
        .map(|(offset, _)| offset)
        .find(|offset| sql.get(offset + written.len()..).is_some_and(ends))
}
