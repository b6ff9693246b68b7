use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{InvalidTool, SkillId, Tool, ToolContext, ToolError};

use super::{closed, framework_tool, ids};
use crate::skills::{ActiveSkills, Skill, active::Request};

/// The name of the tool that puts an active skill away.
pub const DEACTIVATE_SKILL: &str = "deactivate_skill";

#[derive(Deserialize)]
struct Args {
    id: SkillId,
}

/// The tool by which a model puts a skill away. It names all skills that the model may activate, not
/// those that are active: its definition stays as it is while skills come and go.
pub(super) fn deactivate_skill(
    active: &Arc<ActiveSkills>,
    told: &[Arc<Skill>],
) -> Result<Tool, InvalidTool> {
    let properties = json!({
        "id": { "type": "string", "enum": ids(told), "description": "The skill to put away." },
    });
    let active = Arc::clone(active);
    framework_tool(DEACTIVATE_SKILL)
        .description(
            "Puts an active skill away: from the next step on its tools and instructions no longer \
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
                    Ok(format!("Skill `{id}` is put away from your next step on."))
                } else {
                    Err(ToolError::input_invalid(format!("skill `{id}` is not active")))
                }
            }
        })
}
