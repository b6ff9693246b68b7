//! The smallest change of facts under which a tool would be offered, or would not be.
//!
//! The search tries the fewest facts first and uses the functions that compose the menu, so it
//! cannot differ from them. At each step only relevant facts are tried. To offer a tool: facts that
//! make the denying rule false, that make an earlier rule true that does not deny, or that make
//! personality and skills pass the tool. To withhold it: the reverse. Of any change that suffices
//! at least one fact is always among these, so none is missed. A skill may only be active under a
//! personality that reaches it: if a change supposes one of the two, it also includes the other, as
//! a separate fact. The same applies to a skill that the caller may not activate: the facts that
//! make policy pass a call of `read_skill` are included.

use std::{cell::Cell, sync::Arc};

use serde_json::json;
use toolcrib_core::{Effect, Fact, RoleHolders, Rule, RuleMatch, SkillId, Tool};

use super::{
    Visibility,
    fact::{FactChange, HypotheticalFacts},
};
use crate::{
    personality::Personality,
    policy::facts::Facts,
    skills::{Skill, read_skill_as_judged},
};

/// Larger changes are not searched for.
pub(super) const MOST_CHANGES: usize = 4;

/// How many situations are judged before the search gives up: some milliseconds.
const MOST_JUDGED: usize = 20_000;

/// How often gates are tried before the search gives up: each time, a provider lists all of its tools.
const MOST_TRIED: usize = 500;

