//! From the tools that providers offer to the tools that a model sees: skills, policy, names.

mod change;
mod composition_cache;
mod explain;
mod fact;
mod gates;
mod missing;
pub(crate) mod request_tools;
mod why;
mod withheld;

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::Arc,
};

use serde_json::Value;
use toolcrib_core::{
    AlreadyRegisteredError, Catalog, Effect, Fact, Menu, MissingReason, OnCollision, Policy,
    Reason, RuleMatch, SkillId, Tool, ToolName, WithheldByProvider,
};

pub(crate) use self::{composition_cache::CompositionCache, gates::Gates};
pub use self::{
    fact::FactChange,
    missing::MissingTool,
    why::{Cause, CauseStage, Explanation, SmallestChange},
    withheld::Withheld,
};
use self::{request_tools::RequestTools, withheld::HiddenTool};
use crate::{
    deferral::{Deferral, Reveal, call_tool, search_tools},
    personality::{Personalities, Personality},
    policy::facts::{Facts, RuleFacts},
    provider::Notice,
    secrets::Redactor,
    skills::{Skills, StepPosition},
    validators::Validators,
};

/// The parts that decide visibility, the same for all turns of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Visibility {
    pub(crate) personalities: Personalities,
    pub(crate) policy: Policy,
    pub(crate) deferral: Deferral,
    /// The skills of all personalities. A skill of a plugin decides on that plugin's tools, and on
    /// others only while it is active; a personality that does not list the plugin can reach
    /// neither its skills nor its tools.
    pub(crate) skills: Arc<Skills>,
    /// Gates, checks and rules write reasons, which may quote secrets.
    pub(crate) redactor: Redactor,
    pub(crate) requests: Arc<RequestTools>,
    pub(crate) gates: Gates,
}

impl Visibility {
    /// Decides on a tool whose arguments are not known.
    pub(crate) fn judge(&self, tool: &Tool, facts: Facts<'_>) -> RuleMatch<'_> {
        self.strictest(facts, |facts| self.policy.judge(tool, &self.rule_facts(facts), None))
    }

    /// Decides on a call.
    pub(crate) fn judge_call(&self, tool: &Tool, facts: Facts<'_>, args: &Value) -> RuleMatch<'_> {
        self.strictest(facts, |facts| self.policy.judge(tool, &self.rule_facts(facts), Some(args)))
    }

    /// The decision for a personality and, in the turn of a child agent, for those of the turns that
    /// gave the task: the strictest, and of equal ones the first.
    fn strictest<'v>(
        &'v self,
        mut facts: Facts<'_>,
        judge: impl Fn(Facts<'_>) -> RuleMatch<'v>,
    ) -> RuleMatch<'v> {
        let strictness = |ruling: &RuleMatch<'_>| match ruling.effect() {
            Effect::Allow => 0,
            Effect::Ask => 1,
            Effect::Deny => 2,
            _ => 3,
        };
        let mut strictest = judge(facts);
        while let Some(parent) = &facts.personality.parent {
            facts.personality = &parent.personality;
            let ruling = judge(facts);
            if strictness(&ruling) > strictness(&strictest) {
                strictest = ruling;
            }
        }
        strictest
    }

    fn rule_facts<'a>(&'a self, facts: Facts<'a>) -> RuleFacts<'a> {
        RuleFacts { facts, skills: &self.skills }
    }
}

/// The situation of an iteration, as shared data. Two are equal if rules decide the same in both, as
/// far as it does not depend on the iteration and on taint.
#[derive(Debug, Clone)]
pub(crate) struct Situation {
    pub(crate) active_skills: Arc<[SkillId]>,
    pub(crate) steps: Arc<[StepPosition]>,
    pub(crate) roles: Arc<[Arc<str>]>,
    pub(crate) roles_by_claims: Arc<[Arc<str>]>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) personality: Arc<Personality>,
    pub(crate) reveal: Reveal,
    pub(crate) iteration: u32,
    /// Whether the conversation had read content of unknown authors when the iteration began.
    pub(crate) tainted: bool,
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
            tainted: self.tainted,
        }
    }
}

