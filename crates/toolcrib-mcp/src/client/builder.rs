use std::{fmt, sync::Arc, time::Duration};

use toolcrib_config::suggest;
use toolcrib_core::{DefinitionCheck, Glob, ListOrder, ToolBuilder};
use toolcrib_engine::BreakerConfig;

use super::{
    McpClient, McpError,
    name::ServerName,
    sessions::Sessions,
    shared::{Listener, Shared},
    status::{StateChange, UnmatchedPattern},
};
use crate::{
    connection::{self, Connect},
    server::Transport,
};

/// Starts the client of one MCP server. Its name is the operator's, and stands in the names of its
/// tools: `mcp__git__git_log` is `git_log` of `git`.
///
/// Nothing is started or dialled before somebody asks for the server's tools.
///
/// ```
/// use toolcrib_mcp::{mcp_client, server::{Http, Stdio}};
///
/// let git = mcp_client("git", Stdio::new("uvx").arg("mcp-server-git")).trusted().build()?;
/// let docs = mcp_client("docs", Http::new("https://docs.example/mcp")).exclude(["delete_*"]).build()?;
/// assert_eq!(git.status().state.as_str(), "idle");
/// # Ok::<(), toolcrib_mcp::McpError>(())
/// ```
pub fn mcp_client(name: impl Into<Arc<str>>, transport: impl Into<Transport>) -> McpClientBuilder {
    McpClientBuilder::new(name.into(), Reach::Transport(transport.into()))
}

/// What opens the connections of a client.
pub(crate) enum Reach {
    Transport(Transport),
    /// For the mock, and for tests of the client alone.
    #[cfg_attr(
        not(any(test, feature = "mock")),
        expect(dead_code, reason = "only the mock has one")
    )]
    Connect(Arc<dyn Connect>),
}

/// What a client is told about its server, beside how it is reached.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) trusted: bool,
    pub(crate) include: Option<Vec<Glob>>,
    pub(crate) exclude: Vec<Glob>,
    pub(crate) order: ListOrder,
    pub(crate) definition_check: Option<DefinitionCheck>,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
    pub(crate) start_timeout: Duration,
    pub(crate) list_timeout: Duration,
    pub(crate) breaker: BreakerConfig,
    pub(crate) shared_session: bool,
    pub(crate) max_sessions: usize,
}

impl Settings {
    /// The patterns that match none of these names.
    pub(crate) fn unmatched<'a>(
        &self,
        names: &(impl Iterator<Item = &'a str> + Clone),
    ) -> Vec<UnmatchedPattern> {
        let include = self.include.iter().flatten().map(|glob| ("include", glob));
        let exclude = self.exclude.iter().map(|glob| ("exclude", glob));
        let unmatched = include.chain(exclude);
        let unmatched = unmatched.filter(|(_, glob)| !names.clone().any(|name| glob.matches(name)));
        // A server decides how many names there are, and how long they are.
        let candidates = names.clone().filter(|name| name.len() <= 128).take(1_000);
        let described = |(list, glob): (_, &Glob)| UnmatchedPattern {
            list,
            pattern: glob.as_str().into(),
            nearest: suggest::nearest(glob.as_str(), candidates.clone()).map(Into::into),
        };
        unmatched.map(described).collect()
    }
}

/// Builds a [`McpClient`]; [`mcp_client`] starts it.
#[must_use = "a builder makes nothing until it is built"]
pub struct McpClientBuilder {
    name: Arc<str>,
    reach: Reach,
    settings: Settings,
    listeners: Vec<Listener>,
}

impl McpClientBuilder {
    /// How many sessions a client keeps unless [`max_sessions`](Self::max_sessions) says otherwise.
    pub const MAX_SESSIONS: usize = 32;

    pub(crate) fn new(name: Arc<str>, reach: Reach) -> Self {
        Self {
            name,
            reach,
            settings: Settings {
                trusted: false,
                include: None,
                exclude: Vec::new(),
                order: ListOrder::default(),
                definition_check: None,
                call_timeout: None,
                max_result_chars: None,
                start_timeout: Duration::from_secs(30),
                list_timeout: Duration::from_secs(30),
                breaker: BreakerConfig::default(),
                shared_session: false,
                max_sessions: McpClientBuilder::MAX_SESSIONS,
            },
            listeners: Vec::new(),
        }
    }

