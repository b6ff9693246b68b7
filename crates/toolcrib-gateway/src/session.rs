//! The iteration of a request: of its session's turn, or of a separate one.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, MutexGuard};

use rmcp::model::ProtocolVersion;
use serde_json::{Map, Value};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio_util::sync::DropGuard;
use toolcrib_core::{
    BoxFuture, CancellationToken, ClientAbilities, ClientPort, ClientRefusal, Digest, Events,
    Identity, SkillId,
};
use toolcrib_engine::{Iteration, Reveal, Turn, TurnError};
use toolcrib_mcp::McpClient;

use super::{
    ServeContext, Shared,
    access::Access,
    connection::Connection,
    downstream::{Downstream, LogLevel, Route},
    exchange::{ClientSender, Era, RequestContext},
    generation::GatewayState,
    resources::Subscription,
    servers::{Server, reached},
};

/// The conversation of requests in the stateless era: artifacts of one caller's results can be read
/// by later requests of the same caller. The personality is part of it, since another one may have
/// less access.
fn stateless(access: &Access) -> String {
    match &access.personality {
        Some(personality) => format!("stateless {personality}"),
        None => "stateless".to_owned(),
    }
}

/// A session's turn with one configuration of the gateway.
pub(super) struct SessionTurn {
    gateway: Weak<Shared>,
    turn_id: Arc<str>,
    /// Locked while an iteration begins; its calls run concurrently with others.
    turn: tokio::sync::Mutex<Turn>,
}

/// The state of a session: its turn, and the menu that its client knows.
pub(super) struct Session {
    /// The conversation of its identity.
    pub(super) id: Arc<str>,
    /// The negotiated protocol version.
    pub(super) protocol: ProtocolVersion,
    pub(super) identity: Arc<Identity>,
    events: Events,
    access: Access,
    serving: Weak<GatewayState>,
    cancellation: CancellationToken,
    /// Its turn, with the configuration of the gateway.
    bound: Mutex<Arc<SessionTurn>>,
    /// The skills that were active last.
    skills: Mutex<Vec<SkillId>>,
    /// The fingerprint of the menu that the client received last.
    known: Mutex<Option<Digest>>,
    /// The client, as the lists of servers see it.
    pub(super) client: Arc<Downstream>,
    /// The client's subscriptions to resources, by the URI that it uses.
    pub(super) subscriptions: Mutex<HashMap<Arc<str>, Subscription>>,
    /// Signals that an action of the session may have changed the menu.
    pub(super) recheck: Arc<Notify>,
    _place: Option<OwnedSemaphorePermit>,
    _ended: DropGuard,
}

