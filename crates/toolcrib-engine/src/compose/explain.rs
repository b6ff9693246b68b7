//! Why skills and policy withhold a tool, and the smallest change that would offer it.

use std::sync::Arc;

use toolcrib_core::{SkillId, Tool, When};

use super::{Visibility, WithheldBy};
use crate::policy::{Facts, Ruling, judge};

/// A change of more facts than this is not looked for.
const MOST_CHANGES: usize = 4;

/// What skills and policy have against a tool.
pub(super) struct Explanation {
    pub(super) by: Option<WithheldBy>,
    pub(super) reasons: Vec<String>,
}

/// The rule that denies a tool, with its reason; `None` when policy offers it.
pub(super) fn denial(
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> Option<(Arc<str>, Option<Arc<str>>)> {
    let ruling = judge(&visibility.policy, &visibility.skills, tool, facts);
    (!ruling.offers()).then(|| (ruling.label(), ruling.reason()))
}

/// Names what withholds the tool, and every fact that must change for it to be offered.
pub(super) fn explain(visibility: &Visibility, tool: &Tool, facts: Facts<'_>) -> Explanation {
    let mut by = None;
    let mut reasons = Vec::new();
    let ruling = judge(&visibility.policy, &visibility.skills, tool, facts);
    if !ruling.offers() {
        by = Some(WithheldBy::Policy);
        reasons.push(match ruling {
            Ruling::Rule(rule) => match &rule.reason {
                Some(reason) => format!("{} denies it: {reason}", rule.label),
                None => format!("{} denies it", rule.label),
            },
            Ruling::Default(_) => "no rule allows it, and policy_default is \"deny\"".to_owned(),
        });
    }
    if !visibility.skills.admit(facts.skills, tool) {
        by = by.or(Some(WithheldBy::Skill));
        let active: Vec<_> = facts.skills.iter().map(|skill| format!("`{skill}`")).collect();
        reasons.push(format!("no active skill lists it (active: {})", active.join(", ")));
    }
    if by.is_some() {
        let candidates = changes(visibility, tool, facts);
        reasons.push(match smallest_change(&candidates, visibility, tool, facts) {
            Some(changes) => {
                let words: Vec<_> = changes.iter().map(|c| c.in_words(visibility)).collect();
                format!("to offer it: {}", words.join(", and "))
            }
            None if candidates.len() > MOST_CHANGES => format!(
                "only a change of more than {MOST_CHANGES} skills, roles and tenants could offer it"
            ),
            None => "no other skill, role or tenant offers it".to_owned(),
        });
    }
    Explanation { by, reasons }
}

/// One fact that can be changed from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Activate(SkillId),
    NotActive(SkillId),
    Grant(Arc<str>),
    Revoke(Arc<str>),
    Tenant(Arc<str>),
    NoTenant,
}

impl Change {
    fn in_words(&self, visibility: &Visibility) -> String {
        match self {
            Self::Activate(skill) => format!("activate skill `{skill}`"),
            Self::NotActive(skill) => format!("skill `{skill}` not active"),
            Self::Grant(role) => {
                let holders: Vec<_> = visibility.policy.roles.holders(role).collect();
                match holders.as_slice() {
                    [] => format!("a principal with role `{role}`"),
                    holders => {
                        format!("a principal with role `{role}` ({})", holders.join(", "))
                    }
                }
            }
            Self::Revoke(role) => format!("a principal without role `{role}`"),
            Self::Tenant(tenant) => format!("tenant `{tenant}`"),
            Self::NoTenant => "no tenant, or one that no rule names".to_owned(),
        }
    }
}

/// The facts that a rule or a skill asks about, each as the change that flips it.
fn changes(visibility: &Visibility, tool: &Tool, facts: Facts<'_>) -> Vec<Change> {
    let mut found = Vec::new();
    let mut add = |change| {
        if !found.contains(&change) {
            found.push(change);
        }
    };
    // Likely ones first: among equally small changes the first found is named.
    for skill in visibility.skills.listing(tool.name()) {
        if !facts.skills.contains(&skill.id) {
            add(Change::Activate(skill.id.clone()));
        }
    }
    let relevant = visibility.policy.rules.iter().filter(|rule| rule.tools.matches(tool));
    for When { skills, roles, tenants, .. } in relevant.map(|rule| &rule.when) {
        for role in roles {
            add(if facts.roles.contains(role) {
                Change::Revoke(Arc::clone(role))
            } else {
                Change::Grant(Arc::clone(role))
            });
        }
        for tenant in tenants {
            add(if facts.tenant == Some(tenant) {
                Change::NoTenant
            } else {
                Change::Tenant(Arc::clone(tenant))
            });
        }
        for skill in skills {
            // A rule may name a skill that is not there; nobody can activate it.
            if !facts.skills.contains(skill) && visibility.skills.get(skill).is_some() {
                add(Change::Activate(skill.clone()));
            }
        }
    }
    for skill in facts.skills {
        add(Change::NotActive(skill.clone()));
    }
    found
}

/// The smallest set of changes under which the tool is offered. Because smaller sets are tried
/// first, leaving out any one of them does not suffice.
fn smallest_change<'a>(
    candidates: &'a [Change],
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> Option<Vec<&'a Change>> {
    (1..=MOST_CHANGES.min(candidates.len())).find_map(|size| {
        let mut chosen = Vec::with_capacity(size);
        choose(candidates, size, &mut chosen, &mut |chosen| {
            offered_after(visibility, tool, facts, chosen)
        })
        .then_some(chosen)
    })
}

/// Tries the subsets of one size in order until one fits; it is left in `chosen`.
fn choose<'a>(
    from: &'a [Change],
    size: usize,
    chosen: &mut Vec<&'a Change>,
    fits: &mut impl FnMut(&[&Change]) -> bool,
) -> bool {
    if size == 0 {
        return fits(chosen);
    }
    let mut rest = from;
    while let Some((first, others)) = rest.split_first() {
        if others.len() + 1 < size {
            return false;
        }
        chosen.push(first);
        if choose(others, size - 1, chosen, fits) {
            return true;
        }
        chosen.pop();
        rest = others;
    }
    false
}

fn offered_after(
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
    changes: &[&Change],
) -> bool {
    let mut skills = facts.skills.to_vec();
    let mut roles = facts.roles.to_vec();
    let mut tenant = facts.tenant;
    let mut tenant_changes = 0;
    for change in changes {
        match change {
            Change::Activate(skill) => skills.push(skill.clone()),
            Change::NotActive(skill) => skills.retain(|active| active != skill),
            Change::Grant(role) => roles.push(Arc::clone(role)),
            Change::Revoke(role) => roles.retain(|held| held != role),
            Change::Tenant(wanted) => {
                tenant_changes += 1;
                tenant = Some(wanted);
            }
            Change::NoTenant => {
                tenant_changes += 1;
                tenant = None;
            }
        }
    }
    // There is one tenant: two changes of it contradict each other.
    tenant_changes <= 1 && visibility.offers(tool, Facts { skills: &skills, roles: &roles, tenant })
}
