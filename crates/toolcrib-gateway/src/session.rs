//! The iteration of a request: of its session's turn, or of a separate one.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};

use rmcp::model::ProtocolVersion;
use serde_json::Map;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio_util::sync::DropGuard;
use toolcrib_core::{CancellationToken, ClientAbilities, ClientPort, Digest, Events, Identity};
use toolcrib_engine::{Iteration, Reveal, Turn, TurnError};

use super::{
    Serving,
    access::Access,
    downstream::{Downstream, LogLevel, Route},
    exchange::{Asked, Era},
    resources::Subscription,
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

/// The state of a session: its turn, and the menu that its client knows.
pub(super) struct Session {
    /// The conversation of its identity.
    pub(super) id: Arc<str>,
    /// The negotiated protocol version.
    pub(super) protocol: ProtocolVersion,
    turn_id: Arc<str>,
    pub(super) identity: Arc<Identity>,
    events: Events,
    /// Locked while an iteration begins; its calls run concurrently with others.
    turn: tokio::sync::Mutex<Turn>,
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
        serving: &Serving,
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
            redactor: serving.gateway.engine.redactor().clone(),
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
        let turn = serving.gateway.engine.turn(options)?;
        let ended = CancellationToken::new();
        let session = Self {
            id: Arc::clone(id),
            protocol,
            turn_id: Arc::clone(turn.turn_id()),
            events,
            identity: Arc::clone(turn.identity()),
            turn: tokio::sync::Mutex::new(turn),
            known: Mutex::new(None),
            client,
            subscriptions: Mutex::default(),
            recheck: Arc::default(),
            _place: place,
            _ended: ended.clone().drop_guard(),
        };
        Ok((Arc::new(session), ended))
    }

    pub(super) async fn iteration(&self, purpose: Purpose<'_>) -> Result<Iteration, TurnError> {
        let beginning = self.turn.lock().await.begin_for(purpose.tool()).await?;
        let number = beginning.number();
        // The turn is unlocked meanwhile: a call does not wait for servers that another request
        // needs.
        let listed = beginning.listed().await;
        let mut turn = self.turn.lock().await;
        let iteration = turn.offer(listed).await?;
        if matches!(purpose, Purpose::Tell) {
            // While the turn is locked: a later check compares with this.
            *self.known() = Some(iteration.menu().fingerprint());
            if turn.iterations() > number {
                // That check may have seen newer lists, and compared them with an older menu.
                self.recheck.notify_one();
            }
        }
        Ok(iteration)
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
        let Ok(beginning) = self.turn.lock().await.begin_for(None).await else {
            return false;
        };
        let listed = beginning.listed().await;
        // Locked to the end: a menu sent meanwhile is not older than the compared one.
        let mut turn = self.turn.lock().await;
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
    _turn: Option<Turn>,
}

impl Asked<'_> {
    /// Begins an iteration: of the session's turn, or of a separate one. In the stateless era only
    /// artifacts are remembered: no skill can be activated, and no found tool stays listed.
    pub(super) async fn step(&self, purpose: Purpose<'_>) -> Result<Step, TurnError> {
        let (serving, access) = (&self.serving, &self.caller.access);
        match &self.era {
            Era::Session(session) => Ok(Step {
                iteration: session.iteration(purpose).await?,
                events: session.events.clone(),
                turn_id: Arc::clone(&session.turn_id),
                identity: Arc::clone(&session.identity),
                _turn: None,
            }),
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
                let mut turn = serving.gateway.engine.turn(options)?;
                let listed = turn.begin_for(purpose.tool()).await?.listed().await;
                let iteration = turn.offer(listed).await?;
                let turn_id = Arc::clone(turn.turn_id());
                let identity = Arc::clone(turn.identity());
                Ok(Step { iteration, events, turn_id, identity, _turn: Some(turn) })
            }
        }
    }
}