impl PartialEq for Situation {
    fn eq(&self, other: &Self) -> bool {
        // A new field must be compared too, or a menu of another situation would be used again.
        let Self {
            active_skills,
            steps,
            roles,
            roles_by_claims,
            tenant,
            principal,
            personality,
            reveal,
            iteration: _,
            tainted: _,
        } = self;
        *active_skills == other.active_skills
            && *steps == other.steps
            && *roles == other.roles
            && *roles_by_claims == other.roles_by_claims
            && *tenant == other.tenant
            && *principal == other.principal
            && *reveal == other.reveal
            && Arc::ptr_eq(personality, &other.personality)
    }
}

impl Eq for Situation {}

impl Hash for Situation {
    /// Only the fields by which the situations of an engine differ most.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.active_skills, &self.tenant, &self.principal).hash(state);
    }
}

/// The result of composing, reused while nothing changes.
#[derive(Debug)]
pub(crate) struct Composition {
    catalog: Catalog,
    pub(crate) menu: Arc<Menu>,
    pub(crate) withheld: Arc<Withheld>,
    pub(crate) collisions: Vec<Collision>,
    /// The results of the tools' availability checks.
    availability: Vec<CheckedTool>,
}

/// A tool, and the result of its availability check.
#[derive(Debug)]
struct CheckedTool {
    tool: Tool,
    said: Result<(), Arc<str>>,
}

impl CheckedTool {
    fn holds(&self) -> bool {
        self.tool.check_available() == self.said
    }
}

/// Two sources offered one name; the incoming tool's policy decided.
#[derive(Debug)]
pub(crate) struct Collision {
    pub(crate) name: ToolName,
    pub(crate) kept: Arc<str>,
    pub(crate) dropped: Arc<str>,
}

impl Composition {
    /// A result without tools.
    pub(crate) fn nothing(visibility: &Arc<Visibility>, situation: Situation) -> Self {
        Self {
            catalog: Catalog::new(),
            menu: Arc::default(),
            withheld: Arc::new(Withheld::nothing(visibility, situation)),
            collisions: Vec::new(),
            availability: Vec::new(),
        }
    }

    /// The catalog that it was composed from.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Whether tools that may become available, or unavailable, were checked.
    pub(crate) fn checks_availability(&self) -> bool {
        self.availability.iter().any(|checked| checked.tool.refusal().is_none())
    }

    /// Whether composing this list in this situation would give the same result. The iteration
    /// and taint count only as far as some rule depends on them.
    pub(crate) fn holds_for(
        &self,
        visibility: &Arc<Visibility>,
        situation: &Situation,
        catalog: &Catalog,
        notices: &[Notice],
    ) -> bool {
        let before = self.withheld.situation();
        Arc::ptr_eq(self.withheld.visibility(), visibility)
            && before == situation
            && visibility.policy.same_iteration(before.iteration, situation.iteration)
            && (before.tainted == situation.tainted || !visibility.policy.reads(Fact::Tainted))
            && self.withheld.notices() == notices
            && self.catalog.same(catalog)
            && self.availability.iter().all(CheckedTool::holds)
    }
}

/// A menu in the making, and the tools that it does not offer.
#[derive(Default)]
struct MenuDraft {
    tools: Vec<Tool>,
    /// The positions of the tools, by name.
    positions: HashMap<ToolName, usize>,
    hidden: Vec<HiddenTool>,
    collisions: Vec<Collision>,
    availability: Vec<CheckedTool>,
}

impl MenuDraft {
    /// The flaw of a tool that hides it from everyone.
    fn flaw(&mut self, tool: &Tool, validators: &Validators) -> Option<HiddenTool> {
        if let Some(claim) = tool.false_origin() {
            let reason = Reason::Definition(MissingReason::ForeignOrigin, claim.into());
            let gate = "origins".into();
            return Some(HiddenTool::Gate(WithheldByProvider { tool: tool.clone(), gate, reason }));
        }
        if let Err(problem) = validators.check(tool) {
            return Some(HiddenTool::Schema { tool: tool.clone(), problem });
        }
        if !tool.has_availability_check() {
            return None;
        }
        let said = tool.check_available();
        self.availability.push(CheckedTool { tool: tool.clone(), said: said.clone() });
        said.err().map(|reason| HiddenTool::Unavailable { tool: tool.clone(), reason })
    }

