//! Holds arguments against the tool's full JSON Schema. The model reads which field is wrong and
//! what was expected, never the value.

use std::fmt::Write as _;

use serde_json::Value;
use toolcrib_core::{ErrorCode, Tool};

use super::{Batch, Call, Failure};

/// More problems than these are only counted.
const MOST_PROBLEMS: usize = 10;

pub(super) fn validate<'c>(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &'c Call,
) -> Result<&'c Value, Failure> {
    let args = call.args.as_ref().map_err(|not_json| {
        Failure::refused(
            ErrorCode::InputInvalid,
            format!(
                "the arguments of `{}` are not valid JSON ({}); pass one JSON object",
                tool.name(),
                not_json.problem
            ),
        )
    })?;
    let validator = batch.engine.validators.of(tool).map_err(|problem| {
        Failure::refused(
            ErrorCode::NotAvailable,
            format!("the tool `{}` cannot be called", tool.name()),
        )
        .caused_by(format!("its schema cannot be enforced: {problem}"))
    })?;
    let mut problems = String::new();
    let mut further = 0_usize;
    for (position, error) in validator.iter_errors(args).enumerate() {
        if position < MOST_PROBLEMS {
            let field = error.instance_path().to_string();
            let field = field.trim_start_matches('/').replace('/', ".");
            let expected = error.masked_with("the value");
            let _ = match field.as_str() {
                "" => write!(problems, "\n- {expected}"),
                field => write!(problems, "\n- `{field}`: {expected}"),
            };
        } else {
            further += 1;
        }
    }
    if problems.is_empty() {
        return Ok(args);
    }
    if further > 0 {
        let _ = write!(problems, "\n- and {further} more");
    }
    Err(Failure::refused(
        ErrorCode::InputInvalid,
        format!(
            "the arguments of `{}` do not fit its schema:{problems}\nCorrect them and call again.",
            tool.name()
        ),
    ))
}
