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

pub(super) fn build(spec: SqlToolSpec, database: &Database) -> Result<Tool, SqlToolErrors> {
    let SqlToolSpec { mut declaration, statements: declared, max_rows } = spec;
    declaration.close_schema();
    let handle =
        if declaration.annotations.read_only { database.read_only() } else { database.writable() };
    let parameters = Parameter::all_of(&declaration.input_schema);
    let mut check = Check { handle: &handle, parameters: &parameters, errors: Vec::new() };
    if declared.is_empty() {
        check.errors.push(SqlToolError::NoStatement);
    }
    if max_rows == 0 {
        check.errors.push(SqlToolError::NoRows);
    }
    let mut used = HashSet::new();
    let mut all_read = !declared.is_empty();
    let mut statements = Vec::with_capacity(declared.len());
    for (index, SqlStatement { sql, on_empty }) in declared.into_iter().enumerate() {
        match check.statement(index, &sql) {
            Some(bound) => {
                used.extend(bound.iter().copied());
                statements.push(Prepared { sql, on_empty, bound });
            }
            // What it uses is not known, so nothing can be called unused.
            None => all_read = false,
        }
    }
    let mut errors = check.errors;
    if all_read {
        let unused = parameters.iter().enumerate().filter(|(position, _)| !used.contains(position));
        errors.extend(unused.map(|(_, parameter)| SqlToolError::UnusedParameter {
            parameter: parameter.name.clone(),
        }));
    }
    let tool = declaration.name.clone();
    let body = Arc::new(Body { handle, parameters, statements, max_rows });
    let made = declaration
        .into_builder()
        .handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
    match made {
        Ok(tool) if errors.is_empty() => return Ok(tool),
        Ok(_) => {}
        Err(error) => errors.insert(0, error.into()),
    }
    Err(SqlToolErrors { tool, errors })
}

struct Check<'a> {
    handle: &'a DatabaseHandle,
    parameters: &'a [Parameter],
    errors: Vec<SqlToolError>,
}

impl Check<'_> {
    /// Checks one statement; the positions of the parameters that it uses, if it can be read.
    fn statement(&mut self, statement: usize, sql: &str) -> Option<Vec<usize>> {
        match self.handle.describe(sql) {
            Ok(description) => Some(self.described(statement, description)),
            Err(error) => {
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
            match self.parameters.iter().position(|declared| declared.name == name) {
                Some(position) => bound.push(position),
                None => self.errors.push(SqlToolError::UnknownParameter {
                    statement,
                    parameter: name.to_owned(),
                    declared: self.parameters.iter().map(|p| p.name.clone()).collect(),
                }),
            }
        }
        bound
    }
}
