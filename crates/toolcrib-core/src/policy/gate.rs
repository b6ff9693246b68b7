//! A policy as a gate around a provider.

use std::sync::Arc;

use super::{Fact, Policy, PolicyFacts};
use crate::{
    names::name::SkillId,
    provider::{GateDecision, catalog::Reason, context_list::ListContext},
    tool::{Tool, definition::ToolDefinition},
};

/// A policy that cannot be a gate, because a rule needs a fact that providers do not receive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{rule} cannot be part of a gate: providers do not receive {what}; give it to the engine's \
     policy"
)]
pub struct NotAGateError {
    /// The rule's label.
    pub rule: Arc<str>,
    /// The fact that it needs.
    pub what: &'static str,
}

impl Policy {
    /// This policy as a gate: it decides by the tool and by the
    /// [`ListContext`], as when a menu is composed. For rules on arguments this
    /// means: one that allows, asks or halts lets the tool pass, one that denies is skipped. A gate
    /// only hides tools: to ask about calls or deny them by their arguments, give the policy to the
    /// engine.
    ///
    /// Put it outside a cache: inside one, the context contains only the fields of the key.
    ///
    /// ```
    /// use toolcrib_core::{Policy, Rule, gated_tools, static_tools};
    ///
    /// # fn main() -> Result<(), toolcrib_core::NotAGateError> {
    /// let policy = Policy::of([Rule::deny("no writes").read_only(false)]);
    /// let provider = gated_tools("policy", static_tools([]), policy.as_gate()?);
    /// # let _ = provider; Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`NotAGateError`] if a rule depends on the personality, on the tools listed by active
    /// skills, on whether the conversation is tainted, or on a role granted by claims: providers receive none of these, and a rule that
    /// denies must not be lost.
    pub fn as_gate(
        &self,
    ) -> Result<
        impl Fn(&Tool, &ListContext) -> GateDecision + Clone + Send + Sync + 'static + use<>,
        NotAGateError,
    > {
        for rule in &self.rules {
            let by_claims = |role: &Arc<str>| {
                self.roles.holders(role).is_some_and(|holders| !holders.claims.is_empty())
            };
            // Every fact is named here, so that a new one cannot be lost.
            let missing = |fact: &Fact| match fact {
                Fact::Personality => Some("the personality"),
                Fact::Tainted => Some("whether the conversation is tainted"),
                Fact::ListedByActiveSkill => Some("the tools that skills list"),
                Fact::Roles if rule.when.roles.iter().any(by_claims) => {
                    Some("the claims that give a role")
                }
                Fact::Skills | Fact::Roles | Fact::Tenant | Fact::Principal => None,
                Fact::Iteration | Fact::Arguments => None,
            };
            let mut read = Fact::ALL.iter().filter(|fact| rule.when.reads(**fact));
            if let Some(what) = read.find_map(missing) {
                return Err(NotAGateError { rule: Arc::clone(&rule.label), what });
            }
        }
        let policy = Arc::new(self.clone());
        Ok(move |tool: &Tool, cx: &ListContext| policy.judge_in_gate(tool, cx))
    }

    fn judge_in_gate(&self, tool: &Tool, cx: &ListContext) -> GateDecision {
        let ruling = self.judge(tool, &ProviderFacts { policy: self, cx }, None);
        if ruling.offers() {
            return GateDecision::Offer;
        }
        let label = ruling.label();
        GateDecision::Withhold(match ruling.reason() {
            Some(reason) => Reason::from(format!("{label} denies it: {reason}")),
            None => Reason::from(format!("{label} denies it")),
        })
    }
}

/// The facts that a provider receives.
struct ProviderFacts<'a> {
    policy: &'a Policy,
    cx: &'a ListContext,
}

impl PolicyFacts for ProviderFacts<'_> {
    fn active_skills(&self) -> &[SkillId] {
        self.cx.active_skills()
    }

    fn is_listed(&self, _: &ToolDefinition) -> bool {
        false
    }

    fn has_role(&self, role: &str) -> bool {
        let identity = self.cx.identity();
        self.policy.roles.holders(role).is_some_and(|holders| {
            holders.has_principal(identity.principal.as_deref())
                || holders.has_tenant(identity.tenant.as_deref())
        })
    }

    fn tenant(&self) -> Option<&str> {
        self.cx.identity().tenant.as_deref()
    }

    fn principal(&self) -> Option<&str> {
        self.cx.identity().principal.as_deref()
    }

    fn personality(&self) -> &'static str {
        ""
    }

    fn iteration(&self) -> u32 {
        self.cx.iteration()
    }

    /// No gate has a rule that depends on it.
    fn is_tainted(&self) -> bool {
        true
    }
}