/// The goal of a change.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal<'a> {
    /// Personality, policy and skills let the tool be offered.
    Offer(&'a Tool),
    /// Personality, policy or skills withhold the tool.
    Withhold(&'a Tool),
    /// This skill is the one activated last.
    Latest(&'a SkillId),
}

/// The reason why a tool is not offered.
#[derive(Debug, Clone)]
pub(super) enum Obstacle<'a> {
    Personality,
    Policy(RuleMatch<'a>),
    Skills,
    /// Another step of this skill is the current one, or all are done.
    Steps(&'a Skill),
    /// A gate of its provider withholds it.
    Gate,
}

/// Why no turn can have some skills active.
pub(super) enum UnreachableSkill<'a> {
    /// The personality does not reach this skill.
    OutOfReach(&'a Skill),
    /// Policy or personality does not let the caller activate this skill, given these facts.
    Refused(&'a Skill, Facts<'a>),
}

/// The result of the search.
#[derive(Debug)]
pub(super) enum SearchResult {
    /// These facts suffice, and none can be left out. In the order in which to change them.
    Smallest(Vec<FactChange>),
    /// No change of facts suffices.
    Nothing,
    /// More than [`MOST_CHANGES`] facts would have to change, if any change suffices.
    TooMany,
    /// There are too many possibilities to try.
    TooManyFacts,
}

/// Looks for the smallest change that reaches all of some goals.
pub(super) struct Search<'a> {
    visibility: &'a Visibility,
    start: Facts<'a>,
    goals: Vec<Goal<'a>>,
    /// The rules that apply to one of the tools, or to `read_skill`, in order.
    rules: Vec<&'a Rule>,
    /// Whether one of them names principals: then the principal matters beside the roles.
    names_principals: bool,
    /// Skills that are active although the caller is refused now: an approval admitted them.
    let_pass: Vec<SkillId>,
    judged: usize,
    /// How often gates were tried.
    tried: Cell<usize>,
    /// Whether more facts could be tried than the size allowed.
    cut_short: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        visibility: &'a Visibility,
        start: Facts<'a>,
        goals: impl IntoIterator<Item = Goal<'a>>,
    ) -> Self {
        let goals: Vec<_> = goals.into_iter().collect();
        let read_skill = read_skill_as_judged().filter(|_| !visibility.skills.is_empty());
        let speaks = |rule: &&Rule| {
            let of_goal = goals.iter().any(|goal| match goal {
                Goal::Offer(tool) | Goal::Withhold(tool) => rule.tools.matches(tool),
                Goal::Latest(_) => false,
            });
            of_goal || read_skill.is_some_and(|tool| rule.tools.matches(tool))
        };
        let rules: Vec<_> = visibility.policy.rules.iter().filter(speaks).collect();
        let names_principals = rules.iter().any(|rule| rule.when.reads(Fact::Principal));
        let let_pass = Vec::new();
        let mut this = Self {
            visibility,
            start,
            goals,
            rules,
            names_principals,
            let_pass,
            judged: 0,
            tried: Cell::new(0),
            cut_short: false,
        };
        this.let_pass = this.refused_at_the_start();
        this
    }

    /// Smaller sizes are tried first, so no part of the result is superfluous.
    pub(super) fn run(&mut self) -> SearchResult {
        for size in 1..=MOST_CHANGES {
            self.cut_short = false;
            let mut chosen = Vec::with_capacity(size);
            if self.extend(&mut chosen, size) {
                // Skills stay in the order in which they were chosen: which of them is activated
                // last can matter.
                chosen.sort_by_key(FactChange::rank);
                return SearchResult::Smallest(chosen);
            }
            if self.gives_up() {
                return SearchResult::TooManyFacts;
            }
            if !self.cut_short {
                return SearchResult::Nothing;
            }
        }
        SearchResult::TooMany
    }

    /// The facts after some changes.
    pub(super) fn supposed<'s>(
        &'s self,
        changes: impl IntoIterator<Item = &'s FactChange>,
    ) -> HypotheticalFacts<'s> {
        HypotheticalFacts::after(self.visibility, self.start, changes, self.names_principals)
    }

    /// Adds up to `left` changes until all goals are reached; leaves the chosen ones in `chosen`.
    fn extend(&mut self, chosen: &mut Vec<FactChange>, left: usize) -> bool {
        self.judged += 1;
        if self.gives_up() {
            return false;
        }
        let (candidates, waiting) = {
            let supposed = self.supposed(&*chosen);
            match self.candidates(supposed.facts()) {
                None => return !self.gives_up(),
                Some(candidates) => candidates,
            }
        };
        for change in candidates {
            if chosen.iter().any(|other| change.contradicts(other)) {
                continue;
            }
            if left == 0 {
                self.cut_short = true;
                return false;
            }
            // A skill whose activation permits another one is activated first; one that is active
            // and prevents it is activated again afterwards.
            let before = waiting.as_ref().filter(|_| match &change {
                FactChange::ActivateSkill(id) => {
                    !self.supposed(&*chosen).facts().skills.contains(id)
                }
                _ => false,
            });
            let at = before.and_then(|waiting| chosen.iter().position(|other| other == waiting));
            let at = at.unwrap_or(chosen.len());
            chosen.insert(at, change);
            if self.extend(chosen, left - 1) {
                return true;
            }
            chosen.remove(at);
        }
        false
    }

    fn gives_up(&self) -> bool {
        self.judged >= MOST_JUDGED || self.tried.get() >= MOST_TRIED
    }

    /// Whether a gate decides on a tool, and withholds it.
    fn gate_withholds(&self, tool: &Tool, facts: Facts<'_>) -> Option<bool> {
        let withholds = self.visibility.gates.withhold(tool.name(), facts);
        self.tried.set(self.tried.get() + usize::from(withholds.is_some()));
        withholds
    }

    /// The first [obstacle], or that of a gate.
    fn obstacle(&self, tool: &Tool, facts: Facts<'_>) -> Option<Obstacle<'a>> {
        let of_gate = || self.gate_withholds(tool, facts) == Some(true);
        obstacle(self.visibility, tool, facts).or_else(|| of_gate().then_some(Obstacle::Gate))
    }

    /// Another last activated skill, or fewer: a gate may depend on them.
    fn other_skills(&self, facts: Facts<'_>) -> Vec<FactChange> {
        let all = self.visibility.skills.iter().map(|skill| &skill.id);
        let others = all.filter(|id| facts.skills.last() != Some(*id)).cloned();
        let active = facts.skills.iter().cloned();
        others
            .map(FactChange::ActivateSkill)
            .chain(active.map(FactChange::DeactivateSkill))
            .collect()
    }

    /// Why no turn can have these facts, if none can.
    pub(super) fn impossible<'s>(&self, facts: Facts<'s>) -> Option<UnreachableSkill<'s>>
    where
        'a: 's,
    {
        let skills = || facts.skills.iter().enumerate();
        let known = |id| self.visibility.skills.get(id);
        let out_of_reach = skills()
            .filter_map(|(_, id)| known(id))
            .find(|skill| !skill.is_reached_by(facts.personality));
        if let Some(skill) = out_of_reach {
            return Some(UnreachableSkill::OutOfReach(skill));
        }
        skills().find_map(|(before, id)| {
            let skill = known(id)?;
            let at = before_skill(facts, before);
            let is_let_pass = self.let_pass.contains(id) || !self.refuses(skill, at);
            (!is_let_pass).then_some(UnreachableSkill::Refused(skill, at))
        })
    }

    fn refused_at_the_start(&self) -> Vec<SkillId> {
        let skills = self.start.skills.iter().enumerate();
        let refused = skills.filter(|(before, id)| {
            let skill = self.visibility.skills.get(id);
            skill.is_some_and(|skill| self.refuses(skill, before_skill(self.start, *before)))
        });
        refused.map(|(_, id)| id.clone()).collect()
    }

    /// Whether the caller may not activate a skill.
    fn refuses(&self, skill: &Skill, facts: Facts<'_>) -> bool {
        let Some(read_skill) = read_skill_as_judged() else { return false };
        facts.personality.objection(read_skill).is_some()
            || self.judge_activation(read_skill, skill, facts).effect() != Effect::Allow
    }

    /// The rule that keeps the caller from activating a skill, in words.
    pub(super) fn says_of_activation(&self, skill: &Skill, facts: Facts<'_>) -> Option<String> {
        let read_skill = read_skill_as_judged()?;
        let ruling = self.judge_activation(read_skill, skill, facts);
        let rule = ruling.rule()?;
        let reason = rule.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let (id, label) = (&skill.id, &rule.label);
        Some(format!("{label} keeps this caller from activating skill `{id}`{reason}"))
    }

    fn judge_activation(
        &self,
        read_skill: &Tool,
        skill: &Skill,
        facts: Facts<'_>,
    ) -> RuleMatch<'a> {
        self.visibility.judge_call(read_skill, facts, &json!({ "id": skill.id }))
    }

    /// The changes that can matter to the first goal that is not reached, likely ones first; `None`
    /// when all are reached. Also returns the activation that waits for one of them, if any.
    fn candidates(&self, facts: Facts<'_>) -> Option<(Vec<FactChange>, Option<FactChange>)> {
        let mut waiting = None;
        let mut found = match self.impossible(facts) {
            Some(UnreachableSkill::OutOfReach(skill)) => self.to_reach(skill, facts),
            Some(UnreachableSkill::Refused(skill, before)) => {
                waiting = Some(FactChange::ActivateSkill(skill.id.clone()));
                let mut found = self.to_activate(skill, before);
                let again = found.iter().filter_map(|change| match change {
                    FactChange::DeactivateSkill(id) if *id != skill.id => {
                        Some(FactChange::ActivateSkill(id.clone()))
                    }
                    _ => None,
                });
                found.extend(again.collect::<Vec<_>>());
                found
            }
            None => self.to_a_goal(facts)?,
        };
        found.sort();
        found.dedup();
        Some((found, waiting))
    }

    fn to_a_goal(&self, facts: Facts<'_>) -> Option<Vec<FactChange>> {
        self.goals.iter().find_map(|goal| match goal {
            Goal::Offer(tool) => {
                let obstacle = self.obstacle(tool, facts)?;
                Some(self.to_offer(tool, &obstacle, facts))
            }
            Goal::Withhold(tool) => match self.obstacle(tool, facts) {
                Some(_) => None,
                None => Some(self.to_withhold(tool, facts)),
            },
            Goal::Latest(skill) => {
                (facts.skills.last() != Some(skill)).then(|| self.to_make_latest(skill, facts))
            }
        })
    }

    fn to_reach(&self, skill: &Skill, facts: Facts<'_>) -> Vec<FactChange> {
        let mut found = vec![FactChange::DeactivateSkill(skill.id.clone())];
        self.personalities(facts, &mut found, |other| skill.is_reached_by(other));
        found
    }

    /// The changes that may let the caller activate a skill.
    fn to_activate(&self, skill: &Skill, facts: Facts<'_>) -> Vec<FactChange> {
        let mut found = vec![FactChange::DeactivateSkill(skill.id.clone())];
        let Some(read_skill) = read_skill_as_judged() else { return found };
        if facts.personality.objection(read_skill).is_some() {
            self.personalities(facts, &mut found, |other| other.objection(read_skill).is_none());
            return found;
        }
        let ruling = self.judge_activation(read_skill, skill, facts);
        for rule in self.rules_on(read_skill) {
            if is_by(&ruling, rule) {
                self.falsify(rule, read_skill, facts, &mut found);
                break;
            }
            if rule.effect == Effect::Allow {
                self.satisfy(rule, read_skill, facts, &mut found);
            }
        }
        found
    }

    fn to_offer(&self, tool: &Tool, obstacle: &Obstacle<'_>, facts: Facts<'_>) -> Vec<FactChange> {
        let mut found = Vec::new();
        match obstacle {
            Obstacle::Personality => {
                self.personalities(facts, &mut found, |other| other.objection(tool).is_none());
            }
            Obstacle::Skills => {
                let latest = facts.skills.last();
                let offering = self.visibility.skills.offering(tool).map(|skill| &skill.id);
                let others = offering.filter(|id| Some(*id) != latest).cloned();
                found.extend(others.map(FactChange::ActivateSkill));
                found.extend(facts.skills.iter().cloned().map(FactChange::DeactivateSkill));
            }
            Obstacle::Steps(skill) => {
                found.push(FactChange::DeactivateSkill(skill.id.clone()));
                // Completed steps begin again with the skill, and block nothing after another skill.
                let others = self.visibility.skills.iter().map(|skill| skill.id.clone());
                found.extend(others.map(FactChange::ActivateSkill));
            }
            Obstacle::Gate => found = self.other_skills(facts),
            Obstacle::Policy(ruling) => {
                for rule in self.rules_on(tool) {
                    if is_by(ruling, rule) {
                        self.falsify(rule, tool, facts, &mut found);
                        break;
                    }
                    // A rule on arguments ends the walk unless it denies.
                    if rule.effect != Effect::Deny {
                        self.satisfy(rule, tool, facts, &mut found);
                    }
                }
            }
        }
        found
    }

    fn to_withhold(&self, tool: &Tool, facts: Facts<'_>) -> Vec<FactChange> {
        let mut found = Vec::new();
        self.personalities(facts, &mut found, |other| other.objection(tool).is_some());
        let ruling = self.visibility.judge(tool, facts);
        for rule in self.rules_on(tool) {
            if is_by(&ruling, rule) {
                self.falsify(rule, tool, facts, &mut found);
                break;
            }
            if rule.effect == Effect::Deny && !rule.reads_arguments() {
                self.satisfy(rule, tool, facts, &mut found);
            }
        }
        let has_step =
            |skill: &&Skill| skill.all_steps().iter().any(|step| step.tool == *tool.name());
        let with_step = self.visibility.skills.iter().filter(has_step);
        found.extend(with_step.map(|skill| FactChange::ActivateSkill(skill.id.clone())));
        found.extend(facts.skills.iter().cloned().map(FactChange::DeactivateSkill));
        if self.gate_withholds(tool, facts).is_some() {
            found.extend(self.other_skills(facts));
        }
        if !tool.always_include() {
            found.extend(self.any_other_skill(tool, facts).map(FactChange::ActivateSkill));
        }
        found
    }

    /// Activating a skill that does not list the tool withdraws it from those that do. Any such
    /// skill works, except one that lists no tools, that a rule names, that is already active, that the personality does
    /// not reach or that the caller may not activate.
    fn any_other_skill(&self, tool: &Tool, facts: Facts<'_>) -> impl Iterator<Item = SkillId> {
        let is_named = |id: &SkillId| self.rules.iter().any(|rule| rule.when.skills.contains(id));
        let skills = self.visibility.skills.iter();
        let others: Vec<_> =
            skills.filter(|skill| facts.skills.last() != Some(&skill.id)).collect();
        let offers =
            |id: &SkillId| self.visibility.skills.offering(tool).any(|offering| offering.id == *id);
        let plain = |skill: &&Skill| {
            let id = &skill.id;
            let is_idle = !facts.skills.contains(id) && skill.is_reached_by(facts.personality);
            let before = before_skill(facts, facts.skills.len());
            let has_list = !skill.tools.is_empty();
            is_idle && has_list && !offers(id) && !is_named(id) && !self.refuses(skill, before)
        };
        let one = others.iter().copied().find(plain);
        let chosen = one.map_or(others, |one| vec![one]);
        chosen.into_iter().map(|skill| skill.id.clone())
    }

    fn to_make_latest(&self, skill: &SkillId, facts: Facts<'_>) -> Vec<FactChange> {
        let mut found: Vec<_> = facts
            .skills
            .iter()
            .filter(|id| *id != skill)
            .cloned()
            .map(FactChange::DeactivateSkill)
            .collect();
        if self.visibility.skills.get(skill).is_some() {
            found.push(FactChange::ActivateSkill(skill.clone()));
        }
        found
    }

    fn rules_on(&self, tool: &Tool) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().copied().filter(|rule| rule.tools.matches(tool))
    }

    fn personalities(
        &self,
        facts: Facts<'_>,
        found: &mut Vec<FactChange>,
        fits: impl Fn(&Personality) -> bool,
    ) {
        let others = self.visibility.personalities.iter();
        let others = others.filter(|other| other.id != facts.personality.id && fits(other));
        found.extend(others.map(|other| FactChange::Personality(Arc::clone(&other.id))));
    }

    /// The changes that may make a false rule true.
    fn satisfy(&self, rule: &Rule, tool: &Tool, facts: Facts<'_>, found: &mut Vec<FactChange>) {
        let when = &rule.when;
        if !when.skills.iter().any(|skill| facts.skills.contains(skill)) {
            // A rule may name a skill that does not exist and so cannot be activated.
            let known = when.skills.iter().filter(|id| self.visibility.skills.get(id).is_some());
            found.extend(known.cloned().map(FactChange::ActivateSkill));
        }
        if let Some(wanted) = when.listed_by_active_skill {
            self.make_listed(wanted, tool, facts, found);
        }
        if !when.roles.iter().any(|role| facts.roles.contains(role)) {
            when.roles.iter().for_each(|role| self.gain(role, found));
        }
        let is = |name: Option<&str>, names: &[Arc<str>]| {
            name.is_some_and(|name| names.iter().any(|one| **one == *name))
        };
        if !is(facts.tenant, &when.tenants) {
            found.extend(when.tenants.iter().cloned().map(FactChange::Tenant));
        }
        if !is(facts.principal, &when.principals) {
            found.extend(when.principals.iter().cloned().map(FactChange::Principal));
        }
        self.personalities(facts, found, |other| is(Some(&other.id), &when.personalities));
        if let Some(range) = when.iteration {
            self.iterations(found, |iteration| range.contains(iteration));
        }
        found.extend(when.tainted.filter(|is| *is != facts.tainted).map(FactChange::Tainted));
    }

    /// The changes that may make a true rule false.
    fn falsify(&self, rule: &Rule, tool: &Tool, facts: Facts<'_>, found: &mut Vec<FactChange>) {
        let when = &rule.when;
        let active = when.skills.iter().filter(|skill| facts.skills.contains(skill));
        found.extend(active.cloned().map(FactChange::DeactivateSkill));
        if let Some(is) = when.listed_by_active_skill {
            self.make_listed(!is, tool, facts, found);
        }
        let held = when.roles.iter().filter(|role| facts.roles.contains(role));
        held.for_each(|role| self.lose(role, facts, found));
        if !when.tenants.is_empty() {
            self.other_tenants(found, |tenant| !when.tenants.contains(tenant));
        }
        if !when.principals.is_empty() {
            self.other_principals(found, |principal| !when.principals.contains(principal));
        }
        if when.reads(Fact::Personality) {
            let named = |id: &str| when.personalities.iter().any(|one| **one == *id);
            self.personalities(facts, found, |other| !named(&other.id));
        }
        if let Some(range) = when.iteration {
            self.iterations(found, |iteration| !range.contains(iteration));
        }
        found.extend(when.tainted.map(|is| FactChange::Tainted(!is)));
    }

    /// The changes that may add a role.
    fn gain(&self, role: &Arc<str>, found: &mut Vec<FactChange>) {
        let holders = self.visibility.policy.roles.holders(role);
        let tenants = holders.map(|holders| holders.tenants.as_slice()).unwrap_or_default();
        let principals = holders.map(|holders| holders.principals.as_slice()).unwrap_or_default();
        let by_claims = holders.is_some_and(|holders| !holders.claims.is_empty());
        found.extend(tenants.iter().cloned().map(FactChange::Tenant));
        if self.names_principals {
            found.extend(principals.iter().cloned().map(FactChange::Principal));
            found.extend(by_claims.then(|| FactChange::GainRole(role.clone())));
        } else if by_claims || !principals.is_empty() || tenants.is_empty() {
            found.push(FactChange::GainRole(role.clone()));
        }
    }

    /// The changes that may remove a role.
    fn lose(&self, role: &Arc<str>, facts: Facts<'_>, found: &mut Vec<FactChange>) {
        let holders = self.visibility.policy.roles.holders(role);
        let by_tenant = holders.is_some_and(|holders| holders.has_tenant(facts.tenant));
        let by_principal = holders.is_some_and(|holders| holders.has_principal(facts.principal));
        let gives = |list: fn(&RoleHolders) -> &Vec<Arc<str>>, name: &Arc<str>| {
            holders.is_some_and(|holders| list(holders).contains(name))
        };
        if by_tenant {
            self.other_tenants(found, |tenant| !gives(|holders| &holders.tenants, tenant));
        }
        if by_principal && self.names_principals {
            self.other_principals(found, |name| !gives(|holders| &holders.principals, name));
        }
        if by_principal || facts.roles_by_claims.contains(role) {
            found.push(FactChange::LoseRole(role.clone()));
        }
    }

    /// No tenant, and those among the ones that rules and roles name that fit.
    fn other_tenants(&self, found: &mut Vec<FactChange>, fits: impl Fn(&Arc<str>) -> bool) {
        found.push(FactChange::OtherTenant);
        let by_rules = self.rules.iter().flat_map(|rule| &rule.when.tenants);
        let by_roles = self.holders().flat_map(|holders| &holders.tenants);
        let named = by_rules.chain(by_roles).filter(|tenant| fits(tenant));
        found.extend(named.cloned().map(FactChange::Tenant));
    }

    /// No principal, and those among the ones that rules and roles name that fit.
    fn other_principals(&self, found: &mut Vec<FactChange>, fits: impl Fn(&Arc<str>) -> bool) {
        found.push(FactChange::OtherPrincipal);
        let by_rules = self.rules.iter().flat_map(|rule| &rule.when.principals);
        let by_roles = self.holders().flat_map(|holders| &holders.principals);
        let named = by_rules.chain(by_roles).filter(|principal| fits(principal));
        found.extend(named.cloned().map(FactChange::Principal));
    }

    /// The principals and claims that have the roles that the rules name.
    fn holders(&self) -> impl Iterator<Item = &'a RoleHolders> {
        let roles = &self.visibility.policy.roles;
        self.rules.iter().flat_map(|rule| &rule.when.roles).filter_map(|role| roles.holders(role))
    }

    /// One iteration of each range that all rules treat alike.
    fn iterations(&self, found: &mut Vec<FactChange>, fits: impl Fn(u32) -> bool) {
        let ranges = self.rules.iter().filter_map(|rule| rule.when.iteration);
        let begins = ranges
            .flat_map(|range| [range.at_least, range.at_most.and_then(|last| last.checked_add(1))]);
        let begins = begins.flatten().chain([1]).filter(|begin| *begin > 0 && fits(*begin));
        found.extend(begins.map(FactChange::Iteration));
    }

    /// The changes that may make some active skill list the tool, or none.
    fn make_listed(
        &self,
        listed: bool,
        tool: &Tool,
        facts: Facts<'_>,
        found: &mut Vec<FactChange>,
    ) {
        let skills = self.visibility.skills.listing(tool.name()).map(|skill| &skill.id);
        let (active, idle): (Vec<_>, Vec<_>) = skills.partition(|id| facts.skills.contains(id));
        if listed {
            found.extend(idle.into_iter().cloned().map(FactChange::ActivateSkill));
        } else {
            found.extend(active.into_iter().cloned().map(FactChange::DeactivateSkill));
        }
    }
}

