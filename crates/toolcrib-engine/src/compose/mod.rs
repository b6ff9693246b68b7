//! From what providers offer to what a model sees: skills, policy, names.

mod change;
mod explain;
mod withheld;

use std::{collections::HashMap, sync::Arc};

use toolcrib_core::{Catalog, Menu, NameCollision, OnCollision, Policy, SkillId, Tool, ToolName};

use self::withheld::Hidden;
pub use self::withheld::{Withheld, WithheldBy, WithheldTool};
use crate::{
    policy::{Facts, judge},
    skills::Skills,
    sources::Notice,
    validators::Validators,
};

/// What decides on visibility, the same for all runs of an engine.
#[derive(Debug)]
pub(crate) struct Visibility {
    pub(crate) policy: Policy,
    pub(crate) skills: Arc<Skills>,
}

impl Visibility {
    /// Whether skills and policy let a tool be offered.
    pub(crate) fn offers(&self, tool: &Tool, facts: Facts<'_>) -> bool {
        self.skills.admit(facts.skills, tool)
            && judge(&self.policy, &self.skills, tool, facts).offers()
    }
}

/// The situation of an iteration, as shared data.
#[derive(Debug, Clone)]
pub(crate) struct Situation {
    pub(crate) active_skills: Arc<[SkillId]>,
    pub(crate) roles: Arc<[Arc<str>]>,
    pub(crate) tenant: Option<Arc<str>>,
}

impl Situation {
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts { skills: &self.active_skills, roles: &self.roles, tenant: self.tenant.as_deref() }
    }
}

/// The result of composing, kept to be used again while nothing changes.
#[derive(Debug)]
pub(crate) struct Composed {
    catalog: Catalog,
    active_skills: Arc<[SkillId]>,
    pub(crate) menu: Arc<Menu>,
    pub(crate) withheld: Arc<Withheld>,
    pub(crate) collisions: Vec<Collision>,
}

/// Two sources offered one name, and the incoming tool's policy decided.
#[derive(Debug)]
pub(crate) struct Collision {
    pub(crate) name: ToolName,
    pub(crate) kept: Arc<str>,
    pub(crate) dropped: Arc<str>,
}

impl Composed {
    /// Whether composing this list in this situation would give the same again. Identity and
    /// roles are fixed within a turn; skills are not.
    pub(crate) fn holds_for(
        &self,
        catalog: &Catalog,
        notices: &[Notice],
        active_skills: &Arc<[SkillId]>,
    ) -> bool {
        self.active_skills == *active_skills
            && self.withheld.notices() == notices
            && self.catalog.same(catalog)
    }

    /// The list that it was made of, to be filled anew.
    pub(crate) fn into_catalog(self) -> Catalog {
        self.catalog
    }
}

/// Puts what is offered through skills and policy, and makes the menu of what is left.
pub(crate) fn compose(
    visibility: &Arc<Visibility>,
    validators: &Validators,
    situation: &Situation,
    catalog: Catalog,
    notices: Vec<Notice>,
) -> Result<Composed, NameCollision> {
    let facts = situation.facts();
    let mut tools: Vec<Tool> = Vec::with_capacity(catalog.offered().len());
    let mut positions: HashMap<ToolName, usize> = HashMap::with_capacity(tools.capacity());
    let mut hidden: Vec<Hidden> = catalog.held_back().iter().cloned().map(Hidden::Gate).collect();
    let mut collisions = Vec::new();

    for tool in catalog.offered() {
        if let Err(problem) = validators.check(tool) {
            hidden.push(Hidden::Schema { tool: tool.clone(), problem });
            continue;
        }
        if !visibility.offers(tool, facts) {
            hidden.push(Hidden::Rules(tool.clone()));
            continue;
        }
        let Some(slot) = positions.get(tool.name()).and_then(|slot| tools.get_mut(*slot)) else {
            positions.insert(tool.name().clone(), tools.len());
            tools.push(tool.clone());
            continue;
        };
        let (kept, dropped) = match tool.on_collision() {
            OnCollision::Keep => (slot.clone(), tool.clone()),
            OnCollision::Replace => (tool.clone(), std::mem::replace(slot, tool.clone())),
            // Anything newer than these is refused like `fail`: loudly.
            _ => {
                return Err(NameCollision {
                    name: tool.name().clone(),
                    first: slot.origin().into(),
                    second: tool.origin().into(),
                });
            }
        };
        collisions.push(Collision {
            name: tool.name().clone(),
            kept: kept.origin().into(),
            dropped: dropped.origin().into(),
        });
    }

    for notice in notices.iter().filter(|notice| notice.omits()) {
        hidden.extend(Hidden::of_omitted(notice));
    }

    let withheld = Withheld::new(Arc::clone(visibility), situation.clone(), hidden, notices);
    Ok(Composed {
        menu: Arc::new(Menu::new(tools)?),
        withheld: Arc::new(withheld),
        collisions,
        active_skills: Arc::clone(&situation.active_skills),
        catalog,
    })
}
