//! An engine as an MCP server: `tools/list` is its menu, `tools/call` its pipe.
//!
//! ```text
//! stdio.rs ────────────────────┐               ┌ call.rs    a call, in a separate iteration
//!                              ├─▶ exchange.rs ┤ list.rs    an iteration's menu
//! http.rs ─▶ routes.rs ─▶ post.rs     ▲        └ changes.rs a subscription to its changes
//!            host, origin,            └ handshake.rs: `initialize`, which begins a session.rs
//!            token, path
//! ```
//!
//! `message.rs` reads a message once, and `headers.rs` compares it with what the headers of its
//! request repeat. Over HTTP, `sessions.rs` has the open sessions, and `events.rs` their streams.
//!
//! A client of an era with sessions has a separate [`Turn`](toolcrib_engine::Turn), from
//! `initialize` until its connection ends, and is offered `read_skill`. In the stateless era
//! (2026-07-28) each request has a separate turn, so `read_skill` is not offered: skills are preset,
//! by [`Access`] or by the endpoint `/mcp/skill/S`. What restricts later requests is remembered for
//! the tenant and the principal, by `callers.rs`.

mod access;
mod access_log;
mod authority;
mod call;
mod callers;
mod changes;
mod completion;
mod connection;
mod downstream;
mod events;
mod exchange;
mod find_id;
mod generation;
mod handshake;
mod headers;
mod http;
mod limits;
mod list;
mod log_health;
mod logging;
mod message;
mod metrics;
mod missing;
mod names;
mod oauth;
mod pages;
mod params;
mod post;
mod progress;
mod prompts;
mod quoted;
mod readiness;
mod reply;
mod resources;
mod result;
mod rounds;
mod routes;
mod servers;
mod session;
mod sessions;
mod skills;
mod span;
mod stdio;
mod tls;

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::watch;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};
use toolcrib_core::{
    CancellationToken, FENCE_NOTICE, KvStore, SessionOwner, SkillId, fence, harmless,
};
use toolcrib_engine::{Engine, TurnError, TurnOptions};
use toolcrib_mcp::McpClient;

#[doc(hidden)]
pub use self::servers::judged_offer;
pub use self::{
    access::{Access, Fence, HttpAccess},
    access_log::{AccessEntry, ListedTool},
    callers::CallerRestrictions,
    generation::ReplacedConfig,
    limits::CallLimits,
    log_health::LogHealth,
    oauth::{ResourceServer, TokenAlgorithm},
    readiness::Readiness,
    tls::Tls,
};
use self::{
    callers::{Callers, Noted, Restrictions},
    changes::Changes,
    generation::GatewayState,
    log_health::RequiredLog,
    metrics::Metrics,
    names::ShownNames,
    resources::Links,
    rounds::WaitingCalls,
    servers::CombinedOffers,
};

/// The limit of open sessions over HTTP. Each token has an equal share of them, of at least 16.
pub const MAX_SESSIONS: usize = 1024;

/// How long a list waits for a source: the tools of a slower server follow once it is connected,
/// with a notification that the list has changed.
const SOURCES_WITHIN: Duration = Duration::from_secs(5);

/// The beginning of the origin of an MCP server's tools, which is the id of their source.
const ORIGIN_OF_SERVER: &str = "mcp:";

/// The limit of a server's instructions, in characters.
const MOST_INSTRUCTIONS: usize = 8_000;

/// An engine as an MCP server, on standard input and output or over HTTP, in both eras of the
/// protocol. Clones share it; it may serve any number of times.
///
/// The engine decides what a client sees and may do, by its [`Access`]. A list waits for a source
/// for at most five seconds; then [`OnFailure`](toolcrib_engine::OnFailure) decides. A call waits
/// only for sources that may have its tool.
///
///  The calls of one connection, or of one session over HTTP, run concurrently as in a batch: a
///  call of a [sequential](toolcrib_core::ToolBuilder::sequential) tool alone among them. At most
///  256 of its requests are processed at a time; further ones are refused at once. Over HTTP
///  without a session each request is independent, and there is one at a time on each TCP
///  connection.
///
/// ```no_run
/// use toolcrib_core::CancellationToken;
/// use toolcrib_engine::Engine;
/// use toolcrib_gateway::{Access, Gateway};
///
/// # async fn serve(engine: Engine) -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder(engine).build();
/// let (stdin, stdout) = tokio::io::duplex(64 * 1024); // in a program: its own two
/// gateway.serve_stdio(stdin, stdout, Access::new().principal("ana"), CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway(Arc<GatewayState>);

/// The receiver of access log entries.
type AccessLog = Arc<dyn Fn(&AccessEntry) + Send + Sync>;

