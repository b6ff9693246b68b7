use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{InvalidToolError, Tool, ToolContext, ToolError};

use super::{closed, framework_tool};
use crate::skills::{
    active::{ActiveSkills, Request},
    steps::{OnSkip, SKIP_STEP},
};

/// In characters. A reason is for people who read the record later.
const MAX_REASON: usize = 500;

#[derive(Deserialize)]
struct Args {
    reason: Arc<str>,
}

/// The tool with which a model requests skipping the current step of the skill activated last.
pub(super) fn skip_step(active: &Arc<ActiveSkills>) -> Result<Tool, InvalidToolError> {
    let properties = json!({
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_REASON,
            "description": "Why the step cannot or need not be done. It is recorded.",
        },
    });
    let active = Arc::clone(active);
    framework_tool(SKIP_STEP)
        .description("Requests to skip the current step of the active skill, with a reason.")
        .input_schema(closed(&properties, &["reason"]))
        .handler(move |Args { reason }: Args, cx: ToolContext| {
            let answer = active.what_skipping_does().map(|(on_skip, place)| {
                active.request(&cx, Request::Skip { reason });
                match on_skip {
                    OnSkip::Advance => format!("The step is skipped. {place}"),
                    OnSkip::Hold => {
                        format!("Your reason is recorded. This skill does not allow skipping steps. {place}")
                    }
                }
            });
            async move { answer.ok_or_else(|| ToolError::input_invalid("there is no step to skip")) }
        })
}
