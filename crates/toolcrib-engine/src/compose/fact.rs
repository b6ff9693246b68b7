//! Facts that can be changed from outside, and situations with changed facts.

use std::{fmt::Write as _, sync::Arc};

use serde::Serialize;
use toolcrib_core::{Roles, SkillId};

use super::Visibility;
use crate::{policy::facts::Facts, skills::StepPosition};

/// One fact with its required value. Variants are in the order of presentation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "fact", content = "value", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FactChange {
    /// The skill is activated, as the last one.
    ActivateSkill(SkillId),
    /// A principal, or claims, with the role.
    GainRole(Arc<str>),
    /// A principal, or claims, without the role.
    LoseRole(Arc<str>),
    /// This tenant.
    Tenant(Arc<str>),
    /// No tenant, or one that no rule and no role names.
    OtherTenant,
    /// The skill is not active.
    DeactivateSkill(SkillId),
    /// This personality.
    Personality(Arc<str>),
    /// This principal.
    Principal(Arc<str>),
    /// No principal, or one that no rule and no role names.
    OtherPrincipal,
    /// This iteration of a turn, counted from 1.
    Iteration(u32),
    /// Whether the conversation has read content of unknown authors.
    Tainted(bool),
}

impl FactChange {
    /// Groups facts that are presented together.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::ActivateSkill(_) => 0,
            Self::GainRole(_) => 1,
            Self::LoseRole(_) => 2,
            Self::Tenant(_) | Self::OtherTenant => 3,
            Self::DeactivateSkill(_) => 4,
            Self::Personality(_) => 5,
            Self::Principal(_) | Self::OtherPrincipal => 6,
            Self::Iteration(_) => 7,
            Self::Tainted(_) => 8,
        }
    }

    pub(super) fn in_words(&self, visibility: &Visibility) -> String {
        match self {
            Self::ActivateSkill(skill) => format!("activate skill `{skill}`"),
            Self::DeactivateSkill(skill) => format!("skill `{skill}` not active"),
            Self::GainRole(role) => {
                let who = who_has(&visibility.policy.roles, role);
                format!("a principal with role `{role}`{who}")
            }
            Self::LoseRole(role) => format!("a principal without role `{role}`"),
            Self::Tenant(tenant) => format!("tenant `{tenant}`"),
            Self::OtherTenant => "no tenant, or one that no rule names".to_owned(),
            Self::Personality(id) => format!("personality `{id}`"),
            Self::Principal(principal) => format!("principal `{principal}`"),
            Self::OtherPrincipal => "no principal, or one that no rule names".to_owned(),
            Self::Iteration(iteration) => format!("iteration {iteration}"),
            Self::Tainted(true) => "a conversation that has read untrusted content".to_owned(),
            Self::Tainted(false) => "a conversation that has read no untrusted content".to_owned(),
        }
    }

    /// Whether the two changes exclude each other.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        use FactChange::{
            ActivateSkill, DeactivateSkill, GainRole, Iteration, LoseRole, OtherPrincipal,
            OtherTenant, Personality, Principal, Tainted, Tenant,
        };
        match (self, other) {
            (
                ActivateSkill(one) | DeactivateSkill(one),
                ActivateSkill(other) | DeactivateSkill(other),
            ) => one == other,
            (GainRole(one) | LoseRole(one), GainRole(other) | LoseRole(other)) => one == other,
            (Tenant(_) | OtherTenant, Tenant(_) | OtherTenant)
            | (Principal(_) | OtherPrincipal, Principal(_) | OtherPrincipal)
            | (Personality(_), Personality(_))
            | (Iteration(_), Iteration(_))
            | (Tainted(_), Tainted(_)) => true,
            _ => false,
        }
    }
}

/// The principals and claims with a role, sorted, in brackets; empty if there are none.
fn who_has(roles: &Roles, role: &str) -> String {
    let Some(holders) = roles.holders(role) else { return String::new() };
    let mut principals: Vec<&str> = holders.principals.iter().map(|name| &**name).collect();
    principals.sort_unstable();
    let mut who = principals.join(", ");
    let mut claims = String::new();
    for (claim, values) in &holders.claims {
        let and = if claims.is_empty() { "" } else { " and " };
        let _ = write!(claims, "{and}claim `{claim}` of {}", values.join(" or "));
    }
    if !claims.is_empty() {
        let or = if who.is_empty() { "" } else { "; or " };
        who = format!("{who}{or}{claims}");
    }
    if who.is_empty() { who } else { format!(" ({who})") }
}

/// Facts with changes applied.
pub(super) struct HypotheticalFacts<'a> {
    skills: Vec<SkillId>,
    steps: Vec<StepPosition>,
    roles: Vec<Arc<str>>,
    roles_by_claims: Vec<Arc<str>>,
    /// All other facts, with changed values.
    facts: Facts<'a>,
}

impl<'a> HypotheticalFacts<'a> {
    /// `names_principals` says whether a rule names principals. If none does, a principal is just a
    /// set of roles, so each of its roles can change separately.
    pub(super) fn after(
        visibility: &'a Visibility,
        start: Facts<'a>,
        changes: impl IntoIterator<Item = &'a FactChange>,
        names_principals: bool,
    ) -> Self {
        let mut skills = start.skills.to_vec();
        let mut steps = start.steps.to_vec();
        let mut by_claims = start.roles_by_claims.to_vec();
        let mut lost = Vec::new();
        let mut facts = start;
        for change in changes {
            match change {
                FactChange::ActivateSkill(skill) => {
                    skills.retain(|active| active != skill);
                    skills.push(skill.clone());
                    visibility.skills.begin_steps(skill, &mut steps);
                }
                FactChange::DeactivateSkill(skill) => {
                    skills.retain(|active| active != skill);
                    steps.retain(|at| at.skill != *skill);
                }
                FactChange::GainRole(role) => by_claims.push(Arc::clone(role)),
                FactChange::LoseRole(role) => {
                    by_claims.retain(|held| held != role);
                    lost.push(role);
                }
                FactChange::Tenant(tenant) => facts.tenant = Some(tenant),
                FactChange::OtherTenant => facts.tenant = None,
                FactChange::Principal(principal) => facts.principal = Some(principal),
                FactChange::OtherPrincipal => facts.principal = None,
                FactChange::Personality(id) => {
                    if let Some(personality) = visibility.personalities.get(id) {
                        facts.personality = personality;
                    }
                }
                FactChange::Iteration(iteration) => facts.iteration = *iteration,
                FactChange::Tainted(tainted) => facts.tainted = *tainted,
            }
        }
        let all = &visibility.policy.roles;
        let has = |role: &Arc<str>| {
            let holders = all.holders(role);
            by_claims.contains(role)
                || holders.is_some_and(|holders| holders.has_tenant(facts.tenant))
                || (holders.is_some_and(|holders| holders.has_principal(facts.principal))
                    && (names_principals || !lost.contains(&role)))
        };
        // A rule may name a role that is not declared: then it counts as one by claims.
        let mut roles: Vec<_> = all.names().filter(|role| has(role)).cloned().collect();
        roles.extend(by_claims.iter().filter(|role| all.holders(role).is_none()).cloned());
        Self { skills, steps, roles, roles_by_claims: by_claims, facts }
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            skills: &self.skills,
            steps: &self.steps,
            roles: &self.roles,
            roles_by_claims: &self.roles_by_claims,
            ..self.facts
        }
    }
}
