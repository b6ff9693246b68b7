//! Sessions of several replicas: the id of a session is a seal over its facts, so that each replica can
//! continue it; the changes by its calls are in [`SharedSession`]. Upstream connections are begun again,
//! and streams stay with the replica that has them.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{ProtocolVersion, RequestId},
};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use tokio::{task::spawn_blocking, time::sleep};
use toolcrib_core::{
    __internal::{millis, now_ms},
    ClientAbilities, KvArea, KvError, KvWrite, SessionOwner,
};

use super::{
    handshake::{self, SessionStart},
    sessions::{HttpSession, Sessions, named, no_place, unknown},
};
use crate::{
    access::{Access, Caller, replicas::Replicas},
    client::{
        callers::Noted,
        context::ServeContext,
        sender::ClientSender,
        session::Session,
        shared_session::{LASTS, SharedSession, SharedState, TRUSTED_FOR},
    },
    wire::{
        message::{CANCELLED, Notification},
        reply::Refusal,
    },
};

/// The purpose of a seal.
const PURPOSE: &str = "session";

/// When a client should repeat a request that could not be checked.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Seals the sessions of one token or identity.
pub(crate) struct SealedSessions {
    replicas: Replicas,
    /// The digest of what its sessions may do.
    rights: Arc<str>,
    /// Those that are being continued here, by their ids for clients.
    continued: Mutex<HashMap<Arc<str>, Weak<tokio::sync::Mutex<()>>>>,
}

/// The facts of a session, which do not change.
#[derive(Serialize, Deserialize)]
struct Facts {
    /// The conversation.
    #[serde(rename = "i")]
    id: Arc<str>,
    #[serde(rename = "b")]
    began_ms: u64,
    #[serde(rename = "r")]
    rights: Arc<str>,
    #[serde(rename = "p")]
    protocol: ProtocolVersion,
    #[serde(rename = "c")]
    can: u8,
    /// The endpoint, and the personality with which it began.
    #[serde(rename = "e")]
    menu: [Option<Arc<str>>; 2],
}

impl SealedSessions {
    pub(crate) fn new(replicas: &Replicas, rights: Arc<str>) -> Self {
        Self { replicas: replicas.clone(), rights, continued: Mutex::default() }
    }

    /// The id of a session that begins now, for its client, and the time in milliseconds.
    pub(crate) fn name(&self, session: &Session, caller: &Caller) -> Option<(Arc<str>, u64)> {
        let began_ms = now_ms();
        let facts = Facts {
            id: Arc::clone(&session.id),
            began_ms,
            rights: Arc::clone(&self.rights),
            protocol: session.protocol.clone(),
            can: bits(session.client.abilities),
            menu: menu_of(caller),
        };
        Some((self.replicas.seal(PURPOSE, &facts)?, began_ms))
    }

    /// The facts of a session of the same token or identity, at the endpoint of this caller.
    fn facts(&self, name: &str, caller: &Caller) -> Option<Facts> {
        let facts: Facts = self.replicas.open(PURPOSE, name)?;
        (facts.rights == self.rights && facts.menu[0] == caller.endpoint).then_some(facts)
    }

    /// A lock that the requests share which continue a session.
    fn lock(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut continued = self.continued.lock();
        if let Some(lock) = continued.get(name).and_then(Weak::upgrade) {
            return lock;
        }
        continued.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        continued.insert(name.into(), Arc::downgrade(&lock));
        lock
    }
}

/// A request without a body, or the parts of one, that names a session.
pub(crate) struct SessionRequest<'a> {
    pub(crate) serving: &'a ServeContext,
    pub(crate) caller: &'a Caller,
    pub(crate) sessions: &'a Sessions,
    pub(crate) headers: &'a HeaderMap,
    /// Its id, if it has one.
    pub(crate) id: Option<&'a RequestId>,
    /// Whether it counts as an iteration.
    pub(crate) counts: bool,
}