/// State shared by all connections of a gateway.
struct Shared {
    config: GatewayBuilder,
    metrics: Arc<Metrics>,
    /// The calls that wait for input.
    waiting: Arc<WaitingCalls>,
    links: Arc<Links>,
    callers: Arc<Callers>,
    /// The requests that were begun with this configuration.
    requests: TaskTracker,
}

/// State shared by one `serve_…` call.
#[derive(Clone)]
struct ServeContext {
    current: Arc<GatewayState>,
    /// The configuration of a request, which stays the same until its end.
    gateway: Arc<Shared>,
    /// Ends everything.
    cancellation: CancellationToken,
    /// The tasks that must end before serving has ended.
    running: TaskTracker,
}

impl Gateway {
    /// Starts a gateway to an engine.
    pub fn builder(engine: Engine) -> GatewayBuilder {
        GatewayBuilder {
            engine,
            changes: Changes::default(),
            servers: Vec::new(),
            unfenced: HashSet::new(),
            names: ShownNames::default(),
            instructions: None,
            working_dir: None,
            log: None,
            audit: None,
            readiness: Readiness::default(),
            drain: Duration::ZERO,
            caller_store: None,
            logs: Vec::new(),
            required: None,
        }
    }

    /// Its present engine.
    pub fn engine(&self) -> Engine {
        self.0.shared().config.engine.clone()
    }

    fn serving(&self, cancellation: &CancellationToken) -> ServeContext {
        ServeContext {
            current: Arc::clone(&self.0),
            gateway: self.0.shared(),
            cancellation: cancellation.child_token(),
            running: TaskTracker::new(),
        }
    }
}

impl ServeContext {
    /// Counts a request, until this is dropped.
    fn counted(&self) -> [TaskTrackerToken; 2] {
        [self.gateway.requests.token(), self.current.requests.token()]
    }

    /// The same with the present configuration.
    fn fresh(&self) -> Self {
        Self { gateway: self.current.shared(), ..self.clone() }
    }

