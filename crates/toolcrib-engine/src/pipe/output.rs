//! Checks a result against the tool's output schema: a result that does not match is never passed
//! on as a success.

use serde_json::{Value, json};
use toolcrib_core::{__internal::nests_too_deep, ErrorCode, Tool, ToolOutput};

use super::{
    call::{Batch, Failure},
    sanitize::SanitizedResult,
    structured::is_data_note,
};
use crate::validators::{Side, off::ValidationFailure};

/// The output, if it matches the tool's declaration. If the tool may have changed something, its
/// effect is unknown, so the error code is the one that is never retried.
pub(super) async fn fitting(
    batch: &Batch<'_>,
    tool: &Tool,
    mut output: ToolOutput,
) -> Result<ToolOutput, Failure> {
    if tool.output_schema().is_none() {
        return Ok(output);
    }
    let problems = match &mut output.structured {
        None => vec!["there is no structured data".to_owned()],
        Some(data) if nests_too_deep(data) => vec!["the data nests too deep".to_owned()],
        Some(data) => problems(batch, tool, data).await,
    };
    if problems.is_empty() {
        return Ok(output);
    }
    let problems = problems.join("\n- ");
    let (code, advice) = if tool.annotations().read_only {
        (ErrorCode::ExecutionFailed, "Do not rely on it.")
    } else {
        let advice = "The call was made and may have had its effect: check before trying again.";
        (ErrorCode::OutcomeUnknown, advice)
    };
    let mut message = format!(
        "`{}` returned a result that does not match its output schema:\n- {problems}\n{advice}",
        tool.name()
    );
    if !output.value.is_empty() {
        message = format!("{message} It said:\n{}", output.value);
    }
    Err(Failure {
        by_tool: true,
        cost_usd: output.cost_usd,
        ..Failure::refused(code, message)
            .caused_by(format!("its output does not match its output schema:\n- {problems}"))
    })
}

async fn problems(batch: &Batch<'_>, tool: &Tool, data: &mut Value) -> Vec<String> {
    let validators = &batch.engine.validators;
    let validated = match validators.at_once(tool, Side::Output, data) {
        Some(validated) => validated,
        None => {
            let allowed = tool.timeout().unwrap_or(batch.engine.limits.tool_timeout);
            let (side, cancellation) = (Side::Output, batch.cancellation);
            Box::pin(validators.in_time(tool, side, data, allowed, cancellation)).await
        }
    };
    validated.unwrap_or_else(|not_validated| {
        vec![match not_validated {
            ValidationFailure::Schema(problem) => {
                format!("the schema cannot be enforced: {problem}")
            }
            ValidationFailure::Cancelled => {
                "the run was cancelled before it was checked".to_owned()
            }
            ValidationFailure::TimedOut => "it was not checked in time".to_owned(),
            ValidationFailure::Broken(cause) => format!("it could not be checked: {cause}"),
        }]
    })
}

/// Replaces data by a note if it matched and no longer does: one of its texts was redacted, cut or
/// defused, and is no longer in an `enum` or does not match a `pattern`.
pub(super) fn still_fitting(batch: &Batch<'_>, tool: &Tool, clean: &mut SanitizedResult) {
    let Some(data) = &clean.0.structured else { return };
    if let Some(Ok(validator)) = batch.engine.validators.of(tool, Side::Output)
        && !is_data_note(data)
        && !validator.fits_at_once(data)
    {
        clean.0.structured = Some(json!({ "truncated": true, "reason": DOES_NOT_FIT }));
    }
}

/// The reason in a note.
const DOES_NOT_FIT: &str = "no longer matches its schema";