/// The facts when a skill is activated, with the skills before it: as at the beginning of a turn.
fn before_skill(facts: Facts<'_>, position: usize) -> Facts<'_> {
    let skills = facts.skills.get(..position).unwrap_or_default();
    Facts { skills, steps: &[], iteration: 1, ..facts }
}

/// Whether a decision comes from this rule, not from an equal one.
fn is_by(ruling: &RuleMatch<'_>, rule: &Rule) -> bool {
    ruling.rule().is_some_and(|decided| std::ptr::eq(decided, rule))
}

/// The first obstacle to offering the tool; `None` when there is none.
pub(super) fn obstacle<'a>(
    visibility: &'a Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> Option<Obstacle<'a>> {
    let ruling = visibility.judge(tool, facts);
    if facts.personality.objection(tool).is_some() {
        Some(Obstacle::Personality)
    } else if !ruling.offers() {
        Some(Obstacle::Policy(ruling))
    } else if !visibility.skills.admit(facts.skills, tool) {
        Some(Obstacle::Skills)
    } else {
        let mut holding = visibility.skills.steps_that_hold(facts.skills, facts.steps);
        let (skill, ..) =
            holding.find(|(_, steps, position)| steps.is_of_another(*position, tool.name()))?;
        Some(Obstacle::Steps(skill))
    }
}
