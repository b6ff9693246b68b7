//! Personalities: named limits of the tools that a run may reach.

pub(crate) mod child;

use std::{fmt, sync::Arc};

use toolcrib_core::{Glob, NetworkRules, Tool, ToolDefinition};

pub use self::child::{ChildAgents, ParentTurn};

/// The id of the personality of a run that names none.
pub const DEFAULT_PERSONALITY: &str = "default";

/// The maximum that a run may reach, under a name. Every run has exactly one, fixed when it begins.
///
/// An absent list admits everything of its kind, an empty one nothing. The lists apply in this
/// order: [`exclude`](Self::exclude); tools of MCP servers by [`mcp_servers`](Self::mcp_servers),
/// those of plugins by [`plugins`](Self::plugins), all others by [`toolset`](Self::toolset); tools
/// over folders also by [`files`](Self::files). Policy comes after it, so that it can only narrow
/// further. Neighbor: a [`Policy`](toolcrib_core::Policy) says which principals may do what; a
/// personality is the acting role.
///
/// ```
/// use toolcrib_engine::Personality;
///
/// let support = Personality::new("support")
///     .system("You help customers.")
///     .toolset(["orders", "find_customer"])
///     .mcp_servers::<&str>([])
///     .exclude(["refund*"]);
/// assert_eq!(&*support.id, "support");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Personality {
    /// The name. Default: [`DEFAULT_PERSONALITY`].
    pub id: Arc<str>,
    /// The system text that replaces the agent's.
    pub system: Option<Arc<str>>,
    /// The model that replaces the agent's, in the notation of the model resolver.
    pub model: Option<Arc<str>>,
    /// Tools that are never reached, not even [always included](ToolDefinition::always_include)
    /// ones. Toolcrib's own tools are excluded only by their full names.
    pub exclude: Vec<Glob>,
    /// The toolsets and single tools that are reached, of those that come from no MCP server and no
    /// plugin. Tools that are always included are reached in any case.
    pub toolset: Option<Vec<Arc<str>>>,
    /// The MCP servers whose tools are reached.
    pub mcp_servers: Option<Vec<Arc<str>>>,
    /// The plugins whose tools and skills are reached. A plugin's MCP server must be among
    /// [`mcp_servers`](Self::mcp_servers) too.
    pub plugins: Option<Vec<Arc<str>>>,
    /// The hosts that calls reach over HTTP, of those that their tools declare. It does not limit
    /// connections that an MCP server or a program makes by itself.
    pub network: Arc<NetworkRules>,
    /// The folders of the files capability that are reached, by name. Tools that declare another
    /// one are not offered, and every handle refuses it. It does not limit the file access that an
    /// MCP server or a program has by itself.
    pub files: Option<Arc<[Arc<str>]>>,
    /// The team that it is a member of. A turn reads its id from
    /// [`ToolContext::team`](toolcrib_core::ToolContext::team), and tools that
    /// [require a team](toolcrib_core::Capabilities::team) are offered. Default: none.
    pub team: Option<Arc<str>>,
    /// The turn whose limits apply too, in the turn of a child agent.
    pub(crate) parent: Option<Arc<ParentTurn>>,
}

impl Default for Personality {
    fn default() -> Self {
        Self {
            id: DEFAULT_PERSONALITY.into(),
            system: None,
            model: None,
            exclude: Vec::new(),
            toolset: None,
            mcp_servers: None,
            plugins: None,
            network: Arc::default(),
            files: None,
            team: None,
            parent: None,
        }
    }
}