    /// Ends everything and waits until nothing runs any more.
    async fn end(self) {
        self.cancellation.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

impl Shared {
    /// The options of a turn for this access.
    fn turn_options(&self, access: &Access, cancellation: &CancellationToken) -> TurnOptions {
        let mut options = TurnOptions::default().cancellation(cancellation.clone());
        options.tenant = access.tenant.clone();
        options.principal = access.principal.clone();
        options.claims = access.claims.clone();
        options.personality = access.personality.clone();
        options.skills = access.skills.clone();
        options.reveal = access.reveal;
        options.working_dir = self.config.working_dir.clone();
        options.source_timeout = Some(SOURCES_WITHIN);
        options.info.platform = Some("mcp".into());
        options
    }

    /// Whether a turn can begin for this access: its personality exists, and it may activate its
    /// skills.
    fn check(&self, access: &Access) -> Result<(), TurnError> {
        self.config.engine.check_turn(&self.turn_options(access, &CancellationToken::new()))
    }

    /// Whether the engine has skills for this access; policy may still withhold all of them.
    fn has_skills(&self, access: &Access) -> bool {
        !self.config.engine.skills_of(access.personality.as_deref()).is_empty()
    }

    /// The restrictions of a request without a session.
    async fn restrictions(&self, access: &Access) -> Restrictions {
        let counts = self.config.engine.reads_iteration();
        self.callers.of_request(self.config.caller_store.as_ref(), owner(access), counts).await
    }

    /// The restrictions of a session that begins, of a client that may have lost another one.
    async fn restrictions_of_session(&self, access: &Access) -> Restrictions {
        self.callers.of_session(self.config.caller_store.as_ref(), owner(access)).await
    }

    /// Notes what restricts a caller from now on.
    async fn note(&self, access: &Access, noted: Noted) {
        self.callers.note(self.config.caller_store.as_ref(), owner(access), noted).await;
    }

    /// Whether texts of a server are fenced for this access.
    fn fences(&self, access: &Access, server: &str) -> bool {
        access.fence == Fence::Model && !self.config.unfenced.contains(server)
    }

    /// Whether any text may be fenced for this access. A tool of the host may return what others
    /// wrote, so only the texts of servers are known to have no fence.
    fn may_fence(&self, access: &Access) -> bool {
        let is_unfenced = |source: &str| {
            let server = source.strip_prefix(ORIGIN_OF_SERVER);
            server.is_some_and(|server| self.config.unfenced.contains(server))
        };
        let is_fenced = |server: &McpClient| self.fences(access, server.name().as_str());
        access.fence == Fence::Model
            && (self.config.servers.iter().any(is_fenced)
                || self.config.engine.has_tools_besides(is_unfenced))
    }

    /// Whether calls may be made: not while a log cannot be written that is required.
    fn is_recording(&self) -> bool {
        self.config.required.as_ref().is_none_or(RequiredLog::is_written)
    }

    /// Counts a request, and writes a line of the access log.
    fn log(&self, mut entry: AccessEntry) {
        entry.time = SystemTime::now();
        self.metrics.count(&entry);
        let is_audited = self.config.audit.is_some() && entry.method == "tools/call";
        if self.config.log.is_none() && !is_audited {
            return;
        }
        let entry = entry.cleaned(self.config.engine.redactor());
        if let Some(log) = &self.config.log {
            log(&entry);
        }
        if let Some(audit) = self.config.audit.as_ref().filter(|_| is_audited) {
            audit(&entry);
        }
    }

    /// The instructions of an MCP server. Its text may be anybody's: it is data about its tools, fenced
    /// like a result.
    fn server_instructions(&self, access: &Access, server: &str, text: &str) -> String {
        let text = self.config.engine.redactor().text(text);
        // Cleaning joins the parts of a secret that invisible characters split.
        let text = self.config.engine.redactor().text(&harmless(&text)).into_owned();
        let text: String = text.chars().take(MOST_INSTRUCTIONS).collect();
        let text = match self.fences(access, server) {
            true => fence(server, &text),
            false => text,
        };
        format!("MCP server `{server}` describes itself:\n{text}")
    }

    /// The server's instructions for the client's model: the operator's, those about fences if there
    /// may be some, the active skills, and in a session, how to activate others.
    fn instructions(&self, access: &Access, in_session: bool, offered: &CombinedOffers) -> String {
        let mut lines = Vec::from_iter(self.config.instructions.as_deref().map(Cow::Borrowed));
        if self.may_fence(access) {
            lines.push(FENCE_NOTICE.into());
        }
        for (server, text) in &offered.instructions {
            lines.push(self.server_instructions(access, server, text).into());
        }
        let skills = self.config.engine.skills_of(access.personality.as_deref());
        let active = |id: &SkillId| skills.get(id.as_str());
        let named_before = |at: usize, id| access.skills.iter().take(at).any(|before| before == id);
        let once = access.skills.iter().enumerate().filter(|(at, id)| !named_before(*at, *id));
        lines.extend(once.filter_map(|(_, id)| active(id)).map(|skill| {
            let (id, instructions) = (&skill.id, skill.instructions());
            format!("Skill `{id}` is active. Its instructions:\n\n{instructions}\n").into()
        }));
        let may_activate = |id: &SkillId| self.check(&access.clone().skill(id.clone())).is_ok();
        let mut others = skills.iter().filter(|skill| !access.skills.contains(&skill.id));
        if in_session && others.any(|skill| may_activate(&skill.id)) {
            lines.push(
                "Skills: call `read_skill` to activate one. Its tools are in the list of tools \
                 from then on; the change of the list is announced."
                    .into(),
            );
        }
        lines.join("\n")
    }
}

/// The caller whose restrictions they are, over all personalities.
fn owner(access: &Access) -> SessionOwner {
    SessionOwner { tenant: access.tenant.clone(), principal: access.principal.clone() }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("engine", &self.engine()).finish_non_exhaustive()
    }
}

/// Builds a [`Gateway`].
#[must_use = "nothing is served by a builder"]
pub struct GatewayBuilder {
    engine: Engine,
    changes: Changes,
    servers: Vec<McpClient>,
    /// The servers whose texts are not fenced.
    unfenced: HashSet<Arc<str>>,
    names: ShownNames,
    instructions: Option<String>,
    working_dir: Option<PathBuf>,
    log: Option<AccessLog>,
    audit: Option<AccessLog>,
    readiness: Readiness,
    drain: Duration,
    caller_store: Option<Arc<dyn KvStore>>,
    logs: Vec<LogHealth>,
    required: Option<RequiredLog>,
}

impl GatewayBuilder {
    /// Notifies clients when changes of this MCP server change their menu. Call it for each client
    /// that is a provider of the engine: changes at an unwatched server are not announced, and
    /// `/readyz` counts only watched ones.
    pub fn watch(mut self, client: &McpClient) -> Self {
        self.servers.push(client.clone());
        self.changes(client.changes())
    }

    /// Does not fence the texts of a server, for clients that parse them; see [`Fence`]. They are
    /// still redacted and sanitized.
    pub fn without_fence(mut self, server: impl Into<Arc<str>>) -> Self {
        self.unfenced.insert(server.into());
        self
    }

    /// Replaces the prefix `mcp__SERVER__` in the names of a server's tools and prompts, as clients see
    /// them; the prefix may be empty. Rules, events and results keep the whole names, which stay callable.
    /// If two tools would have the same name, the later one keeps its whole name. Call it in the
    /// order of the servers.
    pub fn prefix(mut self, server: impl Into<Arc<str>>, prefix: impl Into<Arc<str>>) -> Self {
        self.names.add(server.into(), prefix.into());
        self
    }