impl Session {
    /// Begins a session. The returned token fires when it has ended.
    pub(super) fn begin(
        serving: &ServeContext,
        access: &Access,
        id: &Arc<str>,
        protocol: ProtocolVersion,
        abilities: ClientAbilities,
        place: Option<OwnedSemaphorePermit>,
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
        let options = serving
            .gateway
            .turn_options(access, &serving.cancellation)
            .conversation(Arc::clone(id))
            .ends_conversation()
            .client(Arc::clone(&client) as Arc<dyn ClientPort>)
            .events(events.clone());
        let turn = serving.gateway.config.engine.turn(options)?;
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
            known: Mutex::new(None),
            client,
            subscriptions: Mutex::default(),
            recheck: Arc::default(),
            _place: place,
            _ended: ended.clone().drop_guard(),
        };
        Ok((Arc::new(session), ended))
    }

    /// The turn with the present configuration of the gateway. Calls of an earlier turn continue.
    fn bound(&self) -> Result<Arc<SessionTurn>, TurnError> {
        let mut bound = self.bound.lock();
        let Some(current) = self.serving.upgrade() else { return Ok(Arc::clone(&bound)) };
        let gateway = current.shared();
        if bound.gateway.as_ptr() == Arc::as_ptr(&gateway) {
            return Ok(Arc::clone(&bound));
        }
        let begin = |skills: Vec<SkillId>| {
            let mut options = gateway
                .turn_options(&self.access, &self.cancellation)
                .conversation(Arc::clone(&self.id))
                .ends_conversation()
                .client(Arc::clone(&self.client) as Arc<dyn ClientPort>)
                .events(self.events.clone());
            options.skills = skills;
            gateway.config.engine.turn(options)
        };
        // A skill may be gone, or not permitted any more.
        let turn = begin(self.skills.lock().clone());
        let turn = turn.or_else(|_| begin(self.access.skills.clone()))?;
        let before = std::mem::replace(&mut *bound, SessionTurn::new(turn, &gateway));
        // A task, because an iteration may be starting in that turn.
        tokio::spawn(async move { before.keep_conversation().await });
        Ok(Arc::clone(&bound))
    }

    /// Ends this session, whose connection has another one, without ending the conversation.
    pub(super) async fn give_up(&self) {
        let bound = Arc::clone(&self.bound.lock());
        bound.keep_conversation().await;
    }

    /// The servers that it reaches.
    pub(super) async fn servers(&self, all: &[McpClient]) -> Vec<Server> {
        match self.iteration(Purpose::Call("")).await {
            Ok((iteration, _)) => reached(&iteration, &self.identity, all),
            Err(_) => Vec::new(),
        }
    }

    /// Its client, for requests of servers outside of calls. It keeps the connection.
    pub(super) fn outside(
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
    pub(super) async fn iteration(
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

    fn known(&self) -> MutexGuard<'_, Option<Digest>> {
        self.known.lock()
    }

    /// Whether the client's menu differs from the present one, which then counts as announced. A
    /// client that never requested the menu needs no notification.
    pub(super) async fn menu_changed(&self) -> bool {
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
pub(super) struct SessionClient {
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
pub(super) enum Purpose<'a> {
    /// The client receives its menu.
    Tell,
    /// The menu is only checked.
    Look,
    /// A tool of this name is called: only the sources for it are needed.
    Call(&'a str),
}

impl<'a> Purpose<'a> {
    fn tool(self) -> Option<&'a str> {
        match self {
            Self::Tell | Self::Look => None,
            Self::Call(tool) => Some(tool),
        }
    }
}

/// An iteration, and the values that must live as long.
pub(super) struct Step {
    pub(super) iteration: Iteration,
    /// Its events.
    pub(super) events: Events,
    pub(super) turn_id: Arc<str>,
    pub(super) identity: Arc<Identity>,
    /// Dropping it would cancel the iteration's calls.
    _turn: OwnTurn,
}

/// The turn of a step.
enum OwnTurn {
    Session { _bound: Arc<SessionTurn> },
    Request { _turn: Box<Turn> },
}

impl RequestContext<'_> {
    pub(super) async fn step(&self, purpose: Purpose<'_>) -> Result<Step, TurnError> {
        self.step_of(&self.serving, purpose).await
    }

    /// Begins an iteration: of the session's turn, or of a separate one. In the stateless era only
    /// artifacts are remembered: no skill can be activated, and no found tool stays listed.
    pub(super) async fn step_of(
        &self,
        serving: &ServeContext,
        purpose: Purpose<'_>,
    ) -> Result<Step, TurnError> {
        let access = &self.caller.access;
        match &self.era {
            Era::Session(session) => {
                let (iteration, bound) = session.iteration(purpose).await?;
                Ok(Step {
                    iteration,
                    events: session.events.clone(),
                    turn_id: Arc::clone(&bound.turn_id),
                    identity: Arc::clone(&session.identity),
                    _turn: OwnTurn::Session { _bound: bound },
                })
            }
            Era::Stateless(_) => {
                let events = Events::new();
                let options = serving
                    .gateway
                    .turn_options(access, &serving.cancellation)
                    .conversation(stateless(access))
                    .without_read_skill()
                    .reveal(Reveal::CallTool)
                    .client(Arc::clone(self.port))
                    .events(events.clone());
                let mut turn = serving.gateway.config.engine.turn(options)?;
                let listed = turn.begin_for(purpose.tool()).await?.listed().await;
                let iteration = turn.offer(listed).await?;
                let turn_id = Arc::clone(turn.turn_id());
                let identity = Arc::clone(turn.identity());
                let turn = OwnTurn::Request { _turn: Box::new(turn) };
                Ok(Step { iteration, events, turn_id, identity, _turn: turn })
            }
        }
    }
}
