//! Holds arguments against the tool's full JSON Schema. The model reads which field is wrong and
//! what was expected, never the value.

use serde_json::Value;
use toolcrib_core::{ErrorCode, Tool};

use super::{Batch, Call, Failure};
use crate::problems::problems;

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
    let problems = problems(&validator, args, "argument");
    if problems.is_empty() {
        return Ok(());
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
