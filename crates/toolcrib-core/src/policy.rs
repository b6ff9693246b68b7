//! Policy as data: one ordered list of rules, first match wins.

use std::{collections::HashMap, fmt, sync::Arc};

use wildmatch::WildMatch;

use crate::{definition::ToolDefinition, identity::Identity, name::SkillId};

/// The one declarative way to hide, deny or ask. Judged twice: when the menu is composed and
/// again when a call is made. Neighbour: a [gate](crate::gated_tools) is its form in code.
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

/// What a matching rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The tool is offered and may be called.
    Allow,
    /// It is neither offered nor callable.
    Deny,
    /// It is offered; each call goes to the [`Approver`](crate::Approver), and is denied where
    /// there is none.
    Ask,
}

/// One rule: conditions on the tool and on the situation, all of which must hold, and an effect.
/// An empty condition holds for everything.
#[derive(Debug, Clone)]
pub struct Rule {
    /// How the rule is called in events and reasons: `policy rule 2 (toolcrib.toml:40)`.
    pub label: Arc<str>,
    /// What the rule does.
    pub effect: Effect,
    /// Why, for the operator.
    pub reason: Option<Arc<str>>,
    /// Which tools it speaks of.
    pub tools: ToolMatch,
    /// In which situations it holds.
    pub when: When,
}

impl Rule {
    /// A rule that holds for every tool in every situation, to be narrowed.
    pub fn new(label: impl Into<Arc<str>>, effect: Effect) -> Self {
        Self {
            label: label.into(),
            effect,
            reason: None,
            tools: ToolMatch::default(),
            when: When::default(),
        }
    }

    /// A rule that allows.
    pub fn allow(label: impl Into<Arc<str>>) -> Self {
        Self::new(label, Effect::Allow)
    }

    /// A rule that denies.
    pub fn deny(label: impl Into<Arc<str>>) -> Self {
        Self::new(label, Effect::Deny)
    }

    /// A rule that has each call asked about.
    pub fn ask(label: impl Into<Arc<str>>) -> Self {
        Self::new(label, Effect::Ask)
    }

    /// Says why, for the operator.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Narrows it to tools whose names match one of these patterns.
    #[must_use]
    pub fn tools<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.tools.names.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Narrows it to tools that do, or do not, say that they only read.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.tools.annotations.read_only = Some(read_only);
        self
    }

    /// Narrows it to tools that do, or do not, say that they may destroy something.
    #[must_use]
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.tools.annotations.destructive = Some(destructive);
        self
    }

    /// Narrows it to situations.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }
}

/// Which tools a rule speaks of.
#[derive(Debug, Clone, Default)]
pub struct ToolMatch {
    /// Patterns of which the name must match one.
    pub names: Vec<Glob>,
    /// Patterns of which the toolset must match one.
    pub toolsets: Vec<Glob>,
    /// What the annotations must say, where given.
    pub annotations: AnnotationMatch,
}

/// What a tool's annotations must say, where given.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnnotationMatch {
    /// Whether it is read-only.
    pub read_only: Option<bool>,
    /// Whether it is destructive.
    pub destructive: Option<bool>,
    /// Whether it is idempotent.
    pub idempotent: Option<bool>,
}

/// In which situations a rule holds.
#[derive(Debug, Clone, Default)]
pub struct When {
    /// One of these skills is active.
    pub skills: Vec<SkillId>,
    /// Whether some active skill lists the tool.
    pub listed_by_active_skill: Option<bool>,
    /// The principal has one of these roles.
    pub roles: Vec<Arc<str>>,
    /// The tenant is one of these.
    pub tenants: Vec<Arc<str>>,
}

impl ToolMatch {
    /// Whether the rule speaks of a tool. A framework tool must be named literally.
    pub fn matches(&self, tool: &ToolDefinition) -> bool {
        let named =
            |glob: &Glob| glob.matches(tool.name()) && (glob.is_literal() || !tool.is_framework());
        let of_all = self.names.is_empty() && !tool.is_framework();
        (of_all || self.names.iter().any(named))
            && (self.toolsets.is_empty()
                || tool.toolset().is_some_and(|set| self.toolsets.iter().any(|g| g.matches(set))))
            && self.annotations.matches(tool)
    }
}

impl AnnotationMatch {
    fn matches(self, tool: &ToolDefinition) -> bool {
        let says = tool.annotations();
        [
            (self.read_only, says.read_only),
            (self.destructive, says.destructive),
            (self.idempotent, says.idempotent),
        ]
        .into_iter()
        .all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == is))
    }
}

/// A pattern for names and labels: `*` is any run of characters, `?` is one.
#[derive(Clone)]
pub struct Glob {
    text: Arc<str>,
    pattern: WildMatch,
}

impl Glob {
    /// A pattern; every text is one.
    pub fn new(pattern: impl Into<Arc<str>>) -> Self {
        let text = pattern.into();
        Self { pattern: WildMatch::new(&text), text }
    }

    /// Whether a text matches, letter case included.
    pub fn matches(&self, text: &str) -> bool {
        self.pattern.matches(text)
    }

    /// Whether it matches one text only.
    pub fn is_literal(&self) -> bool {
        !self.text.contains(['*', '?'])
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Who has which role.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    by_principal: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl Roles {
    /// Gives a principal a role.
    pub fn grant(&mut self, principal: impl Into<Arc<str>>, role: impl Into<Arc<str>>) {
        let (principal, role) = (principal.into(), role.into());
        let roles = self.by_principal.entry(principal).or_default();
        if !roles.contains(&role) {
            roles.push(role);
        }
    }

    /// The principals that have a role, sorted.
    pub fn holders(&self, role: &str) -> impl Iterator<Item = &str> {
        let mut holders: Vec<_> = self
            .by_principal
            .iter()
            .filter(|(_, roles)| roles.iter().any(|held| **held == *role))
            .map(|(principal, _)| &**principal)
            .collect();
        holders.sort_unstable();
        holders.into_iter()
    }

    /// The roles of whoever the identity names; empty when it names nobody.
    pub fn of(&self, identity: &Identity) -> &[Arc<str>] {
        identity
            .principal
            .as_ref()
            .and_then(|principal| self.by_principal.get(principal))
            .map_or(&[], Vec::as_slice)
    }
}
