//! A gateway: an engine as an MCP server, and its replacement while it serves.

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;
use toolcrib_core::{CancellationToken, Digest, KvStore};
use toolcrib_engine::Engine;
use toolcrib_mcp::McpClient;

use crate::{
    access::{
        HttpAccess,
        access_log::AccessEntry,
        log_health::{LogHealth, RequiredLog},
        readiness::Readiness,
        replicas::Replicas,
    },
    client::{
        changes::Changes,
        config::GatewayConfig,
        context::{ServeContext, Shared},
        names::ShownNames,
        state::GatewayState,
    },
    error::GatewayError,
};

/// An engine as an MCP server, on standard input and output or over HTTP, in both eras of the
/// protocol. Clones share it; it may serve any number of times.
///
/// The engine decides what a client sees and may do, by its [`Access`](crate::Access). A list waits
/// for a source for at most five seconds; then [`OnFailure`](toolcrib_engine::OnFailure) decides. A
/// call waits only for sources that may have its tool.
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
pub struct Gateway(pub(crate) Arc<GatewayState>);

impl Gateway {
    /// Starts a gateway to an engine.
    pub fn builder(engine: Engine) -> GatewayBuilder {
        GatewayBuilder(GatewayConfig {
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
            replicas: None,
            digest: None,
        })
    }

    /// The engine of the next request.
    pub fn engine(&self) -> Engine {
        self.0.shared().config.engine.clone()
    }

    /// Replaces the configuration while it serves: new requests use the engine of this builder, and
    /// over HTTP this access. Those in progress end with the previous engine, which must stay usable
    /// until [`ReplacedConfig::ended`]. Sessions continue: with their active skills, as far as they exist
    /// and are permitted. A session whose token is absent now, or has another identity, ends. Clients
    /// whose menu has changed are notified. Hosts and origins stay as they are.
    ///
    /// Without an access, the present one stays.
    ///
    /// # Errors
    /// [`GatewayError`] if the access is invalid; nothing has changed then.
    pub fn replace(
        &self,
        builder: GatewayBuilder,
        access: Option<&HttpAccess>,
    ) -> Result<ReplacedConfig, GatewayError> {
        let next = self.0.next(builder.0);
        if let Some(access) = access {
            next.check_all(access)?;
        }
        Ok(ReplacedConfig(self.0.replace(next, access)))
    }

    /// Counts a configuration that could not be used, for `/metrics`.
    pub fn replacement_failed(&self) {
        self.0.shared().metrics.reloaded(false);
    }

    pub(crate) fn serving(&self, cancellation: &CancellationToken) -> ServeContext {
        ServeContext {
            current: Arc::clone(&self.0),
            gateway: self.0.shared(),
            cancellation: cancellation.child_token(),
            running: TaskTracker::new(),
        }
    }
}

toolcrib_core::__internal::debug_fields!(Gateway, gateway, engine = gateway.engine(), ..);

/// How long a request takes at most from the choice of its configuration to its count.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);

/// A configuration that was replaced; see [`Gateway::replace`].
#[must_use = "its engine is in use until its requests have ended"]
pub struct ReplacedConfig(Arc<Shared>);

impl ReplacedConfig {
    /// Waits until all requests have ended that were begun with it, or the limit; returns whether
    /// they have.
    pub async fn ended(&self, within: Duration) -> bool {
        sleep(BEGINS_WITHIN).await;
        self.0.requests.close();
        timeout(within, self.0.requests.wait()).await.is_ok()
    }
}

/// Builder of a [`Gateway`], with its access and its limits.
#[must_use = "nothing is served by a builder"]
pub struct GatewayBuilder(GatewayConfig);

impl GatewayBuilder {
    /// Notifies clients when changes of this MCP server change their menu. Call it for each client
    /// that is a provider of the engine: changes at an unwatched server are not announced, and
    /// `/readyz` counts only watched ones.
    pub fn watch(mut self, client: &McpClient) -> Self {
        self.0.servers.push(client.clone());
        self.changes(client.changes())
    }

    /// Does not fence the texts of a server, for clients that parse them; see
    /// [`Fence`](crate::Fence). They are still redacted and sanitized.
    pub fn without_fence(mut self, server: impl Into<Arc<str>>) -> Self {
        self.0.unfenced.insert(server.into());
        self
    }

