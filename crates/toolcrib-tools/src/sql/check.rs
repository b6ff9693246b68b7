//! Checks of an SQL tool before its first call.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use toolcrib_capabilities::database::{StatementDescription, StatementError};
use toolcrib_core::{Tool, ToolContext};

use super::{
    SqlDatabase, SqlHandle, SqlStatement, SqlToolSpec,
    arguments::Parameter,
    run::{Body, PreparedStatement},
};
use crate::{
    ToolErrors,
    findings::{Field, Findings},
    making::declare_or_use,
};

pub(super) fn build(spec: SqlToolSpec, database: &SqlDatabase) -> Result<Tool, ToolErrors> {
    let SqlToolSpec { mut declaration, statements: declared, max_rows } = spec;
    declaration.close_schema();
    declaration.annotations.read_only |= !database.is_writable();
    let handle = database.handle(declaration.annotations.read_only);
    let parameters = Parameter::all_of(&declaration.input_schema);
    let mut check = Check { handle: &handle, database, found: Findings::of(&declaration) };
    if declared.is_empty() {
        // Unused parameters are a consequence.
        check.found.parameters.not_all_read();
        check.wrong("/statements", None, "it has no statement; write at least one");
    }
    if max_rows == 0 {
        check.wrong("/max_rows", None, "`max_rows` is 0; it must be at least 1");
    }
    let mut statements = Vec::with_capacity(declared.len());
    for (index, SqlStatement { sql, on_empty }) in declared.into_iter().enumerate() {
        if let Some(bound) = check.statement(index, &sql) {
            statements.push(PreparedStatement { sql, on_empty, bound });
        }
    }
    check.found.report_unused_as(
        |_| String::new(),
        |name| format!("no statement uses the parameter `{name}`; use it as `:{name}` or drop it"),
    );
    let found = check.found.finish();
    let name = declaration.name.clone();
    let timeout = declaration.timeout;
    let body = Arc::new(Body { handle, parameters, statements, max_rows, timeout });
    let made = declaration
        .into_builder()
        .handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
    found.or_tool(name, made).map(|tool| unless_withheld(tool, database))
}

/// The tool, not available if those of its database are not offered.
pub(crate) fn unless_withheld(tool: Tool, database: &SqlDatabase) -> Tool {
    match database.withheld_reason().map(ToString::to_string) {
        Some(reason) => tool.available_if(move || Err(reason.clone())),
        None => tool,
    }
}

struct Check<'a> {
    handle: &'a SqlHandle,
    database: &'a SqlDatabase,
    found: Findings<'a>,
}

impl Check<'_> {
    fn wrong(&mut self, pointer: &str, offset: Option<usize>, message: &str) {
        self.found.wrong(&Field::new("", pointer), offset, message);
    }

    /// Checks one statement; the positions of the parameters that it uses, if it can be read.
    fn statement(&mut self, statement: usize, sql: &str) -> Option<Vec<usize>> {
        if self.found.is_unreadable(sql) {
            self.found.parameters.not_all_read();
            return None;
        }
        if self.database.is_held() {
            self.found.parameters.not_all_read();
            return Some(Vec::new());
        }
        let field = Field::new("", format!("/statements/{statement}/sql"));
        let number = statement + 1;
        match self.handle.describe(sql) {
            Ok(description) => Some(self.described(&field, number, sql, description)),
            Err(error) => {
                self.found.parameters.not_all_read();
                match error {
                    StatementError::Writes => self.writes(&field, number),
                    StatementError::Sql { offset: Some(offset), .. } => {
                        let message = format!("statement {number}: {error}");
                        let help = self.may_be_outdated();
                        self.found.wrong_with(&field, Some(offset), message, help);
                    }
                    _ => self.found.wrong(&field, None, format!("statement {number}: {error}")),
                }
                None
            }
        }
    }

    fn writes(&mut self, field: &Field, number: usize) {
        let message = if self.database.is_writable() {
            format!(
                "statement {number} writes, and the tool is declared `read_only`; drop one or the \
                 other"
            )
        } else {
            format!(
                "statement {number} writes, and the database `{0}` is read-only; write `writable = \
                 true` below [database.{0}] to permit it",
                self.database.name()
            )
        };
        self.found.wrong(field, None, message);
    }

    /// A name that SQLite does not know may be in the seed, and not in a database that was made
    /// from an older one.
    fn may_be_outdated(&self) -> Option<String> {
        match self.database {
            SqlDatabase::Sqlite(database) if database.seed_has_changed() => Some(format!(
                "the seed has changed since the database {} was made from it; `--fresh` makes a \
                 new one and keeps the old file",
                database.file().display()
            )),
            _ => None,
        }
    }

    fn described(
        &mut self,
        field: &Field,
        number: usize,
        sql: &str,
        description: StatementDescription,
    ) -> Vec<usize> {
        if self.handle.is_read_only() && !description.read_only {
            self.writes(field, number);
        }
        let mut columns = HashSet::new();
        let mut reported = HashSet::new();
        for column in &description.columns {
            if !columns.insert(column) && reported.insert(column) {
                let message = format!(
                    "statement {number} gives two columns named `{column}`; rename one with `AS`"
                );
                self.found.wrong(field, None, message);
            }
        }
        let mut bound = Vec::with_capacity(description.parameters.len());
        for parameter in description.parameters {
            let Some(name) = parameter.strip_prefix(':') else {
                let message = format!(
                    "statement {number} has the parameter `{parameter}`; write it as `:name`, with \
                     the name of a property of the input schema"
                );
                self.found.wrong(field, None, message);
                continue;
            };
            match self.found.parameters.uses(name) {
                Ok(position) => bound.push(position),
                Err(declared) => {
                    let message = format!(
                        "statement {number} uses `:{name}`, and there is no parameter of that \
                         name; {}",
                        declare_or_use(&declared)
                    );
                    self.found.wrong(field, find_parameter(sql, name), message);
                }
            }
        }
        bound
    }
}

/// The byte of `:name`, as a whole name.
fn find_parameter(sql: &str, name: &str) -> Option<usize> {
    let written = format!(":{name}");
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    sql.match_indices(&written)
        .map(|(offset, _)| offset)
        .find(|offset| sql.get(offset + written.len()..).is_some_and(ends))
}
