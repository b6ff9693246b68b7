//! Everything that can be said of an SQL tool before it is called.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use toolcrib_core::{Tool, ToolContext};
use toolcrib_scope::database::{Database, DatabaseHandle, StatementDescription, StatementError};

use super::{
    SqlStatement, SqlToolSpec,
    arguments::Parameter,
    error::{SqlToolError, SqlToolErrors},
    run::{Body, Prepared},
};
use crate::making::{Parameters, ToolErrors};

pub(super) fn build(spec: SqlToolSpec, database: &Database) -> Result<Tool, SqlToolErrors> {
    let SqlToolSpec { mut declaration, statements: declared, max_rows } = spec;
    declaration.close_schema();
    let handle =
        if declaration.annotations.read_only { database.read_only() } else { database.writable() };
    let parameters = Parameter::all_of(&declaration.input_schema);
    let mut check = Check {
        handle: &handle,
        parameters: Parameters::of(&declaration.input_schema),
        errors: Vec::new(),
    };
    if declared.is_empty() {
        // That nothing uses its parameters follows from that.
        check.parameters.not_all_read();
        check.errors.push(SqlToolError::NoStatement);
    }
    if max_rows == 0 {
        check.errors.push(SqlToolError::NoRows);
    }
    let mut statements = Vec::with_capacity(declared.len());
    for (index, SqlStatement { sql, on_empty }) in declared.into_iter().enumerate() {
        if let Some(bound) = check.statement(index, &sql) {
            statements.push(Prepared { sql, on_empty, bound });
        }
    }
    let mut errors = check.errors;
    let unused = check.parameters.unused().into_iter();
    errors.extend(unused.map(|parameter| SqlToolError::UnusedParameter { parameter }));
    let name = declaration.name.clone();
    let body = Arc::new(Body { handle, parameters, statements, max_rows });
    let made = declaration
        .into_builder()
        .handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
    ToolErrors::or_tool(name, errors, made)
}

struct Check<'a> {
    handle: &'a DatabaseHandle,
    parameters: Parameters<'a>,
    errors: Vec<SqlToolError>,
}

impl Check<'_> {
    /// Checks one statement; the positions of the parameters that it uses, if it can be read.
    fn statement(&mut self, statement: usize, sql: &str) -> Option<Vec<usize>> {
        match self.handle.describe(sql) {
            Ok(description) => Some(self.described(statement, description)),
            Err(error) => {
                self.parameters.not_all_read();
                self.errors.push(match error {
                    StatementError::Writes => SqlToolError::Writes { statement },
                    source => SqlToolError::Statement { statement, source },
                });
                None
            }
        }
    }

    fn described(&mut self, statement: usize, description: StatementDescription) -> Vec<usize> {
        if self.handle.is_read_only() && !description.read_only {
            self.errors.push(SqlToolError::Writes { statement });
        }
        let mut columns = HashSet::new();
        let mut reported = HashSet::new();
        for column in &description.columns {
            if !columns.insert(column) && reported.insert(column) {
                let column = column.clone();
                self.errors.push(SqlToolError::DuplicateColumn { statement, column });
            }
        }
        let mut bound = Vec::with_capacity(description.parameters.len());
        for parameter in description.parameters {
            let Some(name) = parameter.strip_prefix(':') else {
                self.errors.push(SqlToolError::NotByName { statement, parameter });
                continue;
            };
            match self.parameters.uses(name) {
                Ok(position) => bound.push(position),
                Err(declared) => {
                    let parameter = name.to_owned();
                    let unknown = SqlToolError::UnknownParameter { statement, parameter, declared };
                    self.errors.push(unknown);
                }
            }
        }
        bound
    }
}
