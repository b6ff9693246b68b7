//! Where a request's iteration comes from: the turn of its session, or one of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::ProtocolVersion;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio_util::sync::DropGuard;
use toolcrib_core::{CancellationToken, Digest, Events};
use toolcrib_engine::{Iteration, IterationError, Turn, TurnError};

use super::{Serving, access::Access};

/// The conversation of the requests of the stateless era: what is kept of one caller's results can be read
/// by later requests of the same caller. Who acts belongs to it, since another personality may reach
/// less.
fn stateless(access: &Access) -> String {
    match &access.personality {
        Some(personality) => format!("stateless {personality}"),
        None => "stateless".to_owned(),
    }
}

/// What a session remembers: its turn, and what its client knows of the menu.
pub(super) struct Session {
    /// The conversation of its identity.
    pub(super) id: Arc<str>,
    /// What its client and it have agreed on.
    pub(super) protocol: ProtocolVersion,
    run_id: Arc<str>,
    events: Events,
    /// Locked while an iteration begins; its calls run beside those of others.
    turn: tokio::sync::Mutex<Turn>,
    /// The fingerprint of the menu that the client was last told of.
    known: Mutex<Option<Digest>>,
    /// That the menu may be another one because of something that the session did.
    pub(super) recheck: Arc<Notify>,
    _place: Option<OwnedSemaphorePermit>,
    _ended: DropGuard,
}

impl Session {
    /// Begins a session. The token that comes with it fires when it is gone.
    pub(super) fn begin(
        serving: &Serving,
        access: &Access,
        id: &Arc<str>,
        protocol: ProtocolVersion,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<(Arc<Self>, CancellationToken), TurnError> {
        let events = Events::new();
        let options = serving
            .gateway
            .turn_options(access, &serving.cancellation)
            .conversation(Arc::clone(id))
            .ends_conversation()
            .events(events.clone());
        let turn = serving.gateway.engine.turn(options)?;
        let ended = CancellationToken::new();
        let session = Self {
            id: Arc::clone(id),
            protocol,
            run_id: Arc::clone(turn.run_id()),
            events,
            turn: tokio::sync::Mutex::new(turn),
            known: Mutex::new(None),
            recheck: Arc::default(),
            _place: place,
            _ended: ended.clone().drop_guard(),
        };
        Ok((Arc::new(session), ended))
    }

    async fn iteration(&self, purpose: Purpose<'_>) -> Result<Iteration, IterationError> {
        let beginning = self.turn.lock().await.begin_for(purpose.tool()).await?;
        let number = beginning.number();
        // The turn is free meanwhile: a call does not wait for servers that another request needs.
        let listed = beginning.listed().await;
        let mut turn = self.turn.lock().await;
        let iteration = turn.offer(listed).await?;
        if matches!(purpose, Purpose::Tell) {
            // While the turn is locked: a look that comes later compares with this.
            *self.known() = Some(iteration.menu().fingerprint());
            if turn.iterations() > number {
                // That one may have seen newer lists, and compared them with an older menu.
                self.recheck.notify_one();
            }
        }
        Ok(iteration)
    }

    fn known(&self) -> MutexGuard<'_, Option<Digest>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client knows another menu than there is, which it then counts as told of. A
    /// client that never asked for the menu knows none, and there is nothing to tell it.
    pub(super) async fn menu_changed(&self) -> bool {
        if self.known().is_none() {
            return false;
        }
        let Ok(beginning) = self.turn.lock().await.begin_for(None).await else {
            return false;
        };
        let listed = beginning.listed().await;
        // Locked to the end: what the client is told of meanwhile is not older than what is compared.
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

/// What an iteration is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// The client is told its menu, and knows it from then on.
    Tell,
    /// The menu is only looked at.
    Look,
    /// A tool of this name is called: only what decides on it is needed.
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

/// Where a request's iteration comes from.
pub(super) enum Scope {
    /// An era with sessions.
    Session(Arc<Session>),
    /// The stateless era: nothing is remembered but artifacts, and nothing can be activated.
    Request(Serving, Arc<Access>),
}

/// An iteration, and what lives as long.
pub(super) struct Step {
    pub(super) iteration: Iteration,
    /// Where to listen to it.
    pub(super) events: Events,
    pub(super) run_id: Arc<str>,
    pub(super) session: Option<Arc<Session>>,
    /// Dropping it would cancel the iteration's calls.
    _turn: Option<Turn>,
}

/// An iteration that did not begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(transparent)]
    Iteration(#[from] IterationError),
}

impl Scope {
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Session(session) => Some(session),
            Self::Request(..) => None,
        }
    }

    /// Begins an iteration.
    pub(super) async fn step(&self, purpose: Purpose<'_>) -> Result<Step, StepError> {
        match self {
            Self::Session(session) => Ok(Step {
                iteration: session.iteration(purpose).await?,
                events: session.events.clone(),
                run_id: Arc::clone(&session.run_id),
                session: Some(Arc::clone(session)),
                _turn: None,
            }),
            Self::Request(serving, access) => {
                let events = Events::new();
                let options = serving
                    .gateway
                    .turn_options(access, &serving.cancellation)
                    .conversation(stateless(access))
                    .without_read_skill()
                    .events(events.clone());
                let mut turn = serving.gateway.engine.turn(options)?;
                let listed = turn.begin_for(purpose.tool()).await?.listed().await;
                let iteration = turn.offer(listed).await?;
                let run_id = Arc::clone(turn.run_id());
                Ok(Step { iteration, events, run_id, session: None, _turn: Some(turn) })
            }
        }
    }
}