    /// Replaces the prefix `mcp__SERVER__` in the names of a server's tools and prompts, as clients see
    /// them; the prefix may be empty. Rules, events and results keep the whole names, which stay callable.
    /// If two tools would have the same name, the later one keeps its whole name. Call it in the
    /// order of the servers.
    pub fn prefix(mut self, server: impl Into<Arc<str>>, prefix: impl Into<Arc<str>>) -> Self {
        self.0.names.add(server.into(), prefix.into());
        self
    }

    /// Checks the menu again whenever this number changes, and notifies the clients whose menu has
    /// changed. May be called several times. For custom sources; use [`watch`](Self::watch) for an
    /// MCP server.
    pub fn changes(mut self, changes: watch::Receiver<u64>) -> Self {
        self.0.changes.add(changes);
        self
    }

    /// The instructions for clients, before those about fences and skills. Clients may pass them to
    /// their model. Default: none.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.0.instructions = Some(instructions.into());
        self
    }

    /// The base of relative paths of tools. Default: the process's working folder.
    pub fn working_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.0.working_dir = Some(folder.into());
        self
    }

    /// Calls a function for each `initialize`, `tools/list` and `tools/call`, after its response,
    /// and for each HTTP request and each line that is refused unread. It runs on the request's
    /// time and should return quickly. Default: no log.
    pub fn access_log(mut self, log: impl Fn(&AccessEntry) + Send + Sync + 'static) -> Self {
        self.0.log = Some(Arc::new(log));
        self
    }

    /// Calls a function for each `tools/call` after its response, with the digest of its arguments,
    /// as [`access_log`](Self::access_log) does. Default: no audit log.
    pub fn audit_log(mut self, log: impl Fn(&AccessEntry) + Send + Sync + 'static) -> Self {
        self.0.audit = Some(Arc::new(log));
        self
    }

    /// Shows in `/metrics` how many lines of a log could not be written.
    pub fn log_health(mut self, health: LogHealth) -> Self {
        self.0.logs.push(health);
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
        self.0.required = Some(RequiredLog { health, retry: Arc::new(retry) });
        self
    }

    /// When `/readyz` has the status 200. Default: when all servers are usable.
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        self.0.readiness = readiness;
        self
    }

    /// How long requests in progress may take to end after serving over HTTP was ended. New ones are
    /// refused meanwhile. Default: no time, they are cancelled.
    pub fn drain(mut self, within: Duration) -> Self {
        self.0.drain = within;
        self
    }

    /// Keeps what restricts callers in a store, so that it survives a restart: that a caller without a
    /// session has read untrusted content, that a rule halted it, and the number of its iterations. It
    /// is that of the tenant and the principal; callers without a principal share it. Taint and halts
    /// end 24 hours after the last of them, or when an operator
    /// [lifts](crate::CallerRestrictions::lift) them. If the store cannot be read, a request counts as
    /// tainted; with [replicas](Self::replicas) it is refused if a rule halts or reads the number of the
    /// iteration. Default: they are kept in memory.
    pub fn remember_in(mut self, store: Arc<dyn KvStore>) -> Self {
        self.0.caller_store = Some(store);
        self
    }

    /// Makes it one of several replicas, which serve the same clients over HTTP. Each builder of a
    /// [replacement](Gateway::replace) needs the same one. Also call [`remember_in`](Self::remember_in) with
    /// their store. Default: it is the only one.
    pub fn replicas(mut self, replicas: Replicas) -> Self {
        self.0.replicas = Some(replicas);
        self
    }

    /// Shows the digest of the configuration in `/readyz` and `/metrics`, so that replicas with different
    /// ones are noticed. Default: none is shown.
    pub fn config_digest(mut self, digest: Digest) -> Self {
        self.0.digest = Some(digest);
        self
    }

    /// Builds the gateway, which runs nothing yet.
    pub fn build(self) -> Gateway {
        Gateway(GatewayState::new(self.0))
    }
}

toolcrib_core::__internal::debug_fields!(GatewayBuilder, builder, engine = builder.0.engine, ..);
