//! The session of a client: its turn, and the menu that the client knows.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::ProtocolVersion;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::DropGuard;
use toolcrib_core::{
    __internal::now_ms, BoxFuture, CancellationToken, ClientAbilities, ClientPort, ClientRefusal,
    Digest, ErrorCode, Events, Identity, KvError, SkillId, ToolResult, args_digest,
};
use toolcrib_engine::{HaltedByRule, Iteration, MissingTool, Turn, TurnError};
use toolcrib_mcp::McpClient;

use super::{
    callers::{Noted, Restrictions},
    connection::Connection,
    context::{ServeContext, Shared},
    downstream::{Downstream, Route},
    log_messages::LogLevel,
    missing::Told,
    sender::ClientSender,
    servers::{Server, reached},
    shared_session::{SessionMenu, SharedSession, SharedState},
    state::GatewayState,
    subscription::Subscription,
};
use crate::access::Access;

/// A session's turn with one configuration of the gateway.
pub(crate) struct SessionTurn {
    gateway: Weak<Shared>,
    pub(crate) turn_id: Arc<str>,
    /// Locked while an iteration begins; its calls run concurrently with others.
    turn: tokio::sync::Mutex<Turn>,
    /// The menu with which it began, or which it has shared last.
    menu: Mutex<SessionMenu>,
}

/// The state of a session: its turn, and the menu that its client knows.
pub(crate) struct Session {
    /// The conversation of its identity.
    pub(crate) id: Arc<str>,
    /// The negotiated protocol version.
    pub(crate) protocol: ProtocolVersion,
    pub(crate) identity: Arc<Identity>,
    pub(crate) events: Events,
    pub(crate) access: Access,
    serving: Weak<GatewayState>,
    cancellation: CancellationToken,
    /// Its turn, with the configuration of the gateway.
    bound: Mutex<Arc<SessionTurn>>,
    /// The skills that were active last.
    skills: Mutex<Vec<SkillId>>,
    /// The part that its replicas share, if there are several.
    pub(crate) shared: Option<SharedSession>,
    /// The shared state that its turn has.
    taken_over: Mutex<Arc<SharedState>>,
    /// The menu that all replicas have, as far as it is known here.
    menu: Mutex<SessionMenu>,
    /// Whether another replica has changed its menu since its turn began here.
    is_behind: AtomicBool,
    /// The restrictions of its next turn, if the configuration of the gateway is replaced.
    restrictions: Mutex<Restrictions>,
    /// The calls that wait for approval, by the digest of tool and arguments.
    waiting: Mutex<HashSet<Digest>>,
    /// The fingerprint of the menu that the client received last.
    known: Mutex<Option<Digest>>,
    /// The missing tools that the log messages to the client have named.
    told: Mutex<Told>,
    /// The client, as the lists of servers see it.
    pub(crate) client: Arc<Downstream>,
    /// The client's subscriptions to resources, by the URI that it uses.
    pub(crate) subscriptions: Mutex<HashMap<Arc<str>, Subscription>>,
    /// Signals that an action of the session may have changed the menu.
    pub(crate) recheck: Arc<Notify>,
    _ended: DropGuard,
}

impl Session {
    /// Begins a session, or continues that of another replica. The returned token fires when it has ended
    /// here.
    pub(crate) fn begin(
        serving: &ServeContext,
        access: &Access,
        id: &Arc<str>,
        protocol: ProtocolVersion,
        abilities: ClientAbilities,
        restrictions: Restrictions,
        shared: Option<SharedSession>,
    ) -> Result<(Arc<Self>, CancellationToken), TurnError> {
        let events = Events::new();
        let log = Arc::new(LogLevel::new(LogLevel::ALL));
        let client = Arc::new(Downstream {
            key: Arc::as_ptr(&log).addr(),
            abilities,
            meta: Map::new(),
            redactor: serving.gateway.config.engine.redactor().clone(),
            log,
            client: None,
            route: Route::None,
        });
        let mut options = serving
            .gateway
            .turn_options(access, &serving.cancellation)
            .tainted(restrictions.tainted)
            .halted(restrictions.halted.clone())
            .conversation(Arc::clone(id))
            .client(Arc::clone(&client) as Arc<dyn ClientPort>)
            .events(events.clone());
        // Another replica may go on with it.
        options.ends_conversation = shared.is_none();
        options.shares_conversation = shared.is_some();
        options.skills_admitted = shared.as_ref().is_some_and(SharedSession::is_read);
        let turn = serving.gateway.config.engine.turn(options)?;
        let menu = SessionMenu::of(&turn);
        let ended = CancellationToken::new();
        let session = Self {
            id: Arc::clone(id),
            protocol,
            events,
            access: access.clone(),
            serving: Arc::downgrade(&serving.current),
            cancellation: serving.cancellation.clone(),
            identity: Arc::clone(turn.identity()),
            bound: Mutex::new(SessionTurn::new(turn, &serving.gateway)),
            skills: Mutex::new(access.skills.clone()),
            shared,
            taken_over: Mutex::default(),
            menu: Mutex::new(menu),
            is_behind: AtomicBool::new(false),
            restrictions: Mutex::new(restrictions),
            waiting: Mutex::default(),
            known: Mutex::new(None),
            told: Mutex::default(),
            client,
            subscriptions: Mutex::default(),
            recheck: Arc::default(),
            _ended: ended.clone().drop_guard(),
        };
        Ok((Arc::new(session), ended))
    }

