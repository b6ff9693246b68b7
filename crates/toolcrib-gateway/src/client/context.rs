//! The state that all requests of a gateway share: its configuration, its engine, and its callers.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use tokio::task::spawn_blocking;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};
use toolcrib_core::{
    CancellationToken, DiscoveryError, DiscoveryErrorClass, FENCE_NOTICE, SessionOwner, SkillId,
    fence, harmless,
};
use toolcrib_engine::{MissingTool, TurnError, TurnOptions};
use toolcrib_mcp::McpClient;

use super::{
    callers::{Callers, Noted, Restrictions},
    config::{GatewayConfig, SOURCES_WITHIN},
    links::Links,
    log_messages::own_message,
    missing,
    names::ORIGIN_OF_SERVER,
    offers::CombinedOffers,
    rounds::WaitingCalls,
    shared_session::TRUSTED_FOR,
    state::GatewayState,
};
use crate::{
    access::{
        Access, Fence, HttpAccess, access_log::AccessEntry, log_health::RequiredLog,
        metrics::Metrics, oauth::ResourceServer,
    },
    error::GatewayError,
};

/// The limit of a server's instructions, in characters.
const MOST_INSTRUCTIONS: usize = 8_000;

/// State shared by all connections of a gateway.
pub(crate) struct Shared {
    pub(crate) config: GatewayConfig,
    pub(crate) metrics: Arc<Metrics>,
    /// The calls that wait for input.
    pub(crate) waiting: Arc<WaitingCalls>,
    pub(crate) links: Arc<Links>,
    pub(crate) callers: Arc<Callers>,
    /// The requests that were begun with this configuration.
    pub(crate) requests: TaskTracker,
}

/// State shared by one `serve_…` call.
#[derive(Clone)]
pub(crate) struct ServeContext {
    pub(crate) current: Arc<GatewayState>,
    /// The configuration of a request, which stays the same until its end.
    pub(crate) gateway: Arc<Shared>,
    /// Ends everything.
    pub(crate) cancellation: CancellationToken,
    /// The tasks that must end before serving has ended.
    pub(crate) running: TaskTracker,
}

impl ServeContext {
    /// Counts a request, until this is dropped.
    pub(crate) fn counted(&self) -> [TaskTrackerToken; 2] {
        [self.gateway.requests.token(), self.current.requests.token()]
    }

    /// The same with the present configuration.
    pub(crate) fn fresh(&self) -> Self {
        Self { gateway: self.current.shared(), ..self.clone() }
    }

    /// Ends the conversation of a session that its client has ended at any replica: its jobs here, and its artifacts.
    pub(crate) async fn end_conversation(&self, access: &Access, id: &Arc<str>) {
        let options = self.gateway.turn_options(access, &self.cancellation.child_token());
        let options = options.conversation(Arc::clone(id)).ends_conversation();
        let gateway = Arc::clone(&self.gateway);
        // The end of a turn ends it, which may block. Without a turn there is none.
        let ended = spawn_blocking(move || drop(gateway.config.engine.turn(options)));
        let _ = ended.await;
    }

