//! Policy as data: one ordered list of rules, first match wins.

mod arguments;
mod gate;
mod glob;
mod judge;
mod roles;
mod rule;
#[cfg(test)]
mod tests;

pub use self::{
    arguments::{ArgumentMatch, InvalidArgumentMatch, MAX_PATTERN, MAX_SEARCHED},
    gate::{NotAGate, PolicyGate},
    glob::Glob,
    judge::{InSituation, PolicyFacts, Ruling},
    roles::{RoleHolders, Roles, UnreadableClaim},
    rule::{AnnotationMatch, Effect, Fact, IterationRange, Rule, ToolMatch, When},
};

/// The one declarative way to hide, deny, ask about or halt at a call. Read twice: when the menu is
/// composed, before any arguments are known, and again when a call is made.
///
/// The first rule decides that speaks of the tool and whose conditions hold. Conditions on arguments
/// hold or not only at a call. While the menu is composed, such a rule cannot decide: one that
/// allows, asks or halts ends the walk with the tool offered; one that denies is passed over. At the
/// call the whole list is read anew. A rule whose condition fails (a [predicate](ArgumentMatch::by)
/// panics, a text is too long to be searched) denies the call.
///
/// Neighbour: a [gate](crate::gated_tools) is its form in code, and [`as_gate`](Self::as_gate) makes
/// one of a policy.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// What holds when none matches. Framework tools are never judged by it.
    pub default: PolicyDefault,
    /// Who has which role. Nobody has one by default.
    pub roles: Roles,
}

impl Policy {
    /// These rules, in this order; what none of them matches is allowed.
    ///
    /// ```
    /// use toolcrib_core::{Policy, Rule};
    ///
    /// let policy = Policy::of([
    ///     Rule::deny("guests look").tools(["write_*", "delete_*"]).because("they may not touch"),
    ///     Rule::ask("consent").destructive(true),
    /// ]);
    /// # let _ = policy;
    /// ```
    pub fn of(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }

    /// Whether some rule looks at a fact. What none looks at may change without changing what is
    /// offered.
    pub fn reads(&self, fact: Fact) -> bool {
        self.rules.iter().any(|rule| rule.when.reads(fact))
    }

    /// Whether two iterations are the same to every rule.
    pub fn same_iteration(&self, one: u32, other: u32) -> bool {
        let ranges = self.rules.iter().filter_map(|rule| rule.when.iteration);
        one == other || ranges.into_iter().all(|range| range.contains(one) == range.contains(other))
    }
}

/// What holds when no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicyDefault {
    /// The tool is offered and may be called.
    #[default]
    Allow,
    /// It is not.
    Deny,
}
