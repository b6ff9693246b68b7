//! Evaluation of a policy for a tool or a call.

use std::sync::Arc;

use serde_json::Value;

use super::{Effect, Policy, PolicyDefault, Rule, RuleConditions};
use crate::{names::name::SkillId, tool::definition::ToolDefinition};

/// The facts that a policy is evaluated with.
pub trait PolicyFacts {
    /// The active skills, the most recently activated last.
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
    /// The iteration of the turn, from 1.
    fn iteration(&self) -> u32;
    /// Whether the conversation has read content of unknown authors.
    fn is_tainted(&self) -> bool;
}

/// The result of evaluating a policy.
#[derive(Debug, Clone)]
pub enum RuleMatch<'p> {
    /// A rule.
    Rule(&'p Rule),
    /// No rule matched.
    Default(PolicyDefault),
    /// A rule's condition on arguments could not be evaluated: the call is denied.
    Failed {
        /// The rule.
        rule: &'p Rule,
        /// The problem, for the operator.
        problem: String,
    },
}

impl<'p> RuleMatch<'p> {
    /// The effect that the rules decide on.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Rule(rule) => rule.effect,
            Self::Default(PolicyDefault::Allow) => Effect::Allow,
            Self::Default(PolicyDefault::Deny) | Self::Failed { .. } => Effect::Deny,
        }
    }

    /// Whether the tool is offered: `ask` and `halt` never hide a tool, they apply to the call.
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

    /// The name in events: the rule's label, or `policy_default`.
    pub fn label(&self) -> Arc<str> {
        self.rule().map_or_else(|| "policy_default".into(), |rule| Arc::clone(&rule.label))
    }

    /// The reason, for the operator.
    pub fn reason(&self) -> Option<Arc<str>> {
        match self {
            Self::Failed { problem, .. } => {
                Some(format!("the rule could not be evaluated: {problem}").into())
            }
            ruling => ruling.rule()?.reason.clone(),
        }
    }
}

impl Policy {
    /// Evaluates the list: the first rule that matches the tool and the situation decides. Without
    /// `arguments`, decides whether the tool is offered; see [`Policy`].
    pub fn judge(
        &self,
        tool: &ToolDefinition,
        facts: &impl PolicyFacts,
        arguments: Option<&Value>,
    ) -> RuleMatch<'_> {
        let holding = self.rules.iter().filter(|rule| rule.when.matches(facts));
        decide(self, holding, tool, facts, arguments)
    }

    /// The rules that match a situation as far as it does not depend on the tool, for evaluating
    /// many tools. Helper of the engine.
    #[doc(hidden)]
    pub fn bind_facts<'p, 'f, F: PolicyFacts>(&'p self, facts: &'f F) -> BoundPolicy<'p, 'f, F> {
        let holding = self.rules.iter().filter(|rule| rule.when.matches(facts)).collect();
        BoundPolicy { policy: self, holding, facts }
    }
}

/// A policy bound to one situation. Made with [`Policy::bind_facts`].
#[derive(Debug)]
pub struct BoundPolicy<'p, 'f, F> {
    policy: &'p Policy,
    holding: Vec<&'p Rule>,
    facts: &'f F,
}

impl<'p, F: PolicyFacts> BoundPolicy<'p, '_, F> {
    /// Decides whether a tool is offered.
    pub fn judge(&self, tool: &ToolDefinition) -> RuleMatch<'p> {
        decide(self.policy, self.holding.iter().copied(), tool, self.facts, None)
    }
}

fn decide<'p>(
    policy: &'p Policy,
    holding: impl Iterator<Item = &'p Rule>,
    tool: &ToolDefinition,
    facts: &impl PolicyFacts,
    arguments: Option<&Value>,
) -> RuleMatch<'p> {
    for rule in holding {
        if !rule.tools.matches(tool) || !rule.when.fits_tool(tool, facts) {
            continue;
        }
        match rule.on(arguments) {
            Ok(true) => return RuleMatch::Rule(rule),
            Ok(false) => {}
            Err(problem) => return RuleMatch::Failed { rule, problem },
        }
    }
    // The default does not apply to Toolcrib's own tools.
    let default = if tool.is_framework() { PolicyDefault::Allow } else { policy.default };
    RuleMatch::Default(default)
}

impl Rule {
    /// Whether the rule decides, given that all its other conditions are true.
    fn on(&self, arguments: Option<&Value>) -> Result<bool, String> {
        let Some(arguments) = arguments else {
            // It may match some call, and the tool must be offered for that call to be made.
            return Ok(!self.reads_arguments() || self.effect != Effect::Deny);
        };
        for condition in &self.when.arguments {
            let holds = condition
                .evaluate(arguments, self.effect)
                .map_err(|problem| format!("`{}`: {problem}", condition.name()))?;
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl RuleConditions {
    /// Whether the conditions that depend on neither tool nor arguments are true.
    pub fn matches(&self, facts: &impl PolicyFacts) -> bool {
        let one_of = |names: &[Arc<str>], name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.iter().any(|one| **one == *name))
        };
        // A condition that is not evaluated here would widen a rule that allows.
        let Self {
            skills,
            listed_by_active_skill: _,
            roles,
            tenants,
            principals,
            personalities,
            iteration,
            tainted,
            arguments: _,
        } = self;
        (skills.is_empty() || skills.iter().any(|id| facts.active_skills().contains(id)))
            && (roles.is_empty() || roles.iter().any(|role| facts.has_role(role)))
            && one_of(tenants, facts.tenant())
            && one_of(principals, facts.principal())
            && one_of(personalities, Some(facts.personality()))
            && iteration.is_none_or(|range| range.contains(facts.iteration()))
            && tainted.is_none_or(|wanted| wanted == facts.is_tainted())
    }

    /// Whether the condition that depends on the tool is true.
    fn fits_tool(&self, tool: &ToolDefinition, facts: &impl PolicyFacts) -> bool {
        self.listed_by_active_skill.is_none_or(|wanted| wanted == facts.is_listed(tool))
    }
}
