//! The tools with which a model activates, deactivates and reads skills. One file per tool.

mod deactivate_skill;
mod list_skills;
mod read_skill;
mod skip_step;

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{
    __internal::PlainJson, Arguments, Catalog, InvalidToolError, ListContext, Listing, Tool,
    ToolBuilder, ToolProvider,
};

pub(crate) use self::read_skill::read_skill_as_judged;
pub use self::{
    deactivate_skill::DEACTIVATE_SKILL, list_skills::LIST_SKILLS, read_skill::READ_SKILL,
};
use super::{ActiveSkills, Request, Skill, steps::SKIP_STEP};
use crate::json::closed;

/// The names of the skill tools. No tool of the baseline registry may have one of them while there
/// are skills.
pub const SKILL_TOOLS: [&str; 4] = [READ_SKILL, LIST_SKILLS, DEACTIVATE_SKILL, SKIP_STEP];

/// Offers the skill tools of one turn: the same ones throughout, except `skip_step`, which is
/// offered while there is a step to skip. The menu changes with each step anyway.
pub(crate) struct SkillsProvider {
    /// `read_skill`, and the optional tools.
    tools: Catalog,
    /// The same with `skip_step`.
    with_skip_step: Catalog,
    active: Arc<ActiveSkills>,
}

impl SkillsProvider {
    /// `read_skill` names some of the turn's skills, and the other tools list some.
    pub(crate) fn new(
        active: &Arc<ActiveSkills>,
        named: &[Arc<Skill>],
        told: &[Arc<Skill>],
    ) -> Result<Self, InvalidToolError> {
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
        let tools = Catalog::from(tools);
        let mut with_skip_step = tools.clone();
        with_skip_step.offer(skip_step::skip_step(active)?);
        Ok(Self { tools, with_skip_step, active: Arc::clone(active) })
    }
}

impl ToolProvider for SkillsProvider {
    fn id(&self) -> &str {
        "skills"
    }

    fn list(self: Arc<Self>, _cx: &ListContext) -> Listing {
        let is_at_a_step = self.active.current_step().is_some();
        Listing::now(if is_at_a_step { &self.with_skip_step } else { &self.tools }.clone())
    }
}

/// Begins a built-in tool, without description, schema and body.
fn framework_tool(name: &str) -> ToolBuilder {
    Tool::builder(name).origin("skills").framework().inline()
}

/// The request of a call that succeeded; `None` of any other tool.
pub(crate) fn requested(tool: &str, arguments: &Arguments) -> Option<Request> {
    let parsed;
    let arguments = match arguments {
        Arguments::Json(json) => json,
        Arguments::Text(text) => {
            parsed = PlainJson::read(text.as_bytes()).ok()?;
            &parsed
        }
    };
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    match tool {
        READ_SKILL if text("path").is_none() => Some(Request::Activate(text("id")?.into())),
        DEACTIVATE_SKILL => Some(Request::Deactivate(text("id")?.into())),
        SKIP_STEP => Some(Request::Skip { reason: text("reason")?.into() }),
        _ => None,
    }
}

fn ids(skills: &[Arc<Skill>]) -> Vec<&str> {
    skills.iter().map(|skill| skill.id.as_str()).collect()
}
