//! Validation and typing of query arguments.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use toolcrib_core::{__internal::CompiledSchema, ToolError};

use super::kind::{Query, QueryRequest};

/// Deserializes the arguments of a query into a type that denies unknown fields.
///
/// # Errors
/// `input_invalid` with serde's message. It may quote a value, because the arguments are the
/// model's.
pub fn arguments<T: DeserializeOwned>(asked: &QueryRequest<'_>) -> Result<T, ToolError> {
    let empty = Value::Object(Map::new());
    let args = if asked.args.is_null() { &empty } else { asked.args };
    T::deserialize(args).map_err(|error| invalid(asked.query, &error.to_string()))
}

/// Reads the arguments of a query that has none.
pub(super) fn no_arguments(asked: &QueryRequest<'_>) -> Result<(), ToolError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoArgs {}
    arguments(asked).map(|NoArgs {}| ())
}

/// Validates arguments against the schema of their query; missing ones are an empty object.
///
/// # Errors
/// `input_invalid` with each invalid field and its expected type.
pub(crate) fn check(query: &Query, args: &Value) -> Result<(), ToolError> {
    let empty = Value::Object(Map::new());
    let args = if args.is_null() { &empty } else { args };
    let schema = query.schema_with(Map::new(), &[]);
    let schema = CompiledSchema::new(&schema).map_err(|problem| {
        ToolError::failed(format!("query `{}` cannot be validated", query.name))
            .caused_by(problem.to_string())
    })?;
    match schema.problems(args, "argument") {
        problems if problems.is_empty() => Ok(()),
        problems => Err(invalid(&query.name, &problems.join("; "))),
    }
}

fn invalid(query: &str, problem: &str) -> ToolError {
    ToolError::input_invalid(format!("the arguments of `{query}`: {problem}"))
}
