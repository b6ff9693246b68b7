//! Validation of JSON Schemas.

use jsonschema::{Draft, PatternOptions, ValidationError, error::ValidationErrorKind};
use serde_json::Value as Json;
use toolcrib_core::__internal::{CompiledSchema, check_schema_work};

/// The types of JSON Schema.
pub(crate) const TYPES: [&str; 7] =
    ["string", "integer", "number", "boolean", "array", "object", "null"];

/// A problem of a schema, and the part that has it.
#[derive(Debug)]
pub(crate) struct SchemaProblem {
    /// The JSON pointer of the part.
    pub(crate) pointer: String,
    pub(crate) message: String,
}

/// All problems of a schema: against its meta-schema; if there are none, those that only compiling
/// shows, such as a bad pattern or an unresolvable reference.
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
    // A schema that takes too much work is not compiled: the project may be untrusted.
    if let Err(problem) = check_schema_work(schema) {
        let message = format!("this is not a JSON Schema: {problem}");
        return vec![SchemaProblem { pointer: String::new(), message }];
    }
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .err()
        // A pattern that is not linear may be one of the engine that validates calls in bounded steps.
        .filter(|_| CompiledSchema::new(schema).is_err())
        .map(|error| problem(&error))
        .into_iter()
        .collect()
}

fn problem(error: &ValidationError<'_>) -> SchemaProblem {
    let pointer = error.instance_path().to_string();
    let message = match error.kind() {
        // The only alternative in the meta-schema is a type or a list of types.
        ValidationErrorKind::AnyOf { .. } => {
            format!("it must be one of {}, or a list of them", TYPES.join(", "))
        }
        ValidationErrorKind::Referencing(_) => {
            "a `$ref` has no target in the schema itself, and schemas are not fetched".to_owned()
        }
        ValidationErrorKind::Format { format } if *format == "regex" => {
            "the pattern cannot be read: it is not one of ECMA-262, or it is too large".to_owned()
        }
        _ => error.to_string(),
    };
    let part = pointer.rsplit('/').next().unwrap_or_default();
    let part = if part.is_empty() { String::new() } else { format!("`{part}`: ") };
    SchemaProblem { message: format!("this is not a JSON Schema: {part}{message}"), pointer }
}
