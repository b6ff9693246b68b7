//! Validates arguments against the tool's full JSON Schema. The model reads which field is wrong
//! and what was expected, never the value.

use serde_json::Value;
use toolcrib_core::{ErrorCode, Tool};

use super::call::{Batch, Call, Failure};
use crate::validators::{Side, off::ValidationFailure};

/// The arguments, if they are valid JSON.
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

/// Stops at the call's time limit or when the call is cancelled.
pub(super) async fn validate(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &mut Call,
) -> Result<(), Failure> {
    as_json(tool, call)?;
    let Ok(args) = &mut call.args else { return Ok(()) };
    let validators = &batch.engine.validators;
    let allowed = tool.timeout().unwrap_or(batch.engine.limits.tool_timeout);
    let validated = match validators.at_once(tool, Side::Arguments, args) {
        Some(validated) => validated,
        None => {
            let side = Side::Arguments;
            Box::pin(validators.in_time(tool, side, args, allowed, batch.cancellation)).await
        }
    };
    let name = tool.name();
    let problems = validated.map_err(|not_validated| match not_validated {
        ValidationFailure::Schema(problem) => {
            let message = format!("the tool `{name}` cannot be called");
            let cause = format!("its schema cannot be enforced: {problem}");
            Failure::refused(ErrorCode::NotAvailable, message).caused_by(cause)
        }
        ValidationFailure::Cancelled => {
            Failure::refused(ErrorCode::Cancelled, "the run was cancelled")
        }
        ValidationFailure::TimedOut => {
            let message =
                format!("`{name}` was not called: its arguments were not checked in {allowed:?}");
            Failure::refused(ErrorCode::Timeout, message)
        }
        ValidationFailure::Broken(cause) => {
            let message = format!("the arguments of `{name}` could not be checked; pass less");
            Failure::refused(ErrorCode::InputInvalid, message).caused_by(cause)
        }
    })?;
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(
        ErrorCode::InputInvalid,
        format!(
            "the arguments of `{name}` do not match its schema:\n- {}\nCorrect them and call again.",
            problems.join("\n- ")
        ),
    ))
}
