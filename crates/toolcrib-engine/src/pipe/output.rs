//! Holds a result against the tool's output schema: what does not fit is never passed on as a good
//! result.

use serde_json::json;
use toolcrib_core::{ErrorCode, Tool, ToolOutput, nests_too_deep};

use super::{Batch, Failure, sanitise::Clean, structured::is_data_note};
use crate::problems::problems;

/// The output, if it is what its tool declares. One of a tool that may have changed something is not
/// known to be without effect, so its code is the one that is never repeated.
pub(super) fn fitting(
    batch: &Batch<'_>,
    tool: &Tool,
    output: ToolOutput,
) -> Result<ToolOutput, Failure> {
    let Some(validator) = batch.engine.validators.of_output(tool) else {
        return Ok(output);
    };
    let problems = match (&validator, &output.structured) {
        (Err(problem), _) => vec![format!("the schema cannot be enforced: {problem}")],
        (_, None) => vec!["there is no structured data".to_owned()],
        (_, Some(data)) if nests_too_deep(data) => vec!["the data nests too deep".to_owned()],
        (Ok(validator), Some(data)) => problems(validator, data, "field"),
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
        "`{}` answered with something else than its output schema declares:\n- {problems}\n{advice}",
        tool.name()
    );
    if !output.value.is_empty() {
        message = format!("{message} It said:\n{}", output.value);
    }
    Err(Failure {
        by_tool: true,
        cost_usd: output.cost_usd,
        ..Failure::refused(code, message)
            .caused_by(format!("its output does not fit its output schema:\n- {problems}"))
    })
}

/// Replaces data by a note where it fit and does not any more: a text of it was redacted, cut or
/// defused, and is no longer one of an `enum`, or none that a `pattern` matches.
pub(super) fn still_fitting(batch: &Batch<'_>, tool: &Tool, clean: &mut Clean) {
    let Some(data) = &clean.0.structured else { return };
    if let Some(Ok(validator)) = batch.engine.validators.of_output(tool)
        && !is_data_note(data)
        && !validator.is_valid(data)
    {
        clean.0.structured = Some(json!({ "truncated": true, "reason": DOES_NOT_FIT }));
    }
}

/// What stands in a note.
const DOES_NOT_FIT: &str = "no longer fits its schema";