impl Personality {
    /// A personality that reaches everything, to be narrowed.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Sets the system text that replaces the agent's.
    #[must_use]
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Sets the model that replaces the agent's.
    #[must_use]
    pub fn model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Adds tools that are never reached, by patterns of their names.
    #[must_use]
    pub fn exclude<G: Into<Arc<str>>>(mut self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.exclude.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Narrows it to these toolsets and tools, of those that come from no MCP server and no plugin.
    #[must_use]
    pub fn toolset<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.toolset = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Narrows it to tools of these MCP servers, of those that come from one.
    #[must_use]
    pub fn mcp_servers<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.mcp_servers = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Narrows it to tools and skills of these plugins, of those that come from one.
    #[must_use]
    pub fn plugins<N: Into<Arc<str>>>(mut self, ids: impl IntoIterator<Item = N>) -> Self {
        self.plugins = Some(ids.into_iter().map(Into::into).collect());
        self
    }

    /// Bounds the hosts that calls reach over HTTP.
    #[must_use]
    pub fn network(mut self, rules: NetworkRules) -> Self {
        self.network = Arc::new(rules);
        self
    }

    /// Narrows it to these folders of the files capability.
    #[must_use]
    pub fn files<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.files = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Makes it a member of a team.
    #[must_use]
    pub fn team(mut self, id: impl Into<Arc<str>>) -> Self {
        self.team = Some(id.into());
        self
    }

    /// Whether the personality reaches a tool.
    pub fn reaches(&self, tool: &ToolDefinition) -> bool {
        self.why_not(tool).is_none()
    }

    /// Whether `plugins` admits a plugin.
    pub(crate) fn reaches_plugin(&self, plugin: &str) -> bool {
        let by_parent = |parent: &Arc<ParentTurn>| parent.personality.reaches_plugin(plugin);
        lists(self.plugins.as_deref(), plugin) && self.parent.as_ref().is_none_or(by_parent)
    }

    /// The objection to a tool; `None` when it is reached.
    pub(crate) fn objection<'a>(&'a self, tool: &'a ToolDefinition) -> Option<Objection<'a>> {
        let why = self.why_not(tool)?;
        Some(Objection { personality: &self.id, why })
    }

    fn why_not<'a>(&self, tool: &'a ToolDefinition) -> Option<ExclusionReason<'a>> {
        if let Some(parent) = &self.parent {
            if tool.capabilities().agents && !parent.may_delegate {
                return Some(ExclusionReason::Depth);
            }
            // Toolcrib's own tools depend on the child's skills and artifacts. Another source's tool
            // may have the name of one in the menu.
            let is_same = |offered: &Tool| offered.origin() == tool.origin();
            let is_offered = match tool.is_framework() {
                true => parent.personality.reaches(tool),
                false => parent.menu.get(tool.name()).is_some_and(is_same),
            };
            if !is_offered {
                return Some(ExclusionReason::Parent);
            }
        }
        let excludes = |glob: &Glob| glob.matches_tool(tool);
        if self.exclude.iter().any(excludes) {
            return Some(ExclusionReason::Excluded);
        }
        if tool.is_framework() {
            return None;
        }
        if let Some(server) = tool.mcp_server()
            && !lists(self.mcp_servers.as_deref(), server)
        {
            return Some(ExclusionReason::McpServer(server));
        }
        if let Some(plugin) = tool.plugin()
            && !self.reaches_plugin(plugin)
        {
            return Some(ExclusionReason::Plugin(plugin));
        }
        if tool.capabilities().team && self.team.is_none() {
            return Some(ExclusionReason::Team);
        }
        let mut folders = tool.capabilities().all_files();
        if let Some(folder) = folders.find(|name| !lists(self.files.as_deref(), name)) {
            return Some(ExclusionReason::Files(folder));
        }
        let is_own = tool.mcp_server().is_none() && tool.plugin().is_none();
        let is_listed = || {
            let toolset = self.toolset.as_deref();
            lists(toolset, tool.name()) || tool.toolset().is_some_and(|name| lists(toolset, name))
        };
        (is_own && !tool.always_include() && !is_listed())
            .then(|| ExclusionReason::Toolset(tool.toolset()))
    }
}

/// Whether a list admits a name; an absent one admits all.
fn lists(list: Option<&[Arc<str>]>, name: &str) -> bool {
    list.is_none_or(|list| list.iter().any(|listed| **listed == *name))
}

/// Why a personality does not reach a tool; formatted on request.
#[derive(Debug)]
pub(crate) struct Objection<'a> {
    personality: &'a str,
    why: ExclusionReason<'a>,
}

#[derive(Debug)]
enum ExclusionReason<'a> {
    Excluded,
    McpServer(&'a str),
    Plugin(&'a str),
    Files(&'a str),
    Parent,
    Depth,
    Team,
    Toolset(Option<&'a str>),
}

impl fmt::Display for Objection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let personality = self.personality;
        match self.why {
            ExclusionReason::Parent => f.write_str("the turn that gave the task is not offered it"),
            ExclusionReason::Depth => f.write_str("an agent of this depth cannot give tasks"),
            ExclusionReason::Team => {
                write!(f, "personality `{personality}` is a member of no team")
            }
            ExclusionReason::Excluded => write!(f, "personality `{personality}` excludes it"),
            ExclusionReason::McpServer(server) => write!(
                f,
                "personality `{personality}` does not list MCP server `{server}` in `mcp_servers`"
            ),
            ExclusionReason::Plugin(plugin) => {
                write!(
                    f,
                    "personality `{personality}` does not list plugin `{plugin}` in `plugins`"
                )
            }
            ExclusionReason::Files(folder) => write!(
                f,
                "personality `{personality}` does not list the folder `{folder}` in `files`"
            ),
            ExclusionReason::Toolset(None) => {
                write!(f, "personality `{personality}` does not list it in `toolset`")
            }
            ExclusionReason::Toolset(Some(toolset)) => write!(
                f,
                "personality `{personality}` lists neither it nor `{toolset}` in `toolset`"
            ),
        }
    }
}

/// The personalities of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Personalities(Vec<Arc<Personality>>);

/// Two personalities of one id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two personalities are called `{0}`; rename one of them")]
pub struct DuplicatePersonalityError(pub Arc<str>);

impl Default for Personalities {
    fn default() -> Self {
        Self(vec![Arc::default()])
    }
}

impl Personalities {
    /// The declared personalities, plus the default one unless it is included.
    pub(crate) fn new(
        declared: impl IntoIterator<Item = Personality>,
    ) -> Result<Self, DuplicatePersonalityError> {
        let mut all: Vec<Arc<Personality>> = Vec::new();
        for personality in declared {
            if all.iter().any(|earlier| earlier.id == personality.id) {
                return Err(DuplicatePersonalityError(Arc::clone(&personality.id)));
            }
            all.push(Arc::new(personality));
        }
        if !all.iter().any(|personality| &*personality.id == DEFAULT_PERSONALITY) {
            all.insert(0, Arc::default());
        }
        Ok(Self(all))
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Personality>> {
        self.0.iter()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Personality>> {
        self.iter().find(|personality| &*personality.id == id)
    }
}
