//! Holds arguments against the tool's full JSON Schema. The model reads which field is wrong and
//! what was expected, never the value.

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;
use toolcrib_core::{ErrorCode, Tool};

use super::{Batch, Call, Failure, shortened};

/// More problems than these are only counted.
const MOST_PROBLEMS: usize = 10;

/// The arguments, if they are JSON at all.
pub(super) fn as_json<'c>(tool: &Tool, call: &'c Call) -> Result<&'c Value, Failure> {
    call.args.as_ref().map_err(|not_json| {
        Failure::refused(
            ErrorCode::InputInvalid,
            format!(
                "the arguments of `{}` are not valid JSON ({}); pass one JSON object",
                tool.name(),
                not_json.problem
            ),
        )
    })
}

pub(super) fn validate(batch: &Batch<'_>, tool: &Tool, call: &Call) -> Result<(), Failure> {
    let args = as_json(tool, call)?;
    let validator = batch.engine.validators.of(tool).map_err(|problem| {
        Failure::refused(
            ErrorCode::NotAvailable,
            format!("the tool `{}` cannot be called", tool.name()),
        )
        .caused_by(format!("its schema cannot be enforced: {problem}"))
    })?;
    let mut problems = Vec::new();
    let mut further = 0_usize;
    for error in validator.iter_errors(args) {
        if problems.len() < MOST_PROBLEMS {
            problems.push(describe(&error, args));
        } else {
            further += 1;
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    if further > 0 {
        problems.push(format!("and {further} more"));
    }
    Err(Failure::refused(
        ErrorCode::InputInvalid,
        format!(
            "the arguments of `{}` do not fit its schema:\n- {}\nCorrect them and call again.",
            tool.name(),
            problems.join("\n- ")
        ),
    ))
}

/// One problem: the field and what was expected.
fn describe(error: &ValidationError<'_>, args: &Value) -> String {
    let pointer = error.instance_path().to_string();
    let field = pointer.trim_start_matches('/').replace('/', ".");
    let inside = |name: &str| match field.as_str() {
        "" => format!("`{}`", shortened(name)),
        field => format!("`{field}.{}`", shortened(name)),
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().map(|name| inside(name)).collect();
            format!("{}: there is no such argument", names.join(", "))
        }
        ValidationErrorKind::Required { property } => {
            format!("{}: it is required", inside(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::FalseSchema => {
            // In a closed object without properties the path ends before the name.
            let instance: &Value = error.instance();
            let parent = args.pointer(&pointer).and_then(Value::as_object);
            let name =
                parent.into_iter().flatten().find(|(_, value)| std::ptr::eq(*value, instance));
            let named = name.map_or_else(|| format!("`{field}`"), |(name, _)| inside(name));
            format!("{named}: there is no such argument")
        }
        _ if field.is_empty() => error.masked_with("all of it").to_string(),
        _ => format!("`{field}`: {}", error.masked_with("the value")),
    }
}