    /// Adds a tool. If another one has its name, the policy of the new one decides.
    fn offer(&mut self, tool: &Tool) -> Result<(), AlreadyRegisteredError> {
        let known = self.positions.get(tool.name());
        let Some(slot) = known.and_then(|position| self.tools.get_mut(*position)) else {
            self.positions.insert(tool.name().clone(), self.tools.len());
            self.tools.push(tool.clone());
            return Ok(());
        };
        let (kept, dropped) = match tool.on_collision() {
            OnCollision::Keep => (slot.clone(), tool.clone()),
            OnCollision::Replace => (tool.clone(), std::mem::replace(slot, tool.clone())),
            // Newer policies than these are refused like `fail`.
            _ => {
                return Err(AlreadyRegisteredError {
                    name: tool.name().clone(),
                    existing: slot.origin_label().into(),
                    incoming: tool.origin_label().into(),
                });
            }
        };
        self.collisions.push(Collision {
            name: tool.name().clone(),
            kept: kept.origin().into(),
            dropped: dropped.origin().into(),
        });
        self.hidden.push(HiddenTool::Collision { tool: dropped, kept });
        Ok(())
    }

    /// Defers tools, and offers those by which a model finds and calls them.
    fn defer(
        &mut self,
        visibility: &Visibility,
        situation: &Situation,
        offers: impl Fn(&Tool) -> bool,
    ) -> Vec<Tool> {
        let is_of_active_skill = |tool: &Tool| {
            let mut skills = visibility.skills.offering(tool);
            skills.any(|skill| situation.active_skills.contains(&skill.id))
        };
        let mut deferred = visibility.deferral.take(&mut self.tools, is_of_active_skill);
        if deferred.is_empty() {
            return deferred;
        }
        let Self { tools, hidden, .. } = self;
        // Found tools are called by their names if they are listed.
        let call_tool = call_tool().filter(|_| situation.reveal == Reveal::CallTool);
        for own in [search_tools(), call_tool].into_iter().flatten() {
            for list in [&mut *tools, &mut deferred] {
                let others = list.extract_if(.., |tool| tool.name() == own.name());
                hidden.extend(others.map(|tool| HiddenTool::Collision { tool, kept: own.clone() }));
            }
            match offers(own) {
                true => tools.push(own.clone()),
                false => hidden.push(HiddenTool::Rules(own.clone())),
            }
        }
        deferred
    }
}

/// Applies steps, skills and policy to the offered tools, and builds the menu from the rest.
pub(crate) fn compose(
    visibility: &Arc<Visibility>,
    validators: &Validators,
    situation: &Situation,
    catalog: Catalog,
    notices: Vec<Notice>,
) -> Result<Composition, AlreadyRegisteredError> {
    let facts = visibility.rule_facts(situation.facts());
    let rules = visibility.policy.bind_facts(&facts);
    let offers = |tool: &Tool| {
        situation.personality.objection(tool).is_none()
            && visibility.skills.admit(&situation.active_skills, tool)
            && rules.judge(tool).offers()
            && (situation.personality.parent.is_none()
                || visibility.judge(tool, situation.facts()).offers())
    };
    let steps = visibility.skills.steps_that_hold(&situation.active_skills, &situation.steps);
    let steps: Vec<_> = steps.map(|(_, steps, position)| (steps, position)).collect();
    let of_another_step =
        |tool: &Tool| steps.iter().find_map(|(steps, position)| steps.withhold(*position, tool));
    let by_provider = catalog.withheld_by_provider().iter().cloned();
    let by_steps = catalog.offered().iter().filter_map(of_another_step);
    let mut draft = MenuDraft {
        tools: Vec::with_capacity(catalog.offered().len()),
        positions: HashMap::with_capacity(catalog.offered().len()),
        hidden: by_provider.chain(by_steps).map(HiddenTool::Gate).collect(),
        ..MenuDraft::default()
    };
    for tool in catalog.offered().iter().filter(|tool| of_another_step(tool).is_none()) {
        match draft.flaw(tool, validators) {
            Some(flawed) => draft.hidden.push(flawed),
            None if !offers(tool) => draft.hidden.push(HiddenTool::Rules(tool.clone())),
            None => draft.offer(tool)?,
        }
    }

    let deferred = draft.defer(visibility, situation, offers);
    let MenuDraft { tools, mut hidden, collisions, availability, .. } = draft;
    let omitted = notices.iter().filter(|notice| notice.omits());
    hidden.extend(omitted.flat_map(HiddenTool::of_omitted));
    let withheld = Withheld::new(Arc::clone(visibility), situation.clone(), hidden, notices);
    Ok(Composition {
        menu: Arc::new(Menu::with_deferred(tools, deferred)?),
        withheld: Arc::new(withheld),
        collisions,
        availability,
        catalog,
    })
}
