//! One rule: what it speaks of, when it holds, what it does.

use std::sync::Arc;

use serde::Serialize;

use super::{ArgumentMatch, Glob};
use crate::{definition::ToolDefinition, name::SkillId};

/// What a matching rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// The tool is offered and may be called.
    Allow,
    /// It is neither offered nor callable. A rule on arguments denies the call alone.
    Deny,
    /// It is offered; each call goes to the [`Approver`](crate::Approver), else to whoever answers the
    /// turn's questions, and is denied where there is nobody.
    Ask,
    /// It is offered; a call is denied and ends the run, with an error for whoever started it.
    Halt,
}

impl Effect {
    /// The word as it stands in a project file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Halt => "halt",
        }
    }
}

/// One rule: conditions on the tool, on the situation and on the arguments, all of which must hold,
/// and an effect. An empty condition holds for everything.
#[derive(Debug, Clone)]
pub struct Rule {
    /// How the rule is called in events and reasons: `policy rule 2 (toolcrib.toml:40)`.
    pub label: Arc<str>,
    /// What the rule does.
    pub effect: Effect,
    /// Why, for the operator. A model never reads it.
    pub reason: Option<Arc<str>>,
    /// What the model reads of an offered call that the rule denies, halts at, or has asked about
    /// where nobody can be asked. Default: that it is so, and nothing more. Of a tool that the rule
    /// hides it reads nothing: to it, there is no such tool.
    pub tell_model: Option<Arc<str>>,
    /// Which tools it speaks of.
    pub tools: ToolMatch,
    /// In which situations, and on which arguments, it holds.
    pub when: When,
}

impl Rule {
    /// A rule that holds for every tool in every situation, to be narrowed.
    pub fn new(label: impl Into<Arc<str>>, effect: Effect) -> Self {
        Self {
            label: label.into(),
            effect,
            reason: None,
            tell_model: None,
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

    /// A rule that ends the run at a call.
    pub fn halt(label: impl Into<Arc<str>>) -> Self {
        Self::new(label, Effect::Halt)
    }

    /// Says why, for the operator.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Says what the model reads of a call that is not made; see [`tell_model`](Self::tell_model).
    #[must_use]
    pub fn tell_model(mut self, text: impl Into<Arc<str>>) -> Self {
        self.tell_model = Some(text.into());
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

    /// Narrows it to tools that plugins brought whose ids match one of these patterns.
    #[must_use]
    pub fn plugins<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.tools.plugins.extend(patterns.into_iter().map(Glob::new));
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

    /// Narrows it to tools that do, or do not, say that doing it twice is the same as once.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.tools.annotations.idempotent = Some(idempotent);
        self
    }

    /// Narrows it to situations.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Narrows it to calls that pass such arguments, all of them; given again, it adds to them.
    ///
    /// ```
    /// use toolcrib_core::{ArgumentMatch, Rule};
    ///
    /// # fn main() -> Result<(), toolcrib_core::InvalidArgumentMatch> {
    /// let rule = Rule::deny("no system files")
    ///     .tools(["read_file", "write_file"])
    ///     .arguments([ArgumentMatch::at("/path")?.starts_with("/etc")])
    ///     .tell_model("files below /etc are not for you");
    /// # let _ = rule; Ok(()) }
    /// ```
    #[must_use]
    pub fn arguments(mut self, matches: impl IntoIterator<Item = ArgumentMatch>) -> Self {
        self.when.arguments.extend(matches);
        self
    }

    /// Whether it can only be decided at a call.
    pub fn reads_arguments(&self) -> bool {
        !self.when.arguments.is_empty()
    }
}

/// Which tools a rule speaks of.
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
    /// What the annotations must say, where given.
    pub annotations: AnnotationMatch,
}

impl ToolMatch {
    /// Whether the rule speaks of a tool. A framework tool must be named literally.
    pub fn matches(&self, tool: &ToolDefinition) -> bool {
        let of_all = self.names.is_empty() && !tool.is_framework();
        let one_of = |globs: &[Glob], text: Option<&str>| {
            globs.is_empty() || text.is_some_and(|text| globs.iter().any(|glob| glob.matches(text)))
        };
        (of_all || self.names.iter().any(|glob| glob.speaks_of(tool)))
            && one_of(&self.toolsets, tool.toolset())
            && one_of(&self.origins, Some(tool.origin()))
            && one_of(&self.mcp_servers, tool.mcp_server())
            && one_of(&self.plugins, tool.plugin())
            && self.annotations.matches(tool)
    }
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

/// In which situations, and on which arguments, a rule holds.
///
/// ```
/// use toolcrib_core::When;
///
/// let late = When::default().tenants(["acme"]).from_iteration(3);
/// # let _ = late;
/// ```
#[derive(Debug, Clone, Default)]
pub struct When {
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
    /// What is passed fits all of these.
    pub arguments: Vec<ArgumentMatch>,
}

impl When {
    /// While one of these skills is active.
    #[must_use]
    pub fn skills(mut self, skills: impl IntoIterator<Item = SkillId>) -> Self {
        self.skills.extend(skills);
        self
    }

