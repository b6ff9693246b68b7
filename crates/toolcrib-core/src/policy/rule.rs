//! Rules of a policy: tools, conditions and effect.

use std::sync::Arc;

use serde::Serialize;

use super::{ArgumentMatch, Glob};
use crate::{names::name::SkillId, tool::definition::ToolDefinition};

/// The effect of a matching rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// The tool is offered and may be called.
    Allow,
    /// The tool is neither offered nor callable. A rule on arguments denies only the call.
    Deny,
    /// The tool is offered; each call is decided by the [`Approver`](crate::Approver), otherwise by
    /// the turn's question handler, and denied if there is neither.
    Ask,
    /// The tool is offered; a call is denied and ends the run with an error for its caller.
    Halt,
}

impl Effect {
    /// The effect as written in a project file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Halt => "halt",
        }
    }
}

/// A rule: an effect, and conditions on the tool, the situation and the arguments, all of which
/// must be true. An empty condition is always true.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule's name in events and reasons: `policy rule 2 (toolcrib.toml:40)`.
    pub label: Arc<str>,
    /// The rule's effect.
    pub effect: Effect,
    /// The reason, for the operator. Models never see it.
    pub reason: Option<Arc<str>>,
    /// The text for the model if the rule denies a call of an offered tool, halts at it, or asks
    /// when no approver is available. Default: the bare fact. A model never learns of tools that
    /// the rule hides.
    pub model_message: Option<Arc<str>>,
    /// The tools that it applies to.
    pub tools: ToolMatch,
    /// The situations and arguments that it applies to.
    pub when: RuleConditions,
}

impl Rule {
    /// A rule for every tool in every situation, to be narrowed.
    pub fn new(label: impl Into<Arc<str>>, effect: Effect) -> Self {
        Self {
            label: label.into(),
            effect,
            reason: None,
            model_message: None,
            tools: ToolMatch::default(),
            when: RuleConditions::default(),
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

    /// A rule that asks for approval of each call.
    pub fn ask(label: impl Into<Arc<str>>) -> Self {
        Self::new(label, Effect::Ask)
    }

    /// A rule that ends the run at a call.
    pub fn halt(label: impl Into<Arc<str>>) -> Self {
        Self::new(label, Effect::Halt)
    }

    /// Sets the reason, for the operator.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets the text for the model if a call is denied; see [`model_message`](Self::model_message).
    #[must_use]
    pub fn model_message(mut self, text: impl Into<Arc<str>>) -> Self {
        self.model_message = Some(text.into());
        self
    }

    /// Narrows it to tools whose names match one of these patterns.
    #[must_use]
    pub fn tools<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.tools.names.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Narrows it to tools of the toolsets that match one of these patterns.
    #[must_use]
    pub fn toolsets<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.tools.toolsets.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Narrows it to tools whose [origin](crate::ToolDefinition::origin), such as `mcp:git`, matches
    /// one of these patterns.
    #[must_use]
    pub fn origins<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.tools.origins.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Narrows it to tools of MCP servers whose names match one of these patterns.
    #[must_use]
    pub fn mcp_servers<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.tools.mcp_servers.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Narrows it to tools of plugins whose ids match one of these patterns.
    #[must_use]
    pub fn plugins<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.tools.plugins.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Narrows it by the annotation `read_only`.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.tools.annotations.read_only = Some(read_only);
        self
    }

    /// Narrows it by the annotation `destructive`.
    #[must_use]
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.tools.annotations.destructive = Some(destructive);
        self
    }

