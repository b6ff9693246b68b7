//! A policy as a gate around a provider.

use std::sync::Arc;

use super::{Fact, Policy, PolicyFacts};
use crate::{
    catalog::Reason,
    context_list::ListContext,
    definition::ToolDefinition,
    name::SkillId,
    provider::{Gate, Verdict},
    tool::Tool,
};

/// A [`Policy`] as a gate: made with [`Policy::as_gate`], given to
/// [`gated_tools`](crate::gated_tools).
#[derive(Debug, Clone)]
pub struct PolicyGate(Arc<Policy>);

/// A policy that cannot be a gate, because a rule looks at what no provider is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{rule} cannot be part of a gate: a provider is not told {what}; leave it to the engine's policy"
)]
pub struct NotAGate {
    /// The rule's label.
    pub rule: Arc<str>,
    /// What it looks at.
    pub what: &'static str,
}

impl Policy {
    /// This policy as a gate: it decides by the tool and by what the
    /// [`ListContext`](crate::ListContext) says, as when a menu is composed. Rules on arguments
    /// count as they do there: one that allows, asks or halts lets the tool pass, one that denies is
    /// passed over. A gate hides and nothing more: for calls to be asked about or denied by their
    /// arguments, give the policy to the engine.
    ///
    /// Put it outside of a cache: within one, the context names only what the key declares.
    ///
    /// ```
    /// use toolcrib_core::{Policy, Rule, gated_tools, static_tools};
    ///
    /// # fn main() -> Result<(), toolcrib_core::NotAGate> {
    /// let policy = Policy::of([Rule::deny("no writes").read_only(false)]);
    /// let provider = gated_tools("policy", static_tools([]), policy.as_gate()?);
    /// # let _ = provider; Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`NotAGate`] when a rule looks at the personality, at what active skills list, or at a role
    /// that claims give: a provider is told none of these, and a rule that denies must not be lost.
    pub fn as_gate(&self) -> Result<PolicyGate, NotAGate> {
        for rule in &self.rules {
            let by_claims = |role: &Arc<str>| {
                self.roles.holders(role).is_some_and(|holders| !holders.claims.is_empty())
            };
            let what = if rule.when.reads(Fact::Personality) {
                "the personality"
            } else if rule.when.reads(Fact::ListedByActiveSkill) {
                "which tools a skill lists"
            } else if rule.when.roles.iter().any(by_claims) {
                "the claims that give a role"
            } else {
                continue;
            };
            return Err(NotAGate { rule: Arc::clone(&rule.label), what });
        }
        Ok(PolicyGate(Arc::new(self.clone())))
    }
}

impl Gate for PolicyGate {
    fn judge(&self, tool: &Tool, cx: &ListContext) -> Result<Verdict, String> {
        let ruling = self.0.judge(tool, &Told { policy: &self.0, cx }, None);
        if ruling.offers() {
            return Ok(Verdict::Offer);
        }
        let label = ruling.label();
        Ok(Verdict::Withhold(match ruling.reason() {
            Some(reason) => Reason::from(format!("{label} denies it: {reason}")),
            None => Reason::from(format!("{label} denies it")),
        }))
    }
}

/// What a provider is told of the situation.
struct Told<'a> {
    policy: &'a Policy,
    cx: &'a ListContext,
}

impl PolicyFacts for Told<'_> {
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
}
