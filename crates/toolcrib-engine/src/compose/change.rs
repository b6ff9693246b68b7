//! The smallest change of facts under which a tool would be offered.
//!
//! It is searched for, fewest facts first, with the very functions that compose the menu, so it
//! cannot differ from them. At each step only those facts are tried that can matter there: what
//! makes the rule that denies no longer hold, what makes an earlier rule hold that does not deny,
//! and what makes the skills let the tool pass. Of any change that suffices at least one fact is
//! always among these, so none is missed.

use std::sync::Arc;

use toolcrib_core::{Effect, Rule, SkillId, Tool};

use super::Visibility;
use crate::policy::{Facts, Ruling, judge};

/// A change of more facts than this is not looked for.
pub(super) const MOST_CHANGES: usize = 4;

/// How many situations are judged before the search gives up: some milliseconds.
const MOST_JUDGED: usize = 20_000;

/// One fact that can be changed from outside. In the order in which they are tried.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    Activate(SkillId),
    Grant(Arc<str>),
    Revoke(Arc<str>),
    Tenant(Arc<str>),
    NoTenant,
    NotActive(SkillId),
}

impl Change {
    pub(super) fn in_words(&self, visibility: &Visibility) -> String {
        match self {
            Self::Activate(skill) => format!("activate skill `{skill}`"),
            Self::NotActive(skill) => format!("skill `{skill}` not active"),
            Self::Grant(role) => {
                let holders: Vec<_> = visibility.policy.roles.holders(role).collect();
                match holders.as_slice() {
                    [] => format!("a principal with role `{role}`"),
                    holders => format!("a principal with role `{role}` ({})", holders.join(", ")),
                }
            }
            Self::Revoke(role) => format!("a principal without role `{role}`"),
            Self::Tenant(tenant) => format!("tenant `{tenant}`"),
            Self::NoTenant => "no tenant, or one that no rule names".to_owned(),
        }
    }

    fn contradicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Activate(a) | Self::NotActive(a), Self::Activate(b) | Self::NotActive(b)) => {
                a == b
            }
            (Self::Grant(a) | Self::Revoke(a), Self::Grant(b) | Self::Revoke(b)) => a == b,
            (Self::Tenant(_) | Self::NoTenant, Self::Tenant(_) | Self::NoTenant) => true,
            _ => false,
        }
    }
}

/// What keeps a tool from being offered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Obstacle<'a> {
    Policy(Ruling<'a>),
    Skills,
}

/// What the search came to.
pub(super) enum Found {
    /// These facts, and without any one of them it does not suffice.
    Smallest(Vec<Change>),
    /// No change of facts offers the tool.
    Nothing,
    /// More than [`MOST_CHANGES`] facts would have to change, if any change suffices.
    TooMany,
    /// There are too many possibilities to try.
    GaveUp,
}