    /// The turn with the present configuration of the gateway. Calls of an earlier turn continue.
    fn bound(&self) -> Result<Arc<SessionTurn>, TurnError> {
        let mut bound = self.bound.lock();
        let Some(current) = self.serving.upgrade() else { return Ok(Arc::clone(&bound)) };
        let gateway = current.shared();
        let is_behind = self.is_behind.swap(false, Relaxed);
        if bound.gateway.as_ptr() == Arc::as_ptr(&gateway) && !is_behind {
            return Ok(Arc::clone(&bound));
        }
        let menu = self.menu.lock().clone();
        let begin = |skills: Vec<SkillId>| {
            let before = self.restrictions.lock().clone();
            let mut options = gateway
                .turn_options(&self.access, &self.cancellation)
                .tainted(before.tainted)
                .halted(before.halted)
                .iterations(before.iterations)
                .conversation(Arc::clone(&self.id))
                .revealed(menu.revealed())
                .client(Arc::clone(&self.client) as Arc<dyn ClientPort>)
                .events(self.events.clone());
            options.ends_conversation = self.shared.is_none();
            options.shares_conversation = self.shared.is_some();
            (options.skills, options.skills_admitted) = (skills, true);
            gateway.config.engine.turn(options)
        };
        let mut skills = if is_behind { menu.skills.clone() } else { self.skills.lock().clone() };
        let turn = loop {
            match begin(skills.clone()) {
                Ok(turn) => break turn,
                // A skill may be gone, or not permitted any more. The caller's own ones restrict it.
                Err(error) => match error.skill().filter(|gone| !self.access.skills.contains(gone))
                {
                    Some(gone) if skills.contains(gone) => skills.retain(|skill| skill != gone),
                    _ => {
                        self.is_behind.fetch_or(is_behind, Relaxed);
                        return Err(error);
                    }
                },
            }
        };
        let before = std::mem::replace(&mut *bound, SessionTurn::new(turn, &gateway));
        // A task, because an iteration may be starting in that turn.
        tokio::spawn(async move { before.keep_conversation().await });
        Ok(Arc::clone(&bound))
    }

    /// Takes over what other replicas have noted of it.
    pub(crate) async fn take_over(&self, state: &Arc<SharedState>) -> Result<(), TurnError> {
        if *self.taken_over.lock() == *state {
            return Ok(());
        }
        {
            let mut restrictions = self.restrictions.lock();
            restrictions.tainted |= state.tainted;
            restrictions.halted = restrictions.halted.take().or_else(|| state.halted.clone());
            restrictions.iterations = restrictions.iterations.max(state.iterations);
        }
        state.log.iter().for_each(|level| self.client.log.set(level));
        if let Some(menu) = &state.menu
            && *menu != *self.menu.lock()
        {
            self.menu.lock().clone_from(menu);
            self.is_behind.store(true, Relaxed);
        }
        let bound = self.bound()?;
        // The request of this moment is counted by its own iteration.
        let before = state.iterations.saturating_sub(1);
        bound.turn.lock().await.restrict(state.tainted, state.halted.clone(), before);
        *self.taken_over.lock() = Arc::clone(state);
        Ok(())
    }

    /// Shares with what it began, such as the restrictions of an earlier session of its caller.
    ///
    /// # Errors
    /// A failure of the store.
    pub(crate) async fn share_begun(&self) -> Result<(), KvError> {
        let bound = Arc::clone(&self.bound.lock());
        self.share(&bound).await.map(drop)
    }

