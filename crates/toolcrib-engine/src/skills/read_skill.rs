use std::{fmt::Write as _, sync::Arc};

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{
    Catalog, InvalidTool, ListContext, Listing, SkillId, Tool, ToolContext, ToolError, ToolProvider,
};

use super::{ActiveSkills, Skills};

/// The name of the tool that activates a skill.
pub const READ_SKILL: &str = "read_skill";

#[derive(Deserialize)]
struct Args {
    id: SkillId,
}

/// Offers one turn's `read_skill`.
pub(crate) struct SkillsProvider(Tool);

impl SkillsProvider {
    pub(crate) fn new(
        skills: &Arc<Skills>,
        active: &Arc<ActiveSkills>,
    ) -> Result<Self, InvalidTool> {
        read_skill(skills, active).map(Self)
    }
}

impl ToolProvider for SkillsProvider {
    fn id(&self) -> &str {
        "skills"
    }

    fn list(self: Arc<Self>, _cx: &ListContext, mut into: Catalog) -> Listing {
        into.offer(self.0.clone());
        Listing::now(into)
    }
}

/// The tool by which a model activates a skill of this turn: offered as soon as there is one.
/// The body is ours, so it comes back unfenced; its tools are offered from the next iteration.
fn read_skill(skills: &Arc<Skills>, active: &Arc<ActiveSkills>) -> Result<Tool, InvalidTool> {
    let mut description = String::from(
        "Activates a skill: returns its instructions, and offers its tools from the next step on. \
         Skills:",
    );
    for skill in skills.iter() {
        let _ = write!(description, "\n- {}: {}", skill.id, skill.description);
    }
    let ids: Vec<_> = skills.iter().map(|skill| skill.id.as_str()).collect();
    let (skills, active) = (Arc::clone(skills), Arc::clone(active));
    Tool::builder(READ_SKILL)
        .description(description)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "enum": ids, "description": "The skill to activate." },
            },
            "required": ["id"],
            "additionalProperties": false,
        }))
        .origin("skills")
        .read_only()
        .idempotent()
        .framework()
        .handler(move |args: Args, cx: ToolContext| {
            let text = skills.get(&args.id).map(|skill| {
                active.request(&cx, &skill.id);
                format!(
                    "Skill `{}` is active. Its tools are offered from your next step on.\n\n{}",
                    skill.id, skill.body
                )
            });
            // The schema lets no other id through.
            async move { text.ok_or_else(|| ToolError::input_invalid("there is no such skill")) }
        })
}