    /// Narrows it by the annotation `idempotent`.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.tools.annotations.idempotent = Some(idempotent);
        self
    }

    /// Narrows it to principals with any of these [roles](super::Roles).
    #[must_use]
    pub fn roles<T: Into<Arc<str>>>(mut self, roles: impl IntoIterator<Item = T>) -> Self {
        self.when = self.when.roles(roles);
        self
    }

    /// Narrows it to any of these tenants.
    #[must_use]
    pub fn tenants<T: Into<Arc<str>>>(mut self, tenants: impl IntoIterator<Item = T>) -> Self {
        self.when = self.when.tenants(tenants);
        self
    }

    /// Narrows it to any of these principals.
    #[must_use]
    pub fn principals<T: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.when = self.when.principals(names);
        self
    }

    /// Narrows it by further conditions, such as active skills. They are added to those that the
    /// rule has.
    ///
    /// ```
    /// use toolcrib_core::{Rule, RuleConditions};
    ///
    /// let rule = Rule::deny("late").roles(["clerk"]).when(RuleConditions::default().from_iteration(3));
    /// assert_eq!(rule.when.roles.len(), 1);
    /// ```
    #[must_use]
    pub fn when(mut self, when: RuleConditions) -> Self {
        self.when.add(when);
        self
    }

    /// Narrows it to calls whose arguments match all of these conditions; repeated calls add to
    /// them.
    ///
    /// ```
    /// use toolcrib_core::{ArgumentMatch, Rule};
    ///
    /// # fn main() -> Result<(), toolcrib_core::InvalidArgumentMatchError> {
    /// let rule = Rule::deny("no system files")
    ///     .tools(["read_file", "write_file"])
    ///     .arguments([ArgumentMatch::at("/path")?.starts_with("/etc")])
    ///     .model_message("files below /etc are not for you");
    /// # let _ = rule; Ok(()) }
    /// ```
    #[must_use]
    pub fn arguments(mut self, matches: impl IntoIterator<Item = ArgumentMatch>) -> Self {
        self.when.arguments.extend(matches);
        self
    }

    /// Whether it depends on arguments and can only be decided at a call.
    pub fn reads_arguments(&self) -> bool {
        !self.when.arguments.is_empty()
    }
}

/// The tools that a rule applies to.
#[derive(Debug, Clone, Default)]
pub struct ToolMatch {
    /// Patterns of which the name must match one.
    pub names: Vec<Glob>,
    /// Patterns of which the toolset must match one.
    pub toolsets: Vec<Glob>,
    /// Patterns of which the [origin](crate::ToolDefinition::origin) must match one.
    pub origins: Vec<Glob>,
    /// Patterns of which the MCP server's name must match one.
    pub mcp_servers: Vec<Glob>,
    /// Patterns of which the plugin's id must match one.
    pub plugins: Vec<Glob>,
    /// Required annotations.
    pub annotations: AnnotationMatch,
}

impl ToolMatch {
    /// Whether the rule applies to a tool. A framework tool must be named literally.
    pub fn matches(&self, tool: &ToolDefinition) -> bool {
        let of_all = self.names.is_empty() && !tool.is_framework();
        let one_of = |globs: &[Glob], text: Option<&str>| {
            globs.is_empty() || text.is_some_and(|text| globs.iter().any(|glob| glob.matches(text)))
        };
        (of_all || self.names.iter().any(|glob| glob.matches_tool(tool)))
            && one_of(&self.toolsets, tool.toolset())
            && one_of(&self.origins, Some(tool.origin()))
            && one_of(&self.mcp_servers, tool.mcp_server())
            && one_of(&self.plugins, tool.plugin())
            && self.annotations.matches(tool)
    }
}

/// Required annotations; unset ones match any value.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnnotationMatch {
    /// Whether it is read-only.
    pub read_only: Option<bool>,
    /// Whether it is destructive.
    pub destructive: Option<bool>,
    /// Whether it is idempotent.
    pub idempotent: Option<bool>,
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

/// The situations and arguments that a rule applies to.
///
/// ```
/// use toolcrib_core::RuleConditions;
///
/// let late = RuleConditions::default().tenants(["acme"]).from_iteration(3);
/// # let _ = late;
/// ```
#[derive(Debug, Clone, Default)]
pub struct RuleConditions {
    /// One of these skills is active.
    pub skills: Vec<SkillId>,
    /// Whether some active skill lists the tool.
    pub listed_by_active_skill: Option<bool>,
    /// The turn has one of these roles.
    pub roles: Vec<Arc<str>>,
    /// The tenant is one of these.
    pub tenants: Vec<Arc<str>>,
    /// The principal is one of these.
    pub principals: Vec<Arc<str>>,
    /// The turn's personality is one of these.
    pub personalities: Vec<Arc<str>>,
    /// The iteration of the turn is in this range.
    pub iteration: Option<IterationRange>,
    /// Whether the conversation has read content of unknown authors.
    pub tainted: Option<bool>,
    /// The arguments match all of these.
    pub arguments: Vec<ArgumentMatch>,
}