    /// Shares what the calls of a turn have changed of it, before the client receives a result. Returns whether
    /// its menu has changed.
    ///
    /// # Errors
    /// A failure of the store: another replica would not know it.
    pub(crate) async fn share(&self, turn: &SessionTurn) -> Result<bool, KvError> {
        let Some(shared) = &self.shared else { return Ok(false) };
        let Restrictions { tainted, halted, .. } = self.restrictions.lock().clone();
        let known = shared.last();
        let now = SessionMenu::of(&*turn.turn.lock().await);
        // Only what this turn has changed: a call at another replica may have changed it too.
        let before = turn.menu.lock().clone();
        let has_changed = now != before;
        if tainted == known.tainted && halted.is_some() == known.halted.is_some() && !has_changed {
            return Ok(false);
        }
        let to = now.clone();
        let change = move |state: &mut SharedState| {
            state.tainted |= tainted;
            state.halted = state.halted.take().or_else(|| halted.clone());
            if has_changed {
                let menu = state.menu.as_ref().unwrap_or(&before);
                state.menu = Some(menu.changed(&before, &to));
            }
        };
        let state = shared.change(change).await?;
        if let (true, Some(menu)) = (has_changed, &state.menu) {
            let is_current = std::ptr::eq(Arc::as_ptr(&self.bound.lock()), turn);
            if *menu != now || !is_current {
                self.is_behind.store(true, Relaxed);
            }
            *turn.menu.lock() = now;
            self.menu.lock().clone_from(menu);
        }
        Ok(has_changed)
    }

    /// Ends this session, whose connection has another one, without ending the conversation.
    pub(crate) async fn give_up(&self) {
        let bound = Arc::clone(&self.bound.lock());
        bound.keep_conversation().await;
    }

    /// Whether something of it waits or runs without a request: a call for approval, or a job.
    pub(crate) fn is_waited_for(&self) -> bool {
        let runs = |current: Arc<GatewayState>| {
            current.shared().config.engine.has_running_work(&self.identity)
        };
        !self.waiting.lock().is_empty() || self.serving.upgrade().is_some_and(runs)
    }

    /// Notes that a call waits for approval, or that it has another result.
    pub(crate) fn settle_approval(&self, result: &ToolResult) {
        let mut waiting = self.waiting.lock();
        let waits = result.code == Some(ErrorCode::AwaitingApproval);
        // Mostly there is none.
        if !waits && waiting.is_empty() {
            return;
        }
        let call = args_digest(&result.name, &result.args);
        match waits {
            true => waiting.insert(call),
            false => waiting.remove(&call),
        };
    }

    /// Notes that the gateway ends it: its client may continue the conversation in another session,
    /// which then has its restrictions.
    pub(crate) async fn is_lost(&self) {
        let restricts = {
            let restrictions = self.restrictions.lock();
            restrictions.tainted || restrictions.halted.is_some()
        };
        if restricts && let Some(current) = self.serving.upgrade() {
            let _ = current.shared().note(&self.access, Noted::Lost).await;
        }
    }

    /// The servers that it reaches.
    pub(crate) async fn servers(&self, all: &[McpClient]) -> Vec<Server> {
        match self.iteration(Purpose::Call("")).await {
            Ok((iteration, _)) => reached(&iteration, &self.identity, all),
            Err(_) => Vec::new(),
        }
    }

    /// Its client, for requests of servers outside of calls. It keeps the connection.
    pub(crate) fn outside(
        self: &Arc<Self>,
        connection: Connection,
        client: ClientSender,
    ) -> SessionClient {
        let Downstream { key, abilities, redactor, log, .. } = &*self.client;
        SessionClient {
            session: Arc::downgrade(self),
            client: Arc::new(Downstream {
                key: *key,
                abilities: *abilities,
                meta: Map::new(),
                redactor: redactor.clone(),
                log: Arc::clone(log),
                client: None,
                route: Route::Outside(connection, client),
            }),
        }
    }

    /// An iteration, and the turn, which must live as long.
    pub(crate) async fn iteration(
        &self,
        purpose: Purpose<'_>,
    ) -> Result<(Iteration, Arc<SessionTurn>), TurnError> {
        let bound = self.bound()?;
        let beginning = bound.turn.lock().await.begin_for(purpose.tool()).await?;
        let number = beginning.number();
        // The turn is unlocked meanwhile: a call does not wait for servers that another request
        // needs.
        let listed = beginning.listed().await;
        let mut turn = bound.turn.lock().await;
        let iteration = turn.offer(listed).await?;
        *self.skills.lock() = iteration.active_skills().to_vec();
        self.restrictions.lock().iterations = number;
        if matches!(purpose, Purpose::Tell) {
            // While the turn is locked: a later check compares with this.
            *self.known() = Some(iteration.menu().fingerprint());
            if turn.iterations() > number {
                // That check may have seen newer lists, and compared them with an older menu.
                self.recheck.notify_one();
            }
        }
        drop(turn);
        Ok((iteration, bound))
    }

