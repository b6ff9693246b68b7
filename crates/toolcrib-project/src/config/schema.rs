//! Whether a JSON Schema is one.

use jsonschema::{Draft, PatternOptions, ValidationError, error::ValidationErrorKind};
use serde_json::Value as Json;

/// The types that JSON Schema knows.
pub(super) const TYPES: [&str; 7] =
    ["string", "integer", "number", "boolean", "array", "object", "null"];

/// What is wrong with a schema, and in which part of it.
#[derive(Debug)]
pub(crate) struct SchemaProblem {
    /// The JSON pointer of the part.
    pub(crate) pointer: String,
    pub(crate) message: String,
}

/// All that is wrong with a schema: against its meta-schema; if that is fine, what can be seen
/// only when it is compiled, such as a bad pattern or a reference to nowhere.
pub(crate) fn check_schema(schema: &Json) -> Vec<SchemaProblem> {
    let meta = match Draft::default().detect(schema) {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        _ => jsonschema::draft202012::meta::validator(),
    };
    let problems: Vec<_> = meta.iter_errors(schema).map(|error| problem(&error)).collect();
    if !problems.is_empty() {
        return problems;
    }
    // A schema that is too much work is not compiled: the project may have been found somewhere.
    if let Err(problem) = toolcrib_engine::check_schema_work(schema) {
        let message = format!("this is not a JSON Schema: {problem}");
        return vec![SchemaProblem { pointer: String::new(), message }];
    }
    jsonschema::options()
        // As calls are validated: in linear time, without look-around.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .err()
        .map(|error| problem(&error))
        .into_iter()
        .collect()
}

fn problem(error: &ValidationError<'_>) -> SchemaProblem {
    let pointer = error.instance_path().to_string();
    let message = match error.kind() {
        // The only choice in the meta-schema is a type or a list of them.
        ValidationErrorKind::AnyOf { .. } => {
            format!("it must be one of {}, or a list of them", TYPES.join(", "))
        }
        ValidationErrorKind::Referencing(_) => {
            "a `$ref` leads to nothing in the schema itself, and nothing is fetched".to_owned()
        }
        _ => error.to_string(),
    };
    let part = pointer.rsplit('/').next().unwrap_or_default();
    let part = if part.is_empty() { String::new() } else { format!("`{part}`: ") };
    SchemaProblem { message: format!("this is not a JSON Schema: {part}{message}"), pointer }
}
