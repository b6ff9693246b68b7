#[cfg(feature = "mock")]
use std::io;
use std::{sync::Arc, time::Duration};

#[cfg(feature = "mock")]
use tokio::io::{AsyncRead, AsyncWrite};
use toolcrib_core::{BreakerConfig, DefinitionCheck, Glob, ListOrder, Redact, ToolBuilder};

use super::{
    McpClient, McpError,
    sessions::Sessions,
    settings::{Handshake, SessionScope, Settings},
    shared::{AccessFn, Listener, Shared},
    skills,
    status::StateChange,
};
use crate::{
    connection::{self, Greeting, Redaction, WireEvent, WireObserver},
    server::{CallerAccess, Transport, name::ServerName},
};

/// Starts the client of one MCP server. The operator chooses its name, which is part of its tools'
/// names: `mcp__git__git_log` is `git_log` of `git`.
///
/// The server is not started or connected before its tools are requested.
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
    McpClientBuilder::new(name.into(), ConnectionSource::Transport(transport.into()))
}

/// Starts the client of a server in this process: each of its connections is a pipe that `open`
/// makes. It tests a server, or a client against one that breaks rules; for a server that keeps
/// them, use [`mock_mcp_client`](crate::mock_mcp_client).
#[cfg(feature = "mock")]
pub fn pipe_mcp_client<S>(
    name: impl Into<Arc<str>>,
    open: impl Fn() -> io::Result<S> + Send + Sync + 'static,
) -> McpClientBuilder
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let name = name.into();
    let source = ConnectionSource::Connect(connection::pipe(&*name, open));
    McpClientBuilder::new(name, source)
}

/// Opens the connections of a client.
pub(crate) enum ConnectionSource {
    Transport(Transport),
    #[cfg(feature = "mock")]
    Connect(Arc<connection::Connector>),
}

/// Builds a [`McpClient`]; [`mcp_client`] starts it.
#[must_use = "a builder makes nothing until it is built"]
pub struct McpClientBuilder {
    name: Arc<str>,
    source: ConnectionSource,
    settings: Settings,
    listeners: Vec<Listener>,
    access: Option<AccessFn>,
    handshake: Handshake,
}

impl McpClientBuilder {
    /// The default of [`max_sessions`](Self::max_sessions).
    pub const MAX_SESSIONS: usize = 32;

    /// The server's name of the tool that loads its [skills](Self::skills): `mcp__git__load_skill`.
    pub const LOAD_SKILL: &str = skills::LOAD_SKILL;

    pub(crate) fn new(name: Arc<str>, source: ConnectionSource) -> Self {
        Self {
            name,
            source,
            settings: Settings {
                start_timeout: Duration::from_secs(30),
                list_timeout: Duration::from_secs(30),
                max_sessions: McpClientBuilder::MAX_SESSIONS,
                ..Settings::default()
            },
            listeners: Vec::new(),
            access: None,
            handshake: Handshake::default(),
        }
    }

    /// The handshakes that are tried: for checks of a server, or for one that serves one era better.
    /// Default: either.
    pub fn handshake(mut self, handshake: Handshake) -> Self {
        self.handshake = handshake;
        self
    }

    /// Trusts the server's annotations of its tools' effects: read-only, destructive, idempotent.
    /// Their results stay untrusted. Default: not trusted, and each tool counts as destructive.
    pub fn trusted(mut self) -> Self {
        self.settings.trusted = true;
        self
    }

