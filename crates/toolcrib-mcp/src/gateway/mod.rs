//! An engine as an MCP server: `tools/list` is its menu, `tools/call` its pipe.
//!
//! ```text
//! stdio.rs ─┐                        ┌ list.rs   an iteration's menu, as the protocol writes it
//!           ├─▶ handler.rs (rmcp) ──▶│ call.rs   one call: an iteration of its own
//! http.rs ──┘    session.rs          └ changes.rs what a client is told when its menu changes
//!  └ routes.rs: host, origin, token, path; pages.rs: what browsers ask before that;
//!    post.rs: calls that need no more than that
//! ```
//!
//! A client of an era with sessions has a [`Turn`](toolcrib_engine::Turn) of its own, from
//! `initialize` until its connection ends, and is offered `read_skill`. In the stateless era
//! (2026-07-28) each request has a turn of its own and nothing is remembered, so `read_skill` is
//! not offered: skills are preset, by [`Access`] or by the endpoint `/mcp/skill/S`.

mod access;
mod access_log;
mod authority;
mod call;
mod changes;
mod connection;
mod find_id;
mod handler;
mod http;
mod lines;
mod list;
mod output;
mod pages;
mod post;
mod progress;
mod quoted;
mod readiness;
mod result;
mod routes;
mod session;
mod sessions;
mod stdio;
mod unreadable;