impl SessionRequest<'_> {
    /// The session, as all replicas know it. That of another replica is continued here.
    ///
    /// # Errors
    /// If it names none (400), one that is unknown or has ended (404), or one of which it is not known (503).
    pub(crate) async fn find(&self) -> Result<Arc<HttpSession>, Refusal> {
        let name = named(self.headers, self.id)?;
        let unknown = || unknown(self.id);
        let here = self.sessions.get(name);
        let Some(sealed) = &self.sessions.sealed else {
            let here = here.ok_or_else(unknown)?;
            if here.is_outdated(self.caller) {
                here.is_lost().await;
            }
            return if here.is_of(self.caller) { Ok(here) } else { Err(unknown()) };
        };
        // Its seal was opened before.
        let here =
            here.filter(|session| session.is_of(self.caller) && !is_over(session.began_ms()));
        let session = match here {
            Some(session) => session,
            None => {
                let facts = sealed.facts(name, self.caller).ok_or_else(unknown)?;
                if is_over(facts.began_ms) || facts.menu != menu_of(self.caller) {
                    self.is_lost(sealed, &facts).await?;
                    return Err(unknown());
                }
                let lock = sealed.lock(name);
                let _one = lock.lock().await;
                match self.sessions.get(name) {
                    Some(session) => session,
                    None => self.continued(sealed, name, facts).await?,
                }
            }
        };
        let Some(begun) = session.connection.session() else { return Err(unknown()) };
        if let Some(shared) = &begun.shared {
            let state = self.state(shared).await.map_err(|error| self.away(&error))?;
            if state.ended {
                self.sessions.close(name);
                return Err(unknown());
            }
            let taken = begun.take_over(&state).await;
            taken.map_err(|error| {
                let told = ErrorData::internal_error(error.caller_text(), None);
                Refusal::of(self.id.cloned(), told).cause(error.to_string())
            })?;
        }
        Ok(session)
    }

    /// Ends the session at all replicas. Those that have read it before have read it again when this returns.
    ///
    /// # Errors
    /// As of [`find`](Self::find).
    pub(crate) async fn end(&self) -> Result<(), Refusal> {
        let name = named(self.headers, self.id)?;
        if let Some(sealed) = &self.sessions.sealed {
            let (id, shared) = self.shared(sealed, name).await?;
            let ended = shared.change(|state| state.ended = true).await;
            ended.map_err(|error| self.away(&error))?;
            self.sessions.close(name);
            self.serving.end_conversation(&self.caller.access, &id).await;
            self.forget(sealed, id);
            sleep(TRUSTED_FOR).await;
            return Ok(());
        }
        let here = self.sessions.get(name).filter(|session| session.is_of(self.caller));
        here.ok_or_else(|| unknown(self.id))?;
        self.sessions.close(name);
        Ok(())
    }

    /// Removes the values that tools have stored for a session. Those that cannot be removed now expire.
    fn forget(&self, sealed: &SealedSessions, conversation: Arc<str>) {
        let store = Arc::clone(sealed.replicas.store());
        let Access { tenant, principal, .. } = &*self.caller.access;
        let owner = SessionOwner { tenant: tenant.clone(), principal: principal.clone() };
        let area = KvArea::Conversation { owner, conversation };
        spawn_blocking(move || {
            for key in store.keys(&area, "").unwrap_or_default() {
                let removal =
                    KvWrite { key: &key, value: None, expected: None, lives_for: Duration::ZERO };
                if store.put(&area, removal).is_err() {
                    break;
                }
            }
        });
    }

    /// Acts on a notification to the session. The cancellation of a request that is not in progress here reaches
    /// the other replicas when they next read the session's row; a session is not continued here for it.
    ///
    /// # Errors
    /// As of [`find`](Self::find).
    pub(crate) async fn notice(&self, notification: Notification) -> Result<(), Refusal> {
        let name = named(self.headers, self.id)?;
        let sealed = self.sessions.sealed.as_ref();
        let is_elsewhere = notification.method == CANCELLED && self.sessions.get(name).is_none();
        let elsewhere = match sealed.filter(|_| is_elsewhere) {
            Some(_) => notification.cancelled(),
            None => self.find().await?.connection.notice(notification),
        };
        if let (Some(sealed), Some(id)) = (sealed, elsewhere) {
            // One after the other: each writes the same row.
            let lock = sealed.lock(name);
            let _one = lock.lock().await;
            let (_, shared) = self.shared(sealed, name).await?;
            shared.cancel(id).await.map_err(|error| self.away(&error))?;
        }
        Ok(())
    }

    /// The id of the conversation and the shared state of a session that has not ended, which need not be continued
    /// here.
    async fn shared(
        &self,
        sealed: &SealedSessions,
        name: &str,
    ) -> Result<(Arc<str>, SharedSession), Refusal> {
        let is_valid =
            |facts: &Facts| !is_over(facts.began_ms) && facts.menu == menu_of(self.caller);
        let facts = sealed.facts(name, self.caller).filter(is_valid);
        let facts = facts.ok_or_else(|| unknown(self.id))?;
        let shared = SharedSession::new(&sealed.replicas, &facts.id);
        let before = shared.read(Duration::ZERO).await.map_err(|error| self.away(&error))?;
        if before.ended {
            self.sessions.close(name);
            return Err(unknown(self.id));
        }
        Ok((facts.id, shared))
    }

    /// The state of the session. One more iteration is counted if a rule depends on their number.
    async fn state(&self, shared: &SharedSession) -> Result<Arc<SharedState>, KvError> {
        let gateway = &self.serving.gateway;
        if self.counts && gateway.config.engine.reads_iteration() {
            return shared
                .change(|state| state.iterations = state.iterations.saturating_add(1))
                .await;
        }
        let is_needed = gateway.reads_sessions();
        shared.read(if is_needed { Duration::ZERO } else { TRUSTED_FOR }).await
    }

    /// Begins a session here that began at another replica.
    async fn continued(
        &self,
        sealed: &SealedSessions,
        name: &str,
        facts: Facts,
    ) -> Result<Arc<HttpSession>, Refusal> {
        let shared = SharedSession::new(&sealed.replicas, &facts.id);
        let state = shared.read(Duration::ZERO).await.map_err(|error| self.away(&error))?;
        if state.ended {
            return Err(unknown(self.id));
        }
        let place = self.sessions.place().await;
        let place = place.map_err(|wait| no_place(self.id, wait))?;
        let session = HttpSession::with_id(facts.id, self.serving, self.caller, place);
        session.is_named(name.into(), facts.began_ms);
        let client = ClientSender::Events(session.common.clone());
        let start =
            SessionStart { connection: &session.connection, client, shared: Some((shared, state)) };
        let (can, mut cause) = (abilities(facts.can), None);
        let begun =
            handshake::begin(self.serving, self.caller, facts.protocol, can, start, &mut cause);
        begun.await.map_err(|error| {
            let refusal = Refusal::of(self.id.cloned(), error);
            let refusal = refusal.status_is(StatusCode::SERVICE_UNAVAILABLE);
            cause.iter().fold(refusal, |refusal, cause| refusal.cause(&**cause))
        })?;
        let (method, params) = ("notifications/initialized".to_owned(), Map::new());
        session.connection.notice(Notification { method, params });
        self.sessions.open(&session);
        Ok(session)
    }

    /// Notes that a session is over whose client may go on in another one, which then has its restrictions.
    async fn is_lost(&self, sealed: &SealedSessions, facts: &Facts) -> Result<(), Refusal> {
        let shared = SharedSession::new(&sealed.replicas, &facts.id);
        let state = shared.read(Duration::ZERO).await.map_err(|error| self.away(&error))?;
        if !state.ended && (state.tainted || state.halted.is_some()) {
            self.serving.gateway.note(&self.caller.access, Noted::Lost).await;
        }
        Ok(())
    }

    /// Without the store it is not known whether the session has ended.
    fn away(&self, error: &KvError) -> Refusal {
        let message =
            "the sessions of this gateway cannot be checked now; send the request again later";
        let refusal = Refusal::of(self.id.cloned(), ErrorData::internal_error(message, None));
        let refusal = refusal.status_is(StatusCode::SERVICE_UNAVAILABLE);
        refusal.retry_after(RETRY_AFTER).cause(format!("the store of the replicas: {error}"))
    }
}

/// The parts of a caller that decide about the menu of its sessions, besides its rights.
fn menu_of(caller: &Caller) -> [Option<Arc<str>>; 2] {
    [caller.endpoint.clone(), caller.access.personality.clone()]
}

/// Whether a session began too long ago.
fn is_over(began_ms: u64) -> bool {
    began_ms.saturating_add(millis(LASTS)) <= now_ms()
}

/// The abilities of a client as bits, in the order of the fields.
fn bits(can: ClientAbilities) -> u8 {
    let mut can = can;
    let all = fields(&mut can).into_iter().enumerate();
    all.fold(0, |bits, (at, field)| bits | (u8::from(*field) << at))
}

fn abilities(bits: u8) -> ClientAbilities {
    let mut can = ClientAbilities::default();
    for (at, field) in fields(&mut can).into_iter().enumerate() {
        *field = bits & (1 << at) != 0;
    }
    can
}

fn fields(can: &mut ClientAbilities) -> [&mut bool; 8] {
    [
        &mut can.elicitation_form,
        &mut can.elicitation_url,
        &mut can.sampling,
        &mut can.sampling_tools,
        &mut can.sampling_context,
        &mut can.roots,
        &mut can.roots_changes,
        &mut can.in_session,
    ]
}
