use std::sync::Arc;

use super::{Listing, ToolProvider};
use crate::{
    catalog::{Catalog, Reason},
    context_list::ListContext,
    name::{BlankSkillId, SkillId},
    tool::Tool,
};

/// Offers its tools only while a skill is the one activated last.
///
/// Neighbours: an engine's own skills keep their tools while *any* of them is active; this one is
/// for stacks of providers by hand.
///
/// # Errors
/// [`BlankSkillId`] when the id is blank.
pub fn skill_scoped_tools(
    skill: &str,
    tools: impl IntoIterator<Item = Tool>,
) -> Result<Arc<dyn ToolProvider>, BlankSkillId> {
    let skill = SkillId::new(skill)?;
    Ok(Arc::new(SkillScoped {
        id: format!("skill-scoped:{skill}").into(),
        skill,
        tools: tools.into_iter().collect(),
    }))
}

struct SkillScoped {
    id: Arc<str>,
    skill: SkillId,
    tools: Box<[Tool]>,
}

impl ToolProvider for SkillScoped {
    fn id(&self) -> &str {
        &self.id
    }

    fn list(self: Arc<Self>, cx: &ListContext, mut into: Catalog) -> Listing {
        if cx.active_skill() == Some(&self.skill) {
            into.offer_all(&*self.tools);
        } else {
            for tool in &self.tools {
                let reason = Reason::NeedsSkill(self.skill.clone());
                into.hold_back(tool.clone(), Arc::clone(&self.id), reason);
            }
        }
        Listing::now(into)
    }
}