use std::{borrow::Cow, fmt, path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use toolcrib_core::{CancellationToken, FENCE_NOTICE, SkillId};
use toolcrib_engine::{Engine, TurnError, TurnOptions};

use self::changes::Changes;
pub use self::{
    access::{Access, HttpAccess},
    access_log::{AccessEntry, ListedTool},
};
use crate::McpClient;

/// How many sessions may be open over HTTP. Each token has an equal share of them, of at least 16.
pub const MAX_SESSIONS: usize = 1024;

/// How long a list waits for a source: a server that takes longer is in the list once it is there, and
/// the client is told that the list has changed.
const SOURCES_WITHIN: Duration = Duration::from_secs(5);

/// An engine as an MCP server, on standard input and output or over HTTP, in both eras of the
/// protocol. Cloning shares it; it may serve any number of times.
///
/// What a client sees and may do is what the engine says for its [`Access`]. A list waits for a source
/// for at most five seconds; then [`OnFailure`](toolcrib_engine::OnFailure) decides. A call waits for
/// no source but those that may have its tool.
///
///  The calls of one
/// connection, or of one session over HTTP, run at the same time as those of a batch do: a call of a
/// [sequential](toolcrib_core::ToolBuilder::sequential) tool alone among them. At most 256 requests of
/// it are worked on; further ones are refused at once. Over HTTP without a session each request
/// stands alone, and there is one at a time on each TCP connection.
///
/// ```no_run
/// use toolcrib_core::CancellationToken;
/// use toolcrib_engine::Engine;
/// use toolcrib_mcp::{Access, Gateway};
///
/// # async fn serve(engine: Engine) -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder(engine).build();
/// let (stdin, stdout) = tokio::io::duplex(64 * 1024); // in a program: its own two
/// gateway.serve_stdio(stdin, stdout, Access::new().principal("ana"), CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

/// Where entries of the access log go.
type AccessLog = Arc<dyn Fn(&AccessEntry) + Send + Sync>;

/// What all connections of a gateway share.
struct Shared {
    engine: Engine,
    changes: Changes,
    servers: Vec<McpClient>,
    instructions: Option<String>,
    working_dir: Option<PathBuf>,
    log: Option<AccessLog>,
}

/// What one `serve_…` shares.
#[derive(Clone)]
struct Serving {
    gateway: Arc<Shared>,
    /// Ends everything.
    cancellation: CancellationToken,
    /// What must have ended before serving has.
    running: TaskTracker,
}

impl Gateway {
    /// Starts a gateway to an engine.
    pub fn builder(engine: Engine) -> GatewayBuilder {
        GatewayBuilder {
            engine,
            changes: Changes::default(),
            servers: Vec::new(),
            instructions: None,
            working_dir: None,
            log: None,
        }
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    fn serving(&self, cancellation: &CancellationToken) -> Serving {
        Serving {
            gateway: Arc::clone(&self.0),
            cancellation: cancellation.child_token(),
            running: TaskTracker::new(),
        }
    }
}

impl Serving {
    /// Ends everything and waits until nothing runs any more.
    async fn end(self) {
        self.cancellation.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

impl Shared {
    /// How a turn for this access begins.
    fn turn_options(&self, access: &Access, cancellation: &CancellationToken) -> TurnOptions {
        let mut options = TurnOptions::default().cancellation(cancellation.clone());
        options.tenant = access.tenant.clone();
        options.principal = access.principal.clone();
        options.claims = access.claims.clone();
        options.personality = access.personality.clone();
        options.skills = access.skills.clone();
        options.working_dir = self.working_dir.clone();
        options.source_timeout = Some(SOURCES_WITHIN);
        options
    }

    /// Whether a turn can begin for this access: whether its personality exists, and it may activate
    /// its skills.
    fn check(&self, access: &Access) -> Result<(), TurnError> {
        self.engine.may_begin(&self.turn_options(access, &CancellationToken::new()))
    }

    /// Writes a line of the access log; it is only made when there is one.
    fn log(&self, entry: impl FnOnce() -> AccessEntry) {
        if let Some(log) = &self.log {
            log(&entry().cleaned(self.engine.redactor()));
        }
    }

    /// What a client is told of the server, for its model: what the operator says, what fences
    /// are, the skills that are active, and how others are activated, which only a session can.
    fn instructions(&self, access: &Access, in_session: bool) -> String {
        let mut lines = Vec::from_iter(self.instructions.as_deref().map(Cow::Borrowed));
        lines.push(FENCE_NOTICE.into());
        let skills = self.engine.skills_of(access.personality.as_deref());
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
                 from then on; that the list has changed is announced."
                    .into(),
            );
        }
        lines.join("\n")
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("engine", &self.0.engine).finish_non_exhaustive()
    }
}

/// Builds a [`Gateway`].
#[must_use = "nothing is served by a builder"]
pub struct GatewayBuilder {
    engine: Engine,
    changes: Changes,
    servers: Vec<McpClient>,
    instructions: Option<String>,
    working_dir: Option<PathBuf>,
    log: Option<AccessLog>,
}

impl GatewayBuilder {
    /// Tells clients when what this MCP server offers changes their menu. Say it of each client that
    /// is a provider of the engine: no client hears of changes at a server that is not watched, and
    /// `/readyz` counts only those that are.
    pub fn watch(mut self, client: &McpClient) -> Self {
        self.servers.push(client.clone());
        self.changes(client.changes())
    }

    /// Looks at the menu again whenever this number changes, and tells the clients whose menu is
    /// another one then. May be called several times. For a source of one's own; an MCP server is
    /// [watched](Self::watch).
    pub fn changes(mut self, changes: watch::Receiver<u64>) -> Self {
        self.changes.add(changes);
        self
    }

    /// What clients are told of this server, before what is said of fences and skills. Clients may
    /// hand it to their model. Default: nothing.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Where tools start relative paths. Default: the process's working folder.
    pub fn working_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(folder.into());
        self
    }

    /// Calls a function for each `initialize`, `tools/list` and `tools/call`, once it is answered, and
    /// for each HTTP request and each line that is refused unread. It runs on the request's time: let it be
    /// short. Default: nothing is logged.
    pub fn access_log(mut self, log: impl Fn(&AccessEntry) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    /// The gateway. Nothing runs yet.
    pub fn build(self) -> Gateway {
        let Self { engine, changes, servers, instructions, working_dir, log } = self;
        Gateway(Arc::new(Shared { engine, changes, servers, instructions, working_dir, log }))
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// A gateway that cannot serve as asked, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// An access presets what does not exist, or a skill that it may not activate.
    #[error("an access cannot be served: {0}")]
    Access(#[source] TurnError),
    /// HTTP is never served without a token.
    #[error("there is no token: give HTTP clients at least one with `HttpAccess::token`")]
    NoToken,
    /// A token can be guessed.
    #[error(
        "token {position} has {chars} characters; use at least {min}, from a generator",
        min = access::MIN_TOKEN_CHARS
    )]
    TokenTooShort {
        /// Which, from 1.
        position: usize,
        /// How long it is, in characters.
        chars: usize,
    },
    /// A token stands for two.
    #[error("tokens {first} and {second} are the same; whose request it is could not be told")]
    SameToken {
        /// The first, from 1.
        first: usize,
        /// The other.
        second: usize,
    },
    /// A host that is none.
    #[error("`{0}` is not a host; write `NAME`, `NAME:PORT`, `[::1]` or `[::1]:PORT`")]
    Host(String),
    /// An origin that is none.
    #[error("`{0}` is not an origin; write `https://NAME` or `https://NAME:PORT`")]
    Origin(String),
    /// The client does not begin as the protocol wants.
    #[error("the client did not begin a connection: {0}")]
    Handshake(String),
    /// The listener failed for good.
    #[error("no connections can be accepted")]
    Listener(#[source] std::io::Error),
}
