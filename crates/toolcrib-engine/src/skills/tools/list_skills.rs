use std::{fmt::Write as _, sync::Arc};

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{InvalidToolError, Tool, ToolContext};

use super::{closed, framework_tool};
use crate::skills::{ActiveSkills, Skill};

/// The name of the tool that lists skills.
pub const LIST_SKILLS: &str = "list_skills";

#[derive(Deserialize)]
struct Args {}

/// The tool with which a model lists the skills that it may activate in this turn, and the active
/// ones.
pub(super) fn list_skills(
    active: &Arc<ActiveSkills>,
    told: &[Arc<Skill>],
) -> Result<Tool, InvalidToolError> {
    let (active, told) = (Arc::clone(active), Arc::<[_]>::from(told));
    framework_tool(LIST_SKILLS)
        .description("Lists the skills that can be activated, and says which are active.")
        .input_schema(closed(&json!({}), &[]))
        .read_only()
        .idempotent()
        .handler(move |_: Args, _: ToolContext| {
            let now = active.now();
            let mut text = String::new();
            for skill in told.iter() {
                let (id, description) = (&skill.id, &skill.description);
                let state = match (now.last() == Some(id), now.contains(id)) {
                    (true, _) => " (active, the last)",
                    (_, true) => " (active)",
                    _ => "",
                };
                let _ = writeln!(text, "- {id}{state}: {description}");
            }
            if text.is_empty() {
                text.push_str("There is no skill that you may activate.");
            }
            let text = text.trim_end().to_owned();
            async move { text }
        })
}
