//! Personalities: named bundles of what a run may reach.

use std::{fmt, sync::Arc};

use toolcrib_core::{Glob, NetworkRules, ToolDefinition};

/// The id of the personality that a run has when nobody names one.
pub const DEFAULT_PERSONALITY: &str = "default";

/// What a run may reach at most, under a name. Every run has exactly one, fixed when it begins.
///
/// A list that is absent admits everything of its kind, an empty one nothing. It is looked at in
/// this order: what is [excluded](Self::exclude); tools of MCP servers by
/// [`mcp_servers`](Self::mcp_servers), those of plugins by [`plugins`](Self::plugins), all others by
/// [`toolset`](Self::toolset). Policy comes after it, so that it can only narrow further. Neighbour:
/// a [`Policy`](toolcrib_core::Policy) says who may do what; a personality is who acts.
///
/// ```
/// use toolcrib_engine::Personality;
///
/// let support = Personality::new("support")
///     .system("You help customers.")
///     .toolset(["orders", "find_customer"])
///     .mcp_servers::<&str>([])
///     .exclude(["refund*"]);
/// assert_eq!(support.id(), "support");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Personality {
    /// The name; [`DEFAULT_PERSONALITY`] unless it is given.
    pub id: Arc<str>,
    /// The system text that takes the place of the agent's.
    pub system: Option<Arc<str>>,
    /// The model that takes the place of the agent's, in the notation of whoever resolves it.
    pub model: Option<Arc<str>>,
    /// Tools that are never reached, whatever else admits them, [always
    /// included](ToolDefinition::always_include) ones too. What Toolcrib itself offers is excluded
    /// only by its full name.
    pub exclude: Vec<Glob>,
    /// The toolsets and the single tools that are reached, of those that come from no MCP server and
    /// no plugin. Tools that are always included are reached all the same.
    pub toolset: Option<Vec<Arc<str>>>,
    /// The MCP servers whose tools are reached.
    pub mcp_servers: Option<Vec<Arc<str>>>,
    /// The plugins whose tools and skills are reached. A plugin's MCP server must be among
    /// [`mcp_servers`](Self::mcp_servers) too.
    pub plugins: Option<Vec<Arc<str>>>,
    /// The hosts that calls reach over HTTP, of those that their tools declare. What an MCP server or
    /// a program reaches by itself is not bounded by it.
    pub network: Arc<NetworkRules>,
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
        }
    }
}

impl Personality {
    /// A personality that reaches everything, to be narrowed.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Sets the system text that takes the place of the agent's.
    #[must_use]
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Sets the model that takes the place of the agent's.
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

    /// The name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether a tool is reached, as far as this goes.
    pub fn reaches(&self, tool: &ToolDefinition) -> bool {
        self.why_not(tool).is_none()
    }

    /// Whether what a plugin brings is reached, as far as `plugins` goes.
    pub(crate) fn reaches_plugin(&self, plugin: &str) -> bool {
        lists(self.plugins.as_deref(), plugin)
    }

    /// What is against a tool; `None` when it is reached.
    pub(crate) fn objection<'a>(&'a self, tool: &'a ToolDefinition) -> Option<Objection<'a>> {
        let why = self.why_not(tool)?;
        Some(Objection { personality: self.id(), why })
    }

    fn why_not<'a>(&self, tool: &'a ToolDefinition) -> Option<WhyNot<'a>> {
        let excludes = |glob: &Glob| glob.speaks_of(tool);
        if self.exclude.iter().any(excludes) {
            return Some(WhyNot::Excluded);
        }
        if tool.is_framework() {
            return None;
        }
        if let Some(server) = tool.mcp_server()
            && !lists(self.mcp_servers.as_deref(), server)
        {
            return Some(WhyNot::McpServer(server));
        }
        if let Some(plugin) = tool.plugin()
            && !self.reaches_plugin(plugin)
        {
            return Some(WhyNot::Plugin(plugin));
        }
        let is_own = tool.mcp_server().is_none() && tool.plugin().is_none();
        let is_listed = || {
            let toolset = self.toolset.as_deref();
            lists(toolset, tool.name()) || tool.toolset().is_some_and(|name| lists(toolset, name))
        };
        (is_own && !tool.always_include() && !is_listed()).then(|| WhyNot::Toolset(tool.toolset()))
    }
}

/// Whether a list admits a name; one that is absent admits all.
fn lists(list: Option<&[Arc<str>]>, name: &str) -> bool {
    list.is_none_or(|list| list.iter().any(|listed| **listed == *name))
}

/// Why a personality does not reach a tool, in words when they are asked for.
#[derive(Debug)]
pub(crate) struct Objection<'a> {
    personality: &'a str,
    why: WhyNot<'a>,
}

#[derive(Debug)]
enum WhyNot<'a> {
    Excluded,
    McpServer(&'a str),
    Plugin(&'a str),
    Toolset(Option<&'a str>),
}

impl fmt::Display for Objection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let personality = self.personality;
        match self.why {
            WhyNot::Excluded => write!(f, "personality `{personality}` excludes it"),
            WhyNot::McpServer(server) => write!(
                f,
                "personality `{personality}` does not list MCP server `{server}` in `mcp_servers`"
            ),
            WhyNot::Plugin(plugin) => {
                write!(
                    f,
                    "personality `{personality}` does not list plugin `{plugin}` in `plugins`"
                )
            }
            WhyNot::Toolset(None) => {
                write!(f, "personality `{personality}` does not list it in `toolset`")
            }
            WhyNot::Toolset(Some(toolset)) => write!(
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
pub struct DuplicatePersonality(pub Arc<str>);

impl Default for Personalities {
    fn default() -> Self {
        Self(vec![Arc::default()])
    }
}

impl Personalities {
    /// These, and the default one unless it is among them.
    pub(crate) fn new(
        declared: impl IntoIterator<Item = Personality>,
    ) -> Result<Self, DuplicatePersonality> {
        let mut all: Vec<Arc<Personality>> = Vec::new();
        for personality in declared {
            if all.iter().any(|earlier| earlier.id() == personality.id()) {
                return Err(DuplicatePersonality(Arc::clone(&personality.id)));
            }
            all.push(Arc::new(personality));
        }
        if !all.iter().any(|personality| personality.id() == DEFAULT_PERSONALITY) {
            all.insert(0, Arc::default());
        }
        Ok(Self(all))
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Personality>> {
        self.0.iter()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Personality>> {
        self.iter().find(|personality| personality.id() == id)
    }
}
