//! Which rule decides on a tool or a call, in a situation.

use std::sync::Arc;

use serde_json::Value;

use super::{Effect, Policy, PolicyDefault, Rule, When};
use crate::{definition::ToolDefinition, name::SkillId};

/// The situation in which a policy is read.
pub trait PolicyFacts {
    /// The active skills, the last activated last.
    fn active_skills(&self) -> &[SkillId];
    /// Whether some active skill lists a tool.
    fn is_listed(&self, tool: &ToolDefinition) -> bool;
    /// Whether the turn has a role.
    fn has_role(&self, role: &str) -> bool;
    /// The tenant.
    fn tenant(&self) -> Option<&str>;
    /// The principal.
    fn principal(&self) -> Option<&str>;
    /// The personality's id.
    fn personality(&self) -> &str;
    /// Which iteration of the turn, from 1.
    fn iteration(&self) -> u32;
}

/// What decides.
#[derive(Debug, Clone)]
pub enum Ruling<'p> {
    /// A rule.
    Rule(&'p Rule),
    /// No rule matched.
    Default(PolicyDefault),
    /// Whether a rule's condition on arguments holds could not be told: the call is denied.
    Failed {
        /// The rule.
        rule: &'p Rule,
        /// Why, for the operator.
        problem: String,
    },
}

impl<'p> Ruling<'p> {
    /// What is done.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Rule(rule) => rule.effect,
            Self::Default(PolicyDefault::Allow) => Effect::Allow,
            Self::Default(PolicyDefault::Deny) | Self::Failed { .. } => Effect::Deny,
        }
    }

    /// Whether the tool is offered: `ask` and `halt` never hide, they act at the call.
    pub fn offers(&self) -> bool {
        self.effect() != Effect::Deny
    }

    /// The rule, unless it is the default.
    pub fn rule(&self) -> Option<&'p Rule> {
        match self {
            Self::Rule(rule) | Self::Failed { rule, .. } => Some(rule),
            Self::Default(_) => None,
        }
    }

    /// How it is called in events: the rule's label, or `policy_default`.
    pub fn label(&self) -> Arc<str> {
        self.rule().map_or_else(|| "policy_default".into(), |rule| Arc::clone(&rule.label))
    }

    /// Why, for the operator.
    pub fn reason(&self) -> Option<Arc<str>> {
        match self {
            Self::Failed { problem, .. } => {
                Some(format!("whether the rule holds could not be told: {problem}").into())
            }
            ruling => ruling.rule()?.reason.clone(),
        }
    }
}

impl Policy {
    /// Walks the list: the first rule that speaks of the tool and holds in the situation decides.
    /// Without `arguments`, what is decided is whether the tool is offered; see [`Policy`].
    pub fn judge(
        &self,
        tool: &ToolDefinition,
        facts: &impl PolicyFacts,
        arguments: Option<&Value>,
    ) -> Ruling<'_> {
        let holding = self.rules.iter().filter(|rule| rule.when.holds(facts));
        decide(self, holding, tool, facts, arguments)
    }

    /// The rules that hold in a situation as far as it does not depend on the tool, to judge many
    /// tools by.
    pub fn in_situation<'p, 'f, F: PolicyFacts>(&'p self, facts: &'f F) -> InSituation<'p, 'f, F> {
        let holding = self.rules.iter().filter(|rule| rule.when.holds(facts)).collect();
        InSituation { policy: self, holding, facts }
    }
}

/// A policy in one situation. Made with [`Policy::in_situation`].
#[derive(Debug)]
pub struct InSituation<'p, 'f, F> {
    policy: &'p Policy,
    holding: Vec<&'p Rule>,
    facts: &'f F,
}

impl<'p, F: PolicyFacts> InSituation<'p, '_, F> {
    /// What decides on whether a tool is offered.
    pub fn judge(&self, tool: &ToolDefinition) -> Ruling<'p> {
        decide(self.policy, self.holding.iter().copied(), tool, self.facts, None)
    }
}

fn decide<'p>(
    policy: &'p Policy,
    holding: impl Iterator<Item = &'p Rule>,
    tool: &ToolDefinition,
    facts: &impl PolicyFacts,
    arguments: Option<&Value>,
) -> Ruling<'p> {
    for rule in holding {
        if !rule.tools.matches(tool) || !rule.when.fits_tool(tool, facts) {
            continue;
        }
        match rule.on(arguments) {
            Ok(true) => return Ruling::Rule(rule),
            Ok(false) => {}
            Err(problem) => return Ruling::Failed { rule, problem },
        }
    }
    // The default never judges what Toolcrib itself offers.
    let default = if tool.is_framework() { PolicyDefault::Allow } else { policy.default };
    Ruling::Default(default)
}

impl Rule {
    /// Whether the rule ends the walk, all its other conditions holding.
    fn on(&self, arguments: Option<&Value>) -> Result<bool, String> {
        let Some(arguments) = arguments else {
            // It may hold for some call, and the tool must be offered for that call to be made.
            return Ok(!self.reads_arguments() || self.effect != Effect::Deny);
        };
        for condition in &self.when.arguments {
            let holds = condition
                .holds(arguments, self.effect)
                .map_err(|problem| format!("`{}`: {problem}", condition.name()))?;
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl When {
    /// Whether the conditions hold that depend on neither tool nor arguments.
    pub fn holds(&self, facts: &impl PolicyFacts) -> bool {
        let one_of = |names: &[Arc<str>], name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.iter().any(|one| **one == *name))
        };
        (self.skills.is_empty() || self.skills.iter().any(|id| facts.active_skills().contains(id)))
            && (self.roles.is_empty() || self.roles.iter().any(|role| facts.has_role(role)))
            && one_of(&self.tenants, facts.tenant())
            && one_of(&self.principals, facts.principal())
            && one_of(&self.personalities, Some(facts.personality()))
            && self.iteration.is_none_or(|range| range.contains(facts.iteration()))
    }

    /// Whether the condition holds that depends on the tool.
    fn fits_tool(&self, tool: &ToolDefinition, facts: &impl PolicyFacts) -> bool {
        self.listed_by_active_skill.is_none_or(|wanted| wanted == facts.is_listed(tool))
    }
}