    /// Takes over what restricts it from now on. Returns whether the caller's taint, and the halt, are
    /// to be noted.
    pub(crate) fn restrict(
        &self,
        is_untrusted: bool,
        halted: Option<&HaltedByRule>,
    ) -> (bool, bool) {
        let mut restrictions = self.restrictions.lock();
        let note_taint = is_untrusted && restrictions.is_to_be_noted();
        if note_taint {
            restrictions.noted_ms = now_ms();
        }
        restrictions.tainted |= is_untrusted;
        let note_halt = halted.is_some() && restrictions.halted.is_none();
        if note_halt {
            restrictions.halted = halted.cloned();
        }
        (note_taint, note_halt)
    }

    fn known(&self) -> MutexGuard<'_, Option<Digest>> {
        self.known.lock()
    }

    /// Sends a log message about the missing tools that the client was not told of.
    pub(crate) fn tell_missing(
        &self,
        gateway: &Shared,
        missing: &[MissingTool],
        client: &ClientSender,
    ) {
        let untold = self.told.lock().untold(missing);
        let message = gateway.missing_message(&self.access, untold, self.client.log.name());
        message.into_iter().for_each(|message| client.offer(message));
    }

    /// Whether the client's menu differs from the present one, which then counts as announced. A
    /// client that never requested the menu needs no notification.
    /// It receives a log message about missing tools.
    pub(crate) async fn menu_changed(&self, client: &ClientSender) -> bool {
        if self.known().is_none() {
            return false;
        }
        let Ok(bound) = self.bound() else { return false };
        let Ok(beginning) = bound.turn.lock().await.begin_for(None).await else {
            return false;
        };
        let listed = beginning.listed().await;
        // Locked to the end: a menu sent meanwhile is not older than the compared one.
        let mut turn = bound.turn.lock().await;
        let Ok(iteration) = turn.offer(listed).await else {
            return false;
        };
        if let Some(gateway) = bound.gateway.upgrade() {
            self.tell_missing(&gateway, iteration.withheld().missing(), client);
        }
        let menu = iteration.menu().fingerprint();
        let mut known = self.known();
        let changed = known.is_some_and(|known| known != menu);
        if changed {
            *known = Some(menu);
        }
        changed
    }
}

/// A session's client, for requests of servers outside of calls.
pub(crate) struct SessionClient {
    session: Weak<Session>,
    client: Arc<dyn ClientPort>,
}

impl ClientPort for SessionClient {
    fn abilities(&self, server: &str) -> ClientAbilities {
        self.client.abilities(server)
    }

    fn key(&self) -> usize {
        self.client.key()
    }

    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        let (session, client) = (Weak::clone(&self.session), Arc::clone(&self.client));
        Box::pin(async move {
            let gone = || ClientRefusal::failed("the client has gone");
            let answers = {
                let session = session.upgrade().ok_or_else(gone)?;
                // The rules of this moment: they may depend on the active skills.
                let begun = session.iteration(Purpose::Call("")).await;
                let (iteration, _bound) = begun.map_err(|_| gone())?;
                iteration.ruled(&client).request(server, requests)
            };
            answers.await
        })
    }
}

impl SessionTurn {
    fn new(turn: Turn, gateway: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            gateway: Arc::downgrade(gateway),
            turn_id: Arc::clone(turn.turn_id()),
            menu: Mutex::new(SessionMenu::of(&turn)),
            turn: tokio::sync::Mutex::new(turn),
        })
    }

    /// The conversation has another turn.
    async fn keep_conversation(&self) {
        self.turn.lock().await.keep_conversation();
    }
}

/// The purpose of an iteration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// The client receives its menu.
    Tell,
    /// The menu is only checked.
    Look,
    /// A tool of this name is called: only the sources for it are needed.
    Call(&'a str),
}

impl<'a> Purpose<'a> {
    pub(crate) fn tool(self) -> Option<&'a str> {
        match self {
            Self::Tell | Self::Look => None,
            Self::Call(tool) => Some(tool),
        }
    }
}