/// Looks for the smallest change that offers one tool.
pub(super) struct Search<'a> {
    visibility: &'a Visibility,
    tool: &'a Tool,
    start: Facts<'a>,
    /// The rules that speak of the tool, in order.
    rules: Vec<&'a Rule>,
    judged: usize,
    /// Whether there was more to try than the size allowed.
    cut_short: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(visibility: &'a Visibility, tool: &'a Tool, start: Facts<'a>) -> Self {
        let rules = visibility.policy.rules.iter().filter(|rule| rule.tools.matches(tool));
        Self { visibility, tool, start, rules: rules.collect(), judged: 0, cut_short: false }
    }

    /// Because smaller sizes are tried out first, what is found can do without none of its parts.
    pub(super) fn run(mut self) -> Found {
        for size in 1..=MOST_CHANGES {
            self.cut_short = false;
            let mut chosen = Vec::with_capacity(size);
            if self.extend(&mut chosen, size) {
                chosen.sort();
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

    /// Adds up to `left` changes until the tool is offered; what was chosen is then left there.
    fn extend(&mut self, chosen: &mut Vec<Change>, left: usize) -> bool {
        self.judged += 1;
        if self.judged >= MOST_JUDGED {
            return false;
        }
        let supposed = Supposed::after(self.start, &*chosen);
        let Some(obstacle) = obstacle(self.visibility, self.tool, supposed.facts()) else {
            return true;
        };
        let candidates = self.candidates(obstacle, supposed.facts());
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

    /// The changes that can matter to an obstacle, likely ones first.
    fn candidates(&self, obstacle: Obstacle<'_>, facts: Facts<'_>) -> Vec<Change> {
        let mut found = Vec::new();
        match obstacle {
            Obstacle::Skills => {
                found.extend(self.listing(|active| !active, facts).map(Change::Activate));
                found.extend(facts.skills.iter().cloned().map(Change::NotActive));
            }
            Obstacle::Policy(ruling) => {
                for rule in &self.rules {
                    if ruling.is_by(rule) {
                        self.falsify(rule, facts, &mut found);
                        break;
                    }
                    if rule.effect != Effect::Deny {
                        self.satisfy(rule, facts, &mut found);
                    }
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// What may make a rule hold that does not.
    fn satisfy(&self, rule: &Rule, facts: Facts<'_>, found: &mut Vec<Change>) {
        let when = &rule.when;
        if !when.skills.iter().any(|skill| facts.skills.contains(skill)) {
            // A rule may name a skill that is not there; nobody can activate it.
            let known = when.skills.iter().filter(|id| self.visibility.skills.get(id).is_some());
            found.extend(known.cloned().map(Change::Activate));
        }
        if let Some(wanted) = when.listed_by_active_skill {
            self.make_listed(wanted, facts, found);
        }
        if !when.roles.iter().any(|role| facts.roles.contains(role)) {
            found.extend(when.roles.iter().cloned().map(Change::Grant));
        }
        if !when.tenants.iter().any(|tenant| facts.tenant == Some(tenant)) {
            found.extend(when.tenants.iter().cloned().map(Change::Tenant));
        }
    }

    /// What may make a rule not hold that does.
    fn falsify(&self, rule: &Rule, facts: Facts<'_>, found: &mut Vec<Change>) {
        let when = &rule.when;
        let active = when.skills.iter().filter(|skill| facts.skills.contains(skill));
        found.extend(active.cloned().map(Change::NotActive));
        if let Some(is) = when.listed_by_active_skill {
            self.make_listed(!is, facts, found);
        }
        let held = when.roles.iter().filter(|role| facts.roles.contains(role));
        found.extend(held.cloned().map(Change::Revoke));
        if !when.tenants.is_empty() {
            found.push(Change::NoTenant);
            let named = self.rules.iter().flat_map(|rule| &rule.when.tenants);
            let others = named.filter(|tenant| !when.tenants.contains(tenant));
            found.extend(others.cloned().map(Change::Tenant));
        }
    }

    /// What may make some active skill list the tool, or none.
    fn make_listed(&self, listed: bool, facts: Facts<'_>, found: &mut Vec<Change>) {
        if listed {
            found.extend(self.listing(|active| !active, facts).map(Change::Activate));
        } else {
            found.extend(self.listing(|active| active, facts).map(Change::NotActive));
        }
    }

    /// The skills that list the tool, by whether they are active.
    fn listing(
        &self,
        wanted: impl Fn(bool) -> bool,
        facts: Facts<'_>,
    ) -> impl Iterator<Item = SkillId> {
        let skills = self.visibility.skills.listing(self.tool.name());
        skills.map(|skill| skill.id.clone()).filter(move |id| wanted(facts.skills.contains(id)))
    }
}

/// What keeps the tool from being offered; `None` when nothing does.
pub(super) fn obstacle<'a>(
    visibility: &'a Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> Option<Obstacle<'a>> {
    let ruling = judge(&visibility.policy, &visibility.skills, tool, facts);
    if !ruling.offers() {
        Some(Obstacle::Policy(ruling))
    } else if !visibility.skills.admit(facts.skills, tool) {
        Some(Obstacle::Skills)
    } else {
        None
    }
}

/// Facts with changes made to them.
pub(super) struct Supposed<'a> {
    skills: Vec<SkillId>,
    roles: Vec<Arc<str>>,
    tenant: Option<&'a str>,
}

impl<'a> Supposed<'a> {
    pub(super) fn after(start: Facts<'a>, changes: impl IntoIterator<Item = &'a Change>) -> Self {
        let mut this = Self {
            skills: start.skills.to_vec(),
            roles: start.roles.to_vec(),
            tenant: start.tenant,
        };
        for change in changes {
            match change {
                Change::Activate(skill) => this.skills.push(skill.clone()),
                Change::NotActive(skill) => this.skills.retain(|active| active != skill),
                Change::Grant(role) => this.roles.push(Arc::clone(role)),
                Change::Revoke(role) => this.roles.retain(|held| held != role),
                Change::Tenant(tenant) => this.tenant = Some(tenant),
                Change::NoTenant => this.tenant = None,
            }
        }
        this
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { skills: &self.skills, roles: &self.roles, tenant: self.tenant }
    }
}
