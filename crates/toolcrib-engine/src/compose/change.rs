//! The smallest change of facts under which a tool would be offered, or would not be.
//!
//! It is searched for, fewest facts first, with the very functions that compose the menu, so it
//! cannot differ from them. At each step only those facts are tried that can matter there: to offer a
//! tool, what makes the rule that denies no longer hold, what makes an earlier rule hold that does not
//! deny, what makes personality and skills let it pass; to withhold it, the reverse. Of any change
//! that suffices at least one fact is always among these, so none is missed. A skill may only be
//! active under a personality that reaches it: where one of the two was supposed, the other has to go
//! with it, and is a fact of its own.

use std::sync::Arc;

use toolcrib_core::{Effect, Fact, RoleHolders, Rule, Ruling, SkillId, Tool};

use super::{
    Visibility,
    fact::{FactChange, Supposed},
};
use crate::{personality::Personality, policy::Facts, skills::Skill};

/// A change of more facts than this is not looked for.
pub(super) const MOST_CHANGES: usize = 4;

/// How many situations are judged before the search gives up: some milliseconds.
const MOST_JUDGED: usize = 20_000;

/// What a change is to bring about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal<'a> {
    /// Personality, policy and skills let the tool be offered.
    Offer(&'a Tool),
    /// They do not.
    Withhold(&'a Tool),
    /// This skill is the one activated last.
    Latest(&'a SkillId),
}

/// What keeps a tool from being offered.
#[derive(Debug, Clone)]
pub(super) enum Obstacle<'a> {
    Personality,
    Policy(Ruling<'a>),
    Skills,
    /// Another step of this skill is the current one, or all are done.
    Steps(&'a Skill),
}

/// What the search came to.
#[derive(Debug)]
pub(super) enum Found {
    /// These facts, and without any one of them it does not suffice. In the order in which they are
    /// to be changed.
    Smallest(Vec<FactChange>),
    /// No change of facts suffices.
    Nothing,
    /// More than [`MOST_CHANGES`] facts would have to change, if any change suffices.
    TooMany,
    /// There are too many possibilities to try.
    GaveUp,
}

/// Looks for the smallest change that reaches all of some goals.
pub(super) struct Search<'a> {
    visibility: &'a Visibility,
    start: Facts<'a>,
    goals: Vec<Goal<'a>>,
    /// The rules that speak of one of the tools, in order.
    rules: Vec<&'a Rule>,
    /// Whether one of them names principals: then who the principal is matters beside the roles.
    names_principals: bool,
    judged: usize,
    /// Whether there was more to try than the size allowed.
    cut_short: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        visibility: &'a Visibility,
        start: Facts<'a>,
        goals: impl IntoIterator<Item = Goal<'a>>,
    ) -> Self {
        let goals: Vec<_> = goals.into_iter().collect();
        let speaks = |rule: &&Rule| {
            goals.iter().any(|goal| match goal {
                Goal::Offer(tool) | Goal::Withhold(tool) => rule.tools.matches(tool),
                Goal::Latest(_) => false,
            })
        };
        let rules: Vec<_> = visibility.policy.rules.iter().filter(speaks).collect();
        let names_principals = rules.iter().any(|rule| rule.when.reads(Fact::Principal));
        Self { visibility, start, goals, rules, names_principals, judged: 0, cut_short: false }
    }

    /// Because smaller sizes are tried out first, what is found can do without none of its parts.
    pub(super) fn run(&mut self) -> Found {
        for size in 1..=MOST_CHANGES {
            self.cut_short = false;
            let mut chosen = Vec::with_capacity(size);
            if self.extend(&mut chosen, size) {
                // Skills stay in the order in which they were chosen: which of them is activated
                // last can matter.
                chosen.sort_by_key(FactChange::rank);
                return Found::Smallest(chosen);
            }
            if self.judged >= MOST_JUDGED {
                return Found::GaveUp;
            }
            if !self.cut_short {
                return Found::Nothing;
            }
        }
        Found::TooMany
    }

    /// The facts after some changes.
    pub(super) fn supposed<'s>(
        &'s self,
        changes: impl IntoIterator<Item = &'s FactChange>,
    ) -> Supposed<'s> {
        Supposed::after(self.visibility, self.start, changes, self.names_principals)
    }

    /// Adds up to `left` changes until all goals are reached; what was chosen is then left there.
    fn extend(&mut self, chosen: &mut Vec<FactChange>, left: usize) -> bool {
        self.judged += 1;
        if self.judged >= MOST_JUDGED {
            return false;
        }
        let candidates = {
            let supposed = self.supposed(&*chosen);
            match self.candidates(supposed.facts()) {
                None => return true,
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
            chosen.push(change);
            if self.extend(chosen, left - 1) {
                return true;
            }
            chosen.pop();
        }
        false
    }

    /// An active skill that the personality does not reach: no turn is like that.
    pub(super) fn out_of_reach(&self, facts: Facts<'_>) -> Option<&'a Skill> {
        let mut active = facts.skills.iter().filter_map(|id| self.visibility.skills.get(id));
        active.find(|skill| !skill.is_reached_by(facts.personality))
    }

    /// The changes that can matter to the first goal that is not reached, likely ones first; `None`
    /// when all are.
    fn candidates(&self, facts: Facts<'_>) -> Option<Vec<FactChange>> {
        let mut found = match self.out_of_reach(facts) {
            Some(skill) => self.to_reach(skill, facts),
            None => self.to_a_goal(facts)?,
        };
        found.sort();
        found.dedup();
        Some(found)
    }

    fn to_a_goal(&self, facts: Facts<'_>) -> Option<Vec<FactChange>> {
        self.goals.iter().find_map(|goal| match goal {
            Goal::Offer(tool) => {
                let obstacle = obstacle(self.visibility, tool, facts)?;
                Some(self.to_offer(tool, &obstacle, facts))
            }
            Goal::Withhold(tool) => match obstacle(self.visibility, tool, facts) {
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
                // Steps that are done begin anew with the skill, and hold nothing behind another.
                let others = self.visibility.skills.iter().map(|skill| skill.id.clone());
                found.extend(others.map(FactChange::ActivateSkill));
            }
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
        if !tool.always_include() {
            found.extend(self.any_other_skill(tool, facts).map(FactChange::ActivateSkill));
        }
        found
    }

    /// Activating a skill that does not list the tool takes it away from those that do; which one is
    /// all the same, unless a rule names it, it is active already or the personality does not reach
    /// it.
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
            is_idle && !offers(id) && !is_named(id)
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
        let others = others.filter(|other| other.id() != facts.personality.id() && fits(other));
        found.extend(others.map(|other| FactChange::Personality(other.id().into())));
    }

    /// What may make a rule hold that does not.
    fn satisfy(&self, rule: &Rule, tool: &Tool, facts: Facts<'_>, found: &mut Vec<FactChange>) {
        let when = &rule.when;
        if !when.skills.iter().any(|skill| facts.skills.contains(skill)) {
            // A rule may name a skill that is not there; nobody can activate it.
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
        self.personalities(facts, found, |other| is(Some(other.id()), &when.personalities));
        if let Some(range) = when.iteration {
            self.iterations(found, |iteration| range.contains(iteration));
        }
    }

    /// What may make a rule not hold that does.
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
            self.personalities(facts, found, |other| !named(other.id()));
        }
        if let Some(range) = when.iteration {
            self.iterations(found, |iteration| !range.contains(iteration));
        }
    }

    /// What may give a role that is not held.
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

    /// What may take a role away that is held.
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

    /// Who has the roles that the rules name.
    fn holders(&self) -> impl Iterator<Item = &'a RoleHolders> {
        let roles = &self.visibility.policy.roles;
        self.rules.iter().flat_map(|rule| &rule.when.roles).filter_map(|role| roles.holders(role))
    }

    /// One iteration of each stretch that is the same to all rules.
    fn iterations(&self, found: &mut Vec<FactChange>, fits: impl Fn(u32) -> bool) {
        let ranges = self.rules.iter().filter_map(|rule| rule.when.iteration);
        let begins = ranges
            .flat_map(|range| [range.at_least, range.at_most.and_then(|last| last.checked_add(1))]);
        let begins = begins.flatten().chain([1]).filter(|begin| *begin > 0 && fits(*begin));
        found.extend(begins.map(FactChange::Iteration));
    }

    /// What may make some active skill list the tool, or none.
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

/// Whether a ruling is this rule's, not one's that is merely alike.
fn is_by(ruling: &Ruling<'_>, rule: &Rule) -> bool {
    ruling.rule().is_some_and(|decided| std::ptr::eq(decided, rule))
}

/// What keeps the tool from being offered; `None` when nothing does.
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