    /// Believes what the server says of its tools' effects: that one changes nothing, destroys, or
    /// can be repeated. Their results stay untrusted. Default: nothing is believed, and each tool
    /// counts as one that may destroy.
    pub fn trusted(mut self) -> Self {
        self.settings.trusted = true;
        self
    }

    /// Offers only tools whose name, as the server calls them, matches one of these globs (`*` any
    /// characters, `?` one). The others are held back. May be called again to add. Default: all.
    pub fn include<G: AsRef<str>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        let globs = globs.into_iter().map(|glob| Glob::new(glob.as_ref()));
        self.settings.include.get_or_insert_default().extend(globs);
        self
    }

    /// Holds back tools whose name, as the server calls them, matches one of these globs, included
    /// ones too. May be called again to add. Default: none.
    pub fn exclude<G: AsRef<str>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        self.settings.exclude.extend(globs.into_iter().map(|glob| Glob::new(glob.as_ref())));
        self
    }

    /// In which order its tools are offered. Default: by the server's own names.
    pub fn order(mut self, order: ListOrder) -> Self {
        self.settings.order = order;
        self
    }

    /// Holds back tools whose definitions a check refuses. Default: none; texts are made harmless all the
    /// same.
    pub fn definition_check(mut self, check: DefinitionCheck) -> Self {
        self.settings.definition_check = Some(check);
        self
    }

    /// How long one call may take, the wait for a server that is just starting included. Default:
    /// the engine's limit for every tool.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.settings.call_timeout = Some(timeout);
        self
    }

    /// How many characters of text a result of each of its tools may have at most; see
    /// [`ToolBuilder::max_result_chars`]. Default: none but the batch's budget.
    pub fn max_result_chars(mut self, chars: usize) -> Self {
        self.settings.max_result_chars = Some(chars);
        self
    }

    /// How long it may take until a connection is there. Default: 30 seconds.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.settings.start_timeout = timeout;
        self
    }

    /// How long it may take until all pages of its tools are there. Default: 30 seconds.
    pub fn list_timeout(mut self, timeout: Duration) -> Self {
        self.settings.list_timeout = timeout;
        self
    }

    /// When a server that keeps failing is left alone, and for how long. Default: after 5 failures
    /// in a row, for 30 seconds.
    pub fn breaker(mut self, config: BreakerConfig) -> Self {
        self.settings.breaker = config;
        self
    }

    /// One session for all identities. Say it of a server that keeps nothing between calls, or that
    /// is meant to share what it keeps: what one principal's calls leave there, another's meet.
    /// Default: a session for each tenant and principal.
    pub fn shared_session(mut self) -> Self {
        self.settings.shared_session = true;
        self
    }

    /// How many sessions are kept at the same time, at least one. Beyond that the one that was unused
    /// for longest ends, with what the server kept in it; while all are in use, further identities
    /// get an error. At most four connect at the same time. Default:
    /// [`MAX_SESSIONS`](Self::MAX_SESSIONS).
    pub fn max_sessions(mut self, most: usize) -> Self {
        self.settings.max_sessions = most.max(1);
        self
    }

    /// Calls a function whenever a session stands elsewhere with its server, in order. It runs on
    /// the time of whoever caused the change: let it be short. May be called again to add.
    pub fn on_state_change(mut self, f: impl Fn(&StateChange) + Send + Sync + 'static) -> Self {
        self.listeners.push(Box::new(f));
        self
    }

    /// The client. Nothing is started or dialled yet.
    ///
    /// # Errors
    /// [`McpError`] for a name that no server can have, and for what cannot be as it is declared.
    pub fn build(self) -> Result<McpClient, McpError> {
        let name = ServerName::new(self.name)?;
        if let Some(chars) = self.settings.max_result_chars
            && chars < ToolBuilder::MIN_RESULT_CHARS
        {
            return Err(McpError::Declared {
                server: name.as_str().into(),
                problem: format!(
                    "`max_result_chars` is {chars}; it must be {} or more, so that the words that \
                     say what is missing fit",
                    ToolBuilder::MIN_RESULT_CHARS
                ),
            });
        }
        let connect = match self.reach {
            Reach::Transport(Transport::Stdio(stdio)) => connection::stdio(name.as_str(), &stdio)?,
            Reach::Transport(Transport::Http(http)) => connection::http(name.as_str(), &http)?,
            Reach::Connect(connect) => connect,
        };
        Ok(McpClient::new(Sessions::new(Shared::new(name, connect, self.settings, self.listeners))))
    }
}

impl fmt::Debug for McpClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClientBuilder")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
