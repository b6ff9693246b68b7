//! Everything that can be said of an SQL tool before it is called.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};
use toolcrib_core::{Tool, ToolBuilder, ToolContext};
use toolcrib_scope::database::{Database, DatabaseHandle, StatementDescription, StatementError};

use super::{
    SqlStatement, SqlToolSpec,
    arguments::Parameter,
    error::{SqlToolError, SqlToolErrors},
    run::{Body, Prepared},
};

pub(super) fn build(mut spec: SqlToolSpec, database: &Database) -> Result<Tool, SqlToolErrors> {
    close(&mut spec.input_schema);
    let handle =
        if spec.annotations.read_only { database.read_only() } else { database.writable() };
    let parameters = Parameter::all_of(&spec.input_schema);
    let mut check = Check { handle: &handle, parameters: &parameters, errors: Vec::new() };
    if spec.statements.is_empty() {
        check.errors.push(SqlToolError::NoStatement);
    }
    if spec.max_rows == 0 {
        check.errors.push(SqlToolError::NoRows);
    }
    let mut used = HashSet::new();
    let mut all_read = !spec.statements.is_empty();
    let mut statements = Vec::with_capacity(spec.statements.len());
    for (index, SqlStatement { sql, on_empty }) in
        std::mem::take(&mut spec.statements).into_iter().enumerate()
    {
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
    let tool = spec.name.clone();
    let body = Arc::new(Body { handle, parameters, statements, max_rows: spec.max_rows });
    let made =
        builder(spec).handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
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

/// A model that invents an argument is told so, instead of having it dropped.
fn close(schema: &mut Value) {
    if let Value::Object(schema) = schema {
        schema.insert("additionalProperties".into(), json!(false));
    }
}

fn builder(spec: SqlToolSpec) -> ToolBuilder {
    let mut builder = Tool::builder(spec.name)
        .description(spec.description)
        .input_schema(spec.input_schema)
        .annotations(spec.annotations);
    if let Some(toolset) = spec.toolset {
        builder = builder.toolset(toolset);
    }
    if let Some(chars) = spec.max_result_chars {
        builder = builder.max_result_chars(chars);
    }
    if let Some(timeout) = spec.timeout {
        builder = builder.timeout(timeout);
    }
    if spec.always_include {
        builder = builder.always_include();
    }
    if spec.untrusted {
        builder = builder.untrusted();
    }
    if let Some(origin) = spec.origin {
        builder = builder.origin(origin);
    }
    builder
}
