//! What a model activates, puts away and reads skills by. One file per tool.

mod deactivate_skill;
mod list_skills;
mod read_skill;
mod skip_step;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{Catalog, InvalidTool, ListContext, Listing, Tool, ToolBuilder, ToolProvider};

pub(crate) use self::read_skill::read_skill_as_judged;
pub use self::{
    deactivate_skill::DEACTIVATE_SKILL, list_skills::LIST_SKILLS, read_skill::READ_SKILL,
    skip_step::SKIP_STEP,
};
use super::{ActiveSkills, Skill};

/// The names of the tools that stand for skills. No tool of the baseline may have one of them while
/// there are skills.
pub const SKILL_TOOLS: [&str; 4] = [READ_SKILL, LIST_SKILLS, DEACTIVATE_SKILL, SKIP_STEP];

/// Offers the tools of one turn that stand for its skills: the same ones throughout, but for
/// `skip_step`, which is there while there is a step to skip. The menu changes with each step anyway.
pub(crate) struct SkillsProvider {
    /// `read_skill`, and what is offered beside it.
    tools: Vec<Tool>,
    skip_step: Tool,
    active: Arc<ActiveSkills>,
}

impl SkillsProvider {
    /// Of all the turn's skills, `read_skill` names some, and the others tell of some.
    pub(crate) fn new(
        active: &Arc<ActiveSkills>,
        named: &[Arc<Skill>],
        told: &[Arc<Skill>],
    ) -> Result<Self, InvalidTool> {
        let skills = active.skills();
        let mut tools = Vec::new();
        if !named.is_empty() {
            tools.push(read_skill::read_skill(active, named)?);
        }
        if skills.lists {
            tools.push(list_skills::list_skills(active, told)?);
        }
        if skills.deactivates && !told.is_empty() {
            tools.push(deactivate_skill::deactivate_skill(active, told)?);
        }
        Ok(Self { tools, skip_step: skip_step::skip_step(active)?, active: Arc::clone(active) })
    }
}

impl ToolProvider for SkillsProvider {
    fn id(&self) -> &str {
        "skills"
    }

    fn list(self: Arc<Self>, _cx: &ListContext, mut into: Catalog) -> Listing {
        into.offer_all(&self.tools);
        if self.active.current_step().is_some() {
            into.offer(self.skip_step.clone());
        }
        Listing::now(into)
    }
}

/// A tool of Toolcrib's own, without description, schema and body.
fn framework_tool(name: &str) -> ToolBuilder {
    Tool::builder(name).origin("skills").framework()
}

fn ids(skills: &[Arc<Skill>]) -> Vec<&str> {
    skills.iter().map(|skill| skill.id.as_str()).collect()
}

/// A schema that takes these properties and nothing else, and wants those.
fn closed(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