    /// Ends everything and waits until nothing runs any more.
    pub(crate) async fn end(self) {
        self.cancellation.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

impl Shared {
    pub(crate) fn new(config: GatewayConfig) -> Self {
        Self {
            config,
            metrics: Arc::default(),
            waiting: Arc::default(),
            links: Arc::default(),
            callers: Arc::default(),
            requests: TaskTracker::new(),
        }
    }

    /// The same with another configuration.
    pub(crate) fn with(&self, config: GatewayConfig) -> Self {
        Self {
            config,
            metrics: Arc::clone(&self.metrics),
            waiting: Arc::clone(&self.waiting),
            links: Arc::clone(&self.links),
            callers: Arc::clone(&self.callers),
            requests: TaskTracker::new(),
        }
    }

    /// The options of a turn for this access.
    pub(crate) fn turn_options(
        &self,
        access: &Access,
        cancellation: &CancellationToken,
    ) -> TurnOptions {
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
    pub(crate) fn check(&self, access: &Access) -> Result<(), TurnError> {
        self.config.engine.check_turn(&self.turn_options(access, &CancellationToken::new()))
    }

    /// Whether everything can be served that an access over HTTP declares.
    pub(crate) fn check_all(&self, access: &HttpAccess) -> Result<(), GatewayError> {
        access.check()?;
        let declared = access.tokens.iter().map(|token| &token.access);
        let declared = declared.chain(access.oauth.as_ref().map(ResourceServer::template));
        let of_endpoints: Vec<Access> = access.endpoints.accesses().collect();
        let mut all = declared.chain(&of_endpoints);
        all.try_for_each(|access| self.check(access)).map_err(GatewayError::Access)
    }

    /// Whether the engine has skills for this access; policy may still withhold all of them.
    pub(crate) fn has_skills(&self, access: &Access) -> bool {
        !self.config.engine.skills_of(access.personality.as_deref()).is_empty()
    }

    /// The restrictions of a request without a session.
    ///
    /// # Errors
    /// If a rule depends on what another replica may have noted, and that cannot be read.
    pub(crate) async fn restrictions(&self, access: &Access) -> Result<Restrictions, TurnError> {
        let engine = &self.config.engine;
        let counts = engine.reads_iteration();
        let trusted_for = if engine.reads_restrictions() { Duration::ZERO } else { TRUSTED_FOR };
        let store = self.config.caller_store.as_ref();
        let of_request = self.callers.of_request(store, owner(access), counts, trusted_for);
        let restrictions = of_request.await;
        if restrictions.is_unread && self.config.replicas.is_some() && (counts || engine.may_halt())
        {
            let message = "the restrictions of the caller cannot be read from the store, and a rule halts or \
                reads the number of the iteration";
            let error = DiscoveryError::new(DiscoveryErrorClass::Gate, message);
            return Err(TurnError::Discovery(error));
        }
        Ok(restrictions)
    }

    /// The restrictions of a session that begins, of a client that may have lost another one.
    pub(crate) async fn restrictions_of_session(&self, access: &Access) -> Restrictions {
        self.callers.of_session(self.config.caller_store.as_ref(), owner(access)).await
    }

    /// Notes what restricts a caller from now on. Returns whether other processes know it too.
    pub(crate) async fn note(&self, access: &Access, noted: Noted) -> bool {
        self.callers.note(self.config.caller_store.as_ref(), owner(access), noted).await
    }

    /// Writes what could not be noted before of a caller. Returns whether other processes know all of it.
    pub(crate) async fn save(&self, access: &Access) -> bool {
        self.callers.save(self.config.caller_store.as_ref(), owner(access)).await
    }

    /// Whether a decision or an active skill may depend on earlier calls of a session.
    pub(crate) fn reads_sessions(&self) -> bool {
        let engine = &self.config.engine;
        engine.reads_restrictions() || !engine.skills().is_empty()
    }

    /// Whether texts of a server are fenced for this access.
    pub(crate) fn fences(&self, access: &Access, server: &str) -> bool {
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
    pub(crate) fn is_recording(&self) -> bool {
        self.config.required.as_ref().is_none_or(RequiredLog::is_written)
    }

    /// Counts a request, and writes a line of the access log.
    pub(crate) fn log(&self, mut entry: AccessEntry) {
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
    pub(crate) fn server_instructions(&self, access: &Access, server: &str, text: &str) -> String {
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
    pub(crate) fn instructions(
        &self,
        access: &Access,
        in_session: bool,
        offered: &CombinedOffers,
    ) -> String {
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

impl Shared {
    /// The log message about missing tools, for a client that receives this level and more severe ones.
    pub(crate) fn missing_message(
        &self,
        access: &Access,
        missing: Vec<&MissingTool>,
        least: Option<&str>,
    ) -> Option<Bytes> {
        let name = |tool| self.config.names.of_missing(tool, access.max_name_chars);
        let text = missing::in_words(missing.into_iter(), name)?;
        own_message(least, "warning", "toolcrib", &text)
    }
}
