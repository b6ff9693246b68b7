//! From what providers offer to what a model sees: skills, policy, names.

mod change;
mod explain;
mod fact;
mod recent;
mod why;
mod withheld;

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use toolcrib_core::{
    AlreadyRegistered, Catalog, HeldBack, Menu, OnCollision, Policy, Ruling, SkillId, Tool,
    ToolName,
};

pub(crate) use self::recent::Recent;
use self::withheld::Hidden;
pub use self::{
    fact::FactChange,
    why::{Cause, CauseStage, SmallestChange, Why},
    withheld::{Withheld, WithheldBy, WithheldTool},
};
use crate::{
    personality::{Personalities, Personality},
    policy::{Facts, RuleFacts},
    redactor::Redactor,
    skills::{Skills, StepsAt},
    sources::Notice,
    validators::Validators,
};

/// What decides on visibility, the same for all runs of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Visibility {
    pub(crate) personalities: Personalities,
    pub(crate) policy: Policy,
    /// Those of all personalities. A skill of a plugin decides on that plugin's tools, and on others
    /// only while it is active; who does not list the plugin reaches the one as little as the other.
    pub(crate) skills: Arc<Skills>,
    /// Reasons are written by gates, checks and rules: what they quote is not known.
    pub(crate) redactor: Redactor,
}

impl Visibility {
    /// What decides on a tool while its arguments are not known.
    pub(crate) fn judge(&self, tool: &Tool, facts: Facts<'_>) -> Ruling<'_> {
        self.policy.judge(tool, &self.rule_facts(facts), None)
    }

    /// What decides on a call.
    pub(crate) fn judge_call(&self, tool: &Tool, facts: Facts<'_>, args: &Value) -> Ruling<'_> {
        self.policy.judge(tool, &self.rule_facts(facts), Some(args))
    }

    fn rule_facts<'a>(&'a self, facts: Facts<'a>) -> RuleFacts<'a> {
        RuleFacts { facts, skills: &self.skills }
    }
}

/// The situation of an iteration, as shared data.
#[derive(Debug, Clone)]
pub(crate) struct Situation {
    pub(crate) active_skills: Arc<[SkillId]>,
    pub(crate) steps: Arc<[StepsAt]>,
    pub(crate) roles: Arc<[Arc<str>]>,
    pub(crate) roles_by_claims: Arc<[Arc<str>]>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) personality: Arc<Personality>,
    pub(crate) iteration: u32,
}

impl Situation {
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            skills: &self.active_skills,
            steps: &self.steps,
            roles: &self.roles,
            roles_by_claims: &self.roles_by_claims,
            tenant: self.tenant.as_deref(),
            principal: self.principal.as_deref(),
            personality: &self.personality,
            iteration: self.iteration,
        }
    }

    /// Whether rules decide the same in both, as far as it does not depend on the iteration.
    fn same(&self, other: &Self) -> bool {
        self.active_skills == other.active_skills
            && self.steps == other.steps
            && self.roles == other.roles
            && self.roles_by_claims == other.roles_by_claims
            && self.tenant == other.tenant
            && self.principal == other.principal
            && Arc::ptr_eq(&self.personality, &other.personality)
    }
}

/// The result of composing, kept to be used again while nothing changes.
#[derive(Debug)]
pub(crate) struct Composed {
    catalog: Catalog,
    pub(crate) menu: Arc<Menu>,
    pub(crate) withheld: Arc<Withheld>,
    pub(crate) collisions: Vec<Collision>,
    /// What the tools said that are asked whether they are available.
    availability: Vec<Checked>,
}

/// A tool, and what it said when it was asked whether it is available.
#[derive(Debug)]
struct Checked {
    tool: Tool,
    said: Result<(), Arc<str>>,
}

impl Checked {
    fn holds(&self) -> bool {
        self.tool.check_available() == self.said
    }
}

/// Two sources offered one name, and the incoming tool's policy decided.
#[derive(Debug)]
pub(crate) struct Collision {
    pub(crate) name: ToolName,
    pub(crate) kept: Arc<str>,
    pub(crate) dropped: Arc<str>,
}

impl Composed {
    /// Nothing is known, offered or withheld.
    pub(crate) fn nothing(visibility: &Arc<Visibility>, situation: Situation) -> Self {
        Self {
            catalog: Catalog::new(),
            menu: Arc::default(),
            withheld: Arc::new(Withheld::nothing(visibility, situation)),
            collisions: Vec::new(),
            availability: Vec::new(),
        }
    }

    /// The list that it was made of.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Whether it was composed by the same rules, on behalf of the same, under the same skills.
    fn is_of(&self, visibility: &Arc<Visibility>, situation: &Situation) -> bool {
        Arc::ptr_eq(self.withheld.visibility(), visibility)
            && self.withheld.situation().same(situation)
    }

    /// Whether composing this list in this situation would give the same again. Which iteration it
    /// is counts as far as some rule looks at it.
    pub(crate) fn holds_for(
        &self,
        visibility: &Arc<Visibility>,
        situation: &Situation,
        catalog: &Catalog,
        notices: &[Notice],
    ) -> bool {
        let iteration = self.withheld.situation().iteration;
        self.is_of(visibility, situation)
            && visibility.policy.same_iteration(iteration, situation.iteration)
            && self.withheld.notices() == notices
            && self.catalog.same(catalog)
            && self.availability.iter().all(Checked::holds)
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
) -> Result<Composed, AlreadyRegistered> {
    let facts = visibility.rule_facts(situation.facts());
    let rules = visibility.policy.in_situation(&facts);
    let offers = |tool: &Tool| {
        situation.personality.objection(tool).is_none()
            && visibility.skills.admit(&situation.active_skills, tool)
            && rules.judge(tool).offers()
    };
    let mut tools: Vec<Tool> = Vec::with_capacity(catalog.offered().len());
    let mut positions: HashMap<ToolName, usize> = HashMap::with_capacity(tools.capacity());
    let mut hidden: Vec<Hidden> = catalog.held_back().iter().cloned().map(Hidden::Gate).collect();
    let mut collisions = Vec::new();
    let mut availability = Vec::new();

    for tool in catalog.offered() {
        if let Some(claim) = tool.false_origin() {
            let (gate, reason) = ("origins".into(), claim.into());
            hidden.push(Hidden::Gate(HeldBack { tool: tool.clone(), gate, reason }));
            continue;
        }
        if let Err(problem) = validators.check(tool) {
            hidden.push(Hidden::Schema { tool: tool.clone(), problem });
            continue;
        }
        if tool.has_availability_check() {
            let said = tool.check_available();
            availability.push(Checked { tool: tool.clone(), said: said.clone() });
            if let Err(reason) = said {
                hidden.push(Hidden::Unavailable { tool: tool.clone(), reason });
                continue;
            }
        }
        if !offers(tool) {
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
                return Err(AlreadyRegistered {
                    name: tool.name().clone(),
                    existing: slot.comes_from().into(),
                    incoming: tool.comes_from().into(),
                });
            }
        };
        collisions.push(Collision {
            name: tool.name().clone(),
            kept: kept.origin().into(),
            dropped: dropped.origin().into(),
        });
        hidden.push(Hidden::Collision { tool: dropped, kept });
    }

    for notice in notices.iter().filter(|notice| notice.omits()) {
        hidden.extend(Hidden::of_omitted(notice));
    }

    let withheld = Withheld::new(Arc::clone(visibility), situation.clone(), hidden, notices);
    Ok(Composed {
        menu: Arc::new(Menu::new(tools)?),
        withheld: Arc::new(withheld),
        collisions,
        availability,
        catalog,
    })
}
