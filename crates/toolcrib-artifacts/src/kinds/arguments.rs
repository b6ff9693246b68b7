//! Validation and typing of query arguments.

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolcrib_core::ToolError;

use super::{Query, QueryRequest};

/// The maximum number of reported problems.
const MOST_PROBLEMS: usize = 5;

/// For arguments with more values only the first problem is reported.
const MOST_EXPLAINED: usize = 10_000;

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

/// Validates arguments against the schema of their query; missing ones are an empty object.
///
/// # Errors
/// `input_invalid` with each invalid field and its expected type.
pub(crate) fn check(query: &Query, args: &Value) -> Result<(), ToolError> {
    let empty = Value::Object(Map::new());
    let args = if args.is_null() { &empty } else { args };
    let schema = query.schema_with(Map::new(), &[]);
    let validator = jsonschema::validator_for(&schema).map_err(|error| {
        ToolError::failed(format!("query `{}` cannot be validated", query.name))
            .caused_by(error.to_string())
    })?;
    if validator.is_valid(args) {
        return Ok(());
    }
    // The validator collects all errors eagerly: for many values only the first is requested.
    let problems: Vec<_> = if values(args) > MOST_EXPLAINED {
        validator.validate(args).err().iter().map(problem).collect()
    } else {
        validator.iter_errors(args).take(MOST_PROBLEMS).map(|error| problem(&error)).collect()
    };
    Err(invalid(&query.name, &problems.join("; ")))
}

/// Recursive: parsed JSON has limited depth.
fn values(args: &Value) -> usize {
    match args {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

fn invalid(query: &str, problem: &str) -> ToolError {
    ToolError::input_invalid(format!("the arguments of `{query}`: {problem}"))
}

/// The field and its expected type.
fn problem(error: &ValidationError<'_>) -> String {
    let field = error.instance_path().to_string();
    let field = field.trim_start_matches('/').replace('/', ".");
    let inside = |name: &str| match field.as_str() {
        "" => format!("`{name}`"),
        field => format!("`{field}.{name}`"),
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("{} is required", inside(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().map(|name| inside(name)).collect();
            format!("unknown: {}", names.join(", "))
        }
        _ if field.is_empty() => error.masked_with("all of it").to_string(),
        _ => format!("`{field}`: {}", error.masked_with("the value")),
    }
}