    /// While some active skill lists the tool, or none does.
    #[must_use]
    pub fn listed_by_active_skill(mut self, listed: bool) -> Self {
        self.listed_by_active_skill = Some(listed);
        self
    }

    /// For who has one of these roles.
    #[must_use]
    pub fn roles<T: Into<Arc<str>>>(mut self, roles: impl IntoIterator<Item = T>) -> Self {
        self.roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Within one of these tenants.
    #[must_use]
    pub fn tenants<T: Into<Arc<str>>>(mut self, tenants: impl IntoIterator<Item = T>) -> Self {
        self.tenants.extend(tenants.into_iter().map(Into::into));
        self
    }

    /// For one of these principals.
    #[must_use]
    pub fn principals<T: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.principals.extend(names.into_iter().map(Into::into));
        self
    }

    /// Under one of these personalities.
    #[must_use]
    pub fn personalities<T: Into<Arc<str>>>(mut self, ids: impl IntoIterator<Item = T>) -> Self {
        self.personalities.extend(ids.into_iter().map(Into::into));
        self
    }

    /// From this iteration of the turn on, counted from 1.
    #[must_use]
    pub fn from_iteration(mut self, first: u32) -> Self {
        self.iteration.get_or_insert_default().at_least = Some(first);
        self
    }

    /// Up to this iteration of the turn, itself included.
    #[must_use]
    pub fn to_iteration(mut self, last: u32) -> Self {
        self.iteration.get_or_insert_default().at_most = Some(last);
        self
    }

    /// Whether a fact is looked at.
    pub fn reads(&self, fact: Fact) -> bool {
        match fact {
            Fact::Skills => !self.skills.is_empty(),
            Fact::ListedByActiveSkill => self.listed_by_active_skill.is_some(),
            Fact::Roles => !self.roles.is_empty(),
            Fact::Tenant => !self.tenants.is_empty(),
            Fact::Principal => !self.principals.is_empty(),
            Fact::Personality => !self.personalities.is_empty(),
            Fact::Iteration => self.iteration.is_some(),
            Fact::Arguments => !self.arguments.is_empty(),
        }
    }
}

/// A range of a turn's iterations, which are counted from 1; both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IterationRange {
    /// The first of them.
    pub at_least: Option<u32>,
    /// The last of them.
    pub at_most: Option<u32>,
}

impl IterationRange {
    /// Whether an iteration is among them.
    pub fn contains(self, iteration: u32) -> bool {
        self.at_least.is_none_or(|first| iteration >= first)
            && self.at_most.is_none_or(|last| iteration <= last)
    }
}

/// What a rule may look at, beside the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fact {
    /// Which skills are active.
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
    /// Which iteration of the turn it is.
    Iteration,
    /// What a call passes.
    Arguments,
}
