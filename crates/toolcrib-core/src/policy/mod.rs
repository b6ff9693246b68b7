//! Policy as data: one ordered list of rules, first match wins.

pub(crate) mod approval;
mod arguments;
mod gate;
pub(crate) mod judge;
mod roles;
mod rule;
mod stage;
#[cfg(test)]
mod tests;

pub use self::{
    approval::{
        Approval, ApprovalGrant, ApprovalMark, ApprovalRequest, ApprovalState, ApprovalStore,
        ApprovalStoreError, Approver, ArgumentPart, MarkStore, NotStorableError, ParkedCall,
        SecretReference, Settlement, StoredApproval, StoredArguments, call_approver,
    },
    arguments::{ArgumentMatch, InvalidArgumentMatchError},
    gate::NotAGateError,
    judge::{PolicyFacts, RuleMatch},
    roles::{InvalidClaimError, RoleHolders, Roles},
    rule::{AnnotationMatch, Effect, Fact, IterationRange, Rule, RuleConditions, ToolMatch},
    stage::PolicyStage,
};
pub use crate::tool::{Clarification, ClarificationOutcome, glob::Glob, pending_call::PendingCall};

/// Declarative rules to hide tools and to deny, ask about or halt at calls. Evaluated twice: when
/// the menu is composed, before any arguments are known, and again when a call is made.
///
/// The first rule that matches the tool and whose conditions are true decides. Conditions on
/// arguments are evaluated only at a call. While the menu is composed, a rule with such conditions
/// that denies is skipped; one that allows, asks or halts counts as matching, so the tool is
/// offered. At the call the whole list is evaluated again. A rule whose condition fails (a
/// [predicate](ArgumentMatch::by) panics, a text is too long to be searched) denies the call.
///
/// Neighbor: a [gate](crate::gated_tools) is the equivalent in code, and [`as_gate`](Self::as_gate)
/// makes a gate of a policy.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// The decision if no rule matches. It does not apply to framework tools.
    pub default: PolicyDefault,
    /// The holders of each role. Empty by default.
    pub roles: Roles,
}

impl Policy {
    /// A policy of these rules, in this order; calls that match none are allowed.
    ///
    /// ```
    /// use toolcrib_core::{Policy, Rule};
    ///
    /// let policy = Policy::of([
    ///     Rule::deny("guests look").tools(["write_*", "delete_*"]).reason("they may not touch"),
    ///     Rule::ask("consent").destructive(true),
    /// ]);
    /// # let _ = policy;
    /// ```
    pub fn of(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }

    /// Whether some rule depends on a fact. Facts that no rule depends on may change without
    /// changing the menu.
    pub fn reads(&self, fact: Fact) -> bool {
        self.rules.iter().any(|rule| rule.when.reads(fact))
    }

    /// Whether two iterations are equivalent for all rules.
    pub fn same_iteration(&self, one: u32, other: u32) -> bool {
        let ranges = self.rules.iter().filter_map(|rule| rule.when.iteration);
        one == other || ranges.into_iter().all(|range| range.contains(one) == range.contains(other))
    }
}

/// The decision if no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicyDefault {
    /// The tool is offered and may be called.
    #[default]
    Allow,
    /// The tool is neither offered nor callable.
    Deny,
}
