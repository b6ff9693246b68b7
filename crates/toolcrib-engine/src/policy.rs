//! Which rule decides on a tool, in a situation.

use std::sync::Arc;

use toolcrib_core::{Effect, Policy, PolicyDefault, Rule, SkillId, ToolDefinition};

use crate::skills::Skills;

/// What rules may ask of a situation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// The active skills, the last activated last.
    pub(crate) skills: &'a [SkillId],
    /// The principal's roles.
    pub(crate) roles: &'a [Arc<str>],
    /// The tenant.
    pub(crate) tenant: Option<&'a str>,
}

/// What decides on a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ruling<'a> {
    /// A rule.
    Rule(&'a Rule),
    /// No rule matched.
    Default(PolicyDefault),
}

impl Ruling<'_> {
    pub(crate) fn effect(&self) -> Effect {
        match self {
            Self::Rule(rule) => rule.effect,
            Self::Default(PolicyDefault::Allow) => Effect::Allow,
            Self::Default(PolicyDefault::Deny) => Effect::Deny,
        }
    }

    /// `ask` never hides: it acts at the call.
    pub(crate) fn offers(&self) -> bool {
        self.effect() != Effect::Deny
    }

    /// Whether it is this rule's, not one that is merely alike.
    pub(crate) fn is_by(&self, rule: &Rule) -> bool {
        matches!(self, Self::Rule(decided) if std::ptr::eq(*decided, rule))
    }

    pub(crate) fn label(&self) -> Arc<str> {
        match self {
            Self::Rule(rule) => Arc::clone(&rule.label),
            Self::Default(_) => "policy_default".into(),
        }
    }

    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        match self {
            Self::Rule(rule) => rule.reason.clone(),
            Self::Default(_) => None,
        }
    }
}

/// Walks the list: the first rule that speaks of the tool and holds in the situation decides.
pub(crate) fn judge<'a>(
    policy: &'a Policy,
    skills: &Skills,
    tool: &ToolDefinition,
    facts: Facts<'_>,
) -> Ruling<'a> {
    policy
        .rules
        .iter()
        .find(|rule| rule.tools.matches(tool) && holds(rule, skills, tool, facts))
        .map_or_else(
            || {
                // The default never judges what Toolcrib itself offers.
                let default =
                    if tool.is_framework() { PolicyDefault::Allow } else { policy.default };
                Ruling::Default(default)
            },
            Ruling::Rule,
        )
}

fn holds(rule: &Rule, skills: &Skills, tool: &ToolDefinition, facts: Facts<'_>) -> bool {
    let when = &rule.when;
    (when.skills.is_empty() || when.skills.iter().any(|skill| facts.skills.contains(skill)))
        && when
            .listed_by_active_skill
            .is_none_or(|wanted| wanted == skills.lists(facts.skills, tool.name()))
        && (when.roles.is_empty() || when.roles.iter().any(|role| facts.roles.contains(role)))
        && (when.tenants.is_empty()
            || facts.tenant.is_some_and(|tenant| when.tenants.iter().any(|t| **t == *tenant)))
}