    /// Offers only tools whose name on the server matches one of these globs (`*` any characters,
    /// `?` one). The others are withheld. May be called again to add. Default: all.
    pub fn include<G: AsRef<str>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        let globs = globs.into_iter().map(|glob| Glob::new(glob.as_ref()));
        self.settings.include.get_or_insert_default().extend(globs);
        self
    }

    /// Withholds tools whose name on the server matches one of these globs, included ones too. May
    /// be called again to add. Default: none.
    pub fn exclude<G: AsRef<str>>(mut self, globs: impl IntoIterator<Item = G>) -> Self {
        self.settings.exclude.extend(globs.into_iter().map(|glob| Glob::new(glob.as_ref())));
        self
    }

    /// Calls a tool of the server `mcp__SERVER__NAME`, whatever its own name is. `include`, `exclude`,
    /// skills of the server and pins use its own name; rules match both. Another tool
    /// that the server lists under that name is withheld. Neighbor: the `prefix` of a gateway changes
    /// what its clients see, and no name here. Default: its own name.
    pub fn rename(mut self, tool: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        self.settings.tools.entry(tool.into()).or_default().name = Some(name.into());
        self
    }

    /// Describes a tool of the server, by its own name there, with this text. Pins still compare what
    /// the server says. Default: the server's description.
    pub fn describe(mut self, tool: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        self.settings.tools.entry(tool.into()).or_default().description = Some(text.into());
        self
    }

    /// Offers the server's skills (SEP-2640): one more tool, [`LOAD_SKILL`](Self::LOAD_SKILL), names
    /// and describes them, and loads one after its files are verified. The server's tools that a
    /// skill lists in `allowed-tools` are offered once the conversation has loaded it. Files of
    /// skills are not readable as resources. Default: none are listed.
    pub fn skills(mut self) -> Self {
        self.settings.skills = true;
        self
    }

    /// The order in which its tools are offered. Default: by the server's own names.
    pub fn order(mut self, order: ListOrder) -> Self {
        self.settings.order = order;
        self
    }

    /// Withholds tools whose definitions a check refuses. Default: no check; texts are sanitized in
    /// any case.
    pub fn definition_check(mut self, check: DefinitionCheck) -> Self {
        self.settings.definition_check = Some(check);
        self
    }

    /// Knows the secrets that errors and states of the server must not show. Their texts quote the server
    /// and are cut, and what redacts them later does not know half of a secret. Default: none is known.
    pub fn redactor(mut self, redactor: impl Redact) -> Self {
        self.settings.redactor = Redaction::of(redactor);
        self
    }

    /// How long one call may take, the wait for a server that is just starting included. Default:
    /// the engine's limit for every tool.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.settings.call_timeout = Some(timeout);
        self
    }

    /// The limit of characters of text in a result of each of its tools; see
    /// [`ToolBuilder::max_result_chars`]. Default: only the batch's budget.
    pub fn max_result_chars(mut self, chars: usize) -> Self {
        self.settings.max_result_chars = Some(chars);
        self
    }

    /// The timeout of connecting. Default: 30 seconds.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.settings.start_timeout = timeout;
        self
    }

    /// The timeout of listing all pages of its tools. Default: 30 seconds.
    pub fn list_timeout(mut self, timeout: Duration) -> Self {
        self.settings.list_timeout = timeout;
        self
    }

    /// The circuit breaker: the number of failures after which a server is not tried, and for how
    /// long. Default: after 5 consecutive failures, for 30 seconds.
    pub fn breaker(mut self, config: BreakerConfig) -> Self {
        self.settings.breaker = config;
        self
    }

    /// Whose calls share a session. Default: those of a tenant and principal.
    pub fn session(mut self, scope: SessionScope) -> Self {
        self.settings.session = scope;
        self
    }

    /// Gives each caller separate credentials: a function of tenant and principal that returns the
    /// additions to the transport, or the reason why this caller cannot use the server. It runs at
    /// each use of a session and should return quickly; changed additions apply to new connections.
    /// Fails the build for [`SessionScope::Shared`]. Default: all callers have the same.
    pub fn per_caller(
        mut self,
        access: impl Fn(Option<&str>, Option<&str>) -> Result<CallerAccess, String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.access = Some(Box::new(access));
        self
    }

    /// The limit of concurrent sessions, at least one. Beyond it the least recently used (LRU) one
    /// is evicted, with its state on the server; while all are in use, further identities get an
    /// error. At most four connect at the same time. Default: [`MAX_SESSIONS`](Self::MAX_SESSIONS).
    pub fn max_sessions(mut self, most: usize) -> Self {
        self.settings.max_sessions = most.max(1);
        self
    }

    /// Calls a function at each state change of a session, in order. It runs on the task that
    /// caused the change and should return quickly. May be called again to add.
    pub fn on_state_change(mut self, f: impl Fn(&StateChange) + Send + Sync + 'static) -> Self {
        self.listeners.push(Box::new(f));
        self
    }

    /// Calls a function with all traffic of all sessions, in both directions: for a check of a server.
    /// Secrets are not redacted in it. Default: none.
    #[doc(hidden)]
    pub fn wire_observer(
        mut self,
        observe: impl Fn(WireEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.settings.observer = Some(WireObserver::new(observe));
        self
    }

    /// Builds the client, which starts and connects nothing yet.
    ///
    /// # Errors
    /// [`McpError`] for an invalid server name or declaration, and for names of tools that are invalid
    /// or equal.
    pub fn build(mut self) -> Result<McpClient, McpError> {
        let name = ServerName::new(self.name)?;
        let declared = |problem| McpError::Declared { server: name.as_str().into(), problem };
        self.settings.check_names(&name).map_err(declared)?;
        if let Some(redact) = self.settings.redactor.shared() {
            let check = self.settings.definition_check.take().unwrap_or_default();
            self.settings.definition_check = Some(check.with_redaction(redact));
        }
        if let Some(chars) = self.settings.max_result_chars
            && chars < ToolBuilder::MIN_RESULT_CHARS
        {
            return Err(declared(format!(
                "`max_result_chars` is {chars}; it must be {} or more, so that the note about \
                 left-out text fits",
                ToolBuilder::MIN_RESULT_CHARS
            )));
        }
        if self.access.is_some() && self.settings.session == SessionScope::Shared {
            let problem = "its callers share a session, so they cannot have separate credentials";
            return Err(declared(problem.to_owned()));
        }
        let connect = match self.source {
            ConnectionSource::Transport(Transport::Stdio(stdio)) => {
                (connection::stdio(name.as_str(), &stdio)?, None)
            }
            ConnectionSource::Transport(Transport::Http(http)) => {
                connection::http(name.as_str(), &http)?
            }
            #[cfg(feature = "mock")]
            ConnectionSource::Connect(connect) => (connect, None),
        };
        match self.handshake {
            Handshake::Any => {}
            Handshake::Discover => connect.0.only(Greeting::Modern),
            Handshake::Initialize => connect.0.only(Greeting::Legacy),
        }
        Ok(McpClient::new(Sessions::new(Shared::new(
            name,
            connect,
            self.settings,
            self.listeners,
            self.access,
        ))))
    }
}

toolcrib_core::__internal::debug_fields!(McpClientBuilder { name, settings, .. });