impl RuleConditions {
    /// Matches while one of these skills is active.
    #[must_use]
    pub fn skills<T: Into<SkillId>>(mut self, skills: impl IntoIterator<Item = T>) -> Self {
        self.skills.extend(skills.into_iter().map(Into::into));
        self
    }

    /// Matches if some active skill lists the tool, or if none does.
    #[must_use]
    pub fn listed_by_active_skill(mut self, listed: bool) -> Self {
        self.listed_by_active_skill = Some(listed);
        self
    }

    /// Matches principals with any of these roles.
    #[must_use]
    pub fn roles<T: Into<Arc<str>>>(mut self, roles: impl IntoIterator<Item = T>) -> Self {
        self.roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Matches any of these tenants.
    #[must_use]
    pub fn tenants<T: Into<Arc<str>>>(mut self, tenants: impl IntoIterator<Item = T>) -> Self {
        self.tenants.extend(tenants.into_iter().map(Into::into));
        self
    }

    /// Matches any of these principals.
    #[must_use]
    pub fn principals<T: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.principals.extend(names.into_iter().map(Into::into));
        self
    }

    /// Matches any of these personalities.
    #[must_use]
    pub fn personalities<T: Into<Arc<str>>>(mut self, ids: impl IntoIterator<Item = T>) -> Self {
        self.personalities.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Matches while the conversation has read content of unknown authors, or while it has not.
    #[must_use]
    pub fn tainted(mut self, tainted: bool) -> Self {
        self.tainted = Some(tainted);
        self
    }

    /// Matches from this iteration of the turn on, counted from 1.
    #[must_use]
    pub fn from_iteration(mut self, first: u32) -> Self {
        self.iteration.get_or_insert_default().at_least = Some(first);
        self
    }

    /// Matches up to and including this iteration of the turn.
    #[must_use]
    pub fn to_iteration(mut self, last: u32) -> Self {
        self.iteration.get_or_insert_default().at_most = Some(last);
        self
    }

    /// Adds other conditions; one that can have only one value gets the other's, if set.
    fn add(&mut self, other: Self) {
        self.skills.extend(other.skills);
        self.listed_by_active_skill = other.listed_by_active_skill.or(self.listed_by_active_skill);
        self.roles.extend(other.roles);
        self.tenants.extend(other.tenants);
        self.principals.extend(other.principals);
        self.personalities.extend(other.personalities);
        self.iteration = other.iteration.or(self.iteration);
        self.tainted = other.tainted.or(self.tainted);
        self.arguments.extend(other.arguments);
    }

    /// Whether a condition depends on a fact.
    pub fn reads(&self, fact: Fact) -> bool {
        match fact {
            Fact::Skills => !self.skills.is_empty(),
            Fact::ListedByActiveSkill => self.listed_by_active_skill.is_some(),
            Fact::Roles => !self.roles.is_empty(),
            Fact::Tenant => !self.tenants.is_empty(),
            Fact::Principal => !self.principals.is_empty(),
            Fact::Personality => !self.personalities.is_empty(),
            Fact::Iteration => self.iteration.is_some(),
            Fact::Tainted => self.tainted.is_some(),
            Fact::Arguments => !self.arguments.is_empty(),
        }
    }
}

/// A range of a turn's iterations, counted from 1; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IterationRange {
    /// The first iteration.
    pub at_least: Option<u32>,
    /// The last iteration.
    pub at_most: Option<u32>,
}

impl IterationRange {
    /// Whether an iteration is in the range.
    pub fn contains(self, iteration: u32) -> bool {
        self.at_least.is_none_or(|first| iteration >= first)
            && self.at_most.is_none_or(|last| iteration <= last)
    }
}

/// A fact that a rule may depend on, besides the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fact {
    /// The active skills.
    Skills,
    /// Whether an active skill lists the tool.
    ListedByActiveSkill,
    /// The turn's roles.
    Roles,
    /// The tenant.
    Tenant,
    /// The principal.
    Principal,
    /// The personality.
    Personality,
    /// The iteration of the turn.
    Iteration,
    /// Whether the conversation has read content of unknown authors.
    Tainted,
    /// The arguments of a call.
    Arguments,
}

impl Fact {
    pub(super) const ALL: [Self; 9] = [
        Self::Skills,
        Self::ListedByActiveSkill,
        Self::Roles,
        Self::Tenant,
        Self::Principal,
        Self::Personality,
        Self::Iteration,
        Self::Tainted,
        Self::Arguments,
    ];
}
