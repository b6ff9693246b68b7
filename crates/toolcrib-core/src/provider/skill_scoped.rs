use std::sync::Arc;

use super::{
    Listing, ToolProvider,
    catalog::{Catalog, Reason},
    context_list::ListContext,
};
use crate::{
    names::name::{BlankSkillIdError, SkillId},
    tool::Tool,
};

/// Offers its tools only while the given skill is the most recently activated one.
///
/// Neighbor: an engine's own skills keep their tools while *any* of them is active; this decorator
/// is for hand-built stacks of providers. Its tools count as the skill's: an engine's skill of this id
/// needs no list of tools, and other active skills do not hide them.
///
/// # Errors
/// [`BlankSkillIdError`] when the id is blank.
pub fn skill_scoped_tools(
    skill: &str,
    tools: impl IntoIterator<Item = Tool>,
) -> Result<Arc<dyn ToolProvider>, BlankSkillIdError> {
    let skill = SkillId::new(skill)?;
    let id: Arc<str> = format!("skill-scoped:{skill}").into();
    let offered: Catalog = tools.into_iter().map(|tool| tool.of_skill(&skill)).collect();
    let mut withheld = Catalog::new();
    for tool in offered.offered() {
        withheld.withhold(tool.clone(), Arc::clone(&id), Reason::NeedsSkill(skill.clone()));
    }
    Ok(Arc::new(SkillScopedProvider { id, skill, offered, withheld }))
}

struct SkillScopedProvider {
    id: Arc<str>,
    skill: SkillId,
    /// The list while the skill is the last activated one.
    offered: Catalog,
    /// The list otherwise.
    withheld: Catalog,
}

impl ToolProvider for SkillScopedProvider {
    fn id(&self) -> &str {
        &self.id
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let is_active = cx.active_skill() == Some(&self.skill);
        Listing::now(if is_active { &self.offered } else { &self.withheld }.clone())
    }
}
