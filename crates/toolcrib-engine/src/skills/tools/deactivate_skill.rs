use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{InvalidToolError, SkillId, Tool, ToolContext, ToolError};

use super::{closed, framework_tool, ids};
use crate::skills::{ActiveSkills, Skill, active::Request};

/// The name of the tool that deactivates a skill.
pub const DEACTIVATE_SKILL: &str = "deactivate_skill";

#[derive(Deserialize)]
struct Args {
    id: SkillId,
}

/// The tool with which a model deactivates a skill. It names all skills that the model may
/// activate, not only the active ones: its definition does not change when skills do.
pub(super) fn deactivate_skill(
    active: &Arc<ActiveSkills>,
    told: &[Arc<Skill>],
) -> Result<Tool, InvalidToolError> {
    let properties = json!({
        "id": { "type": "string", "enum": ids(told), "description": "The skill to deactivate." },
    });
    let active = Arc::clone(active);
    framework_tool(DEACTIVATE_SKILL)
        .description(
            "Deactivates a skill: from the next step on its tools and instructions no longer \
             apply.",
        )
        .input_schema(closed(&properties, &["id"]))
        .read_only()
        .idempotent()
        .handler(move |Args { id }: Args, cx: ToolContext| {
            let is_active = active.now().contains(&id);
            if is_active {
                active.request(&cx, Request::Deactivate(id.clone()));
            }
            async move {
                if is_active {
                    Ok(format!("Skill `{id}` is inactive from your next step on."))
                } else {
                    Err(ToolError::input_invalid(format!("skill `{id}` is not active")))
                }
            }
        })
}