    /// Checks the menu again whenever this number changes, and notifies the clients whose menu has
    /// changed. May be called several times. For custom sources; use [`watch`](Self::watch) for an
    /// MCP server.
    pub fn changes(mut self, changes: watch::Receiver<u64>) -> Self {
        self.changes.add(changes);
        self
    }

    /// The instructions for clients, before those about fences and skills. Clients may pass them to
    /// their model. Default: none.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// The base of relative paths of tools. Default: the process's working folder.
    pub fn working_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(folder.into());
        self
    }

    /// Calls a function for each `initialize`, `tools/list` and `tools/call`, after its response,
    /// and for each HTTP request and each line that is refused unread. It runs on the request's
    /// time and should return quickly. Default: no log.
    pub fn access_log(mut self, log: impl Fn(&AccessEntry) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    /// Calls a function for each `tools/call` after its response, with the digest of its arguments,
    /// as [`access_log`](Self::access_log) does. Default: no audit log.
    pub fn audit_log(mut self, log: impl Fn(&AccessEntry) + Send + Sync + 'static) -> Self {
        self.audit = Some(Arc::new(log));
        self
    }

    /// Shows in `/metrics` how many lines of a log could not be written.
    pub fn log_health(mut self, health: LogHealth) -> Self {
        self.logs.push(health);
        self
    }

    /// Refuses calls, and is not [ready](Self::readiness), while a log cannot be written, such as the
    /// [audit log](Self::audit_log). `retry` tries to write it again, and returns whether it can be
    /// written; it is called before each call and each probe while the log fails. Default: calls are
    /// made without.
    pub fn require(
        mut self,
        health: LogHealth,
        retry: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.required = Some(RequiredLog { health, retry: Arc::new(retry) });
        self
    }

    /// When `/readyz` has the status 200. Default: when all servers are usable.
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = readiness;
        self
    }

    /// How long requests in progress may take to end after serving over HTTP was ended. New ones are
    /// refused meanwhile. Default: no time, they are cancelled.
    pub fn drain(mut self, within: Duration) -> Self {
        self.drain = within;
        self
    }

    /// Keeps what restricts callers in a store, so that it survives a restart: that a caller without a
    /// session has read untrusted content, that a rule halted it, and the number of its iterations. It
    /// is that of the tenant and the principal; callers without a principal share it. Taint and halts
    /// end 24 hours after the last of them, or when an operator
    /// [lifts](CallerRestrictions::lift) them. If the store cannot be read, a request counts as
    /// tainted. Default: they are kept in memory.
    pub fn remember_in(mut self, store: Arc<dyn KvStore>) -> Self {
        self.caller_store = Some(store);
        self
    }

    /// Builds the gateway. Nothing runs yet.
    pub fn build(self) -> Gateway {
        Gateway(GatewayState::new(self))
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// A gateway that cannot serve, or could not continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// An access presets something unknown, or a skill that it may not activate.
    #[error("an access cannot be served: {0}")]
    Access(#[source] TurnError),
    /// HTTP is never served without a token.
    #[error("HTTP needs a token: give clients at least one with `HttpAccess::token`")]
    NoToken,
    /// A token is too short and could be guessed.
    #[error(
        "token {position} has {chars} characters; use at least {min}, from a generator",
        min = access::MIN_TOKEN_CHARS
    )]
    TokenTooShort {
        /// Its position, from 1.
        position: usize,
        /// Its length, in characters.
        chars: usize,
    },
    /// Two equal tokens.
    #[error("tokens {first} and {second} are equal; the sender of a request would be ambiguous")]
    SameToken {
        /// The first, from 1.
        first: usize,
        /// The other.
        second: usize,
    },
    /// An invalid host.
    #[error(
        "`{0}` is not a valid host; write `NAME`, `NAME:PORT`, `[::1]` or `[::1]:PORT`, once for \
         each host: patterns with `*` are not supported"
    )]
    Host(String),
    /// An invalid origin.
    #[error(
        "`{0}` is not a valid origin; write `https://NAME` or `https://NAME:PORT`, once for each \
         origin: patterns with `*` are not supported"
    )]
    Origin(String),
    /// The settings of OAuth are invalid.
    #[error("OAuth: {0}")]
    OAuth(String),
    /// The client's handshake is invalid.
    #[error("the client did not begin a connection: {0}")]
    Handshake(String),
    /// An invalid certificate or key.
    #[error("TLS cannot be used: {0}")]
    Tls(Box<str>),
    /// The listener failed permanently.
    #[error("no connections can be accepted")]
    Listener(#[source] std::io::Error),
}
