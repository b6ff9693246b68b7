//! The sessions of one HTTP token. Each token has separate sessions, so that a session's id is
//! useless without the token that it was created with.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use rmcp::{ErrorData, model::RequestId};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, interval},
};
use toolcrib_core::CancellationToken;
use uuid::Uuid;

use super::sealed::SealedSessions;
use crate::{
    access::{Caller, replicas::Replicas},
    client::{changes::Changes, connection::Connection, context::ServeContext},
    wire::{
        events::{Body, EventId, EventStream},
        headers::{SESSION, single},
        reply::Refusal,
    },
};

/// The limit of open sessions over HTTP. Each token has an equal share of them, of at least 16.
pub const MAX_SESSIONS: usize = 1024;

/// The idle timeout of a session: the time without a message, and without a request in progress.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// How long a session without any request stays, even if its token needs its place.
const RECENTLY: Duration = Duration::from_secs(30);

/// How long a client should wait for a place if all sessions are in use.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The interval of the search for idle sessions.
const SWEEP: Duration = Duration::from_secs(60);

/// How often sessions with a request in progress are read: they may have ended at another replica, and their
/// requests may have been cancelled there.
const LOOK: Duration = Duration::from_secs(2);

/// All sessions are read each time that this number of looks has passed: once a minute.
const LOOKS_AT_ALL: u64 = 30;

/// The number of the stream of messages that answer no request.
const COMMON: u64 = 0;

/// The open sessions.
pub(crate) struct Sessions {
    places: Arc<Semaphore>,
    open: Mutex<HashMap<Arc<str>, Arc<HttpSession>>>,
    /// Continues those of other replicas, if there are some.
    pub(crate) sealed: Option<SealedSessions>,
}

/// A session over HTTP, and its streams.
pub(crate) struct HttpSession {
    pub(crate) connection: Connection,
    /// Its id for the client, if that is not the id of the conversation, and when it began, in milliseconds since
    /// 1970.
    name: OnceLock<(Arc<str>, u64)>,
    /// Messages that answer no request.
    pub(crate) common: EventStream,
    streams: Mutex<Streams>,
    ended: CancellationToken,
    used: Mutex<Instant>,
    /// The endpoint at which it began, and the only one at which it can be used.
    endpoint: Option<Arc<str>>,
    /// Its permit, until it ends.
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

/// The streams of requests that are still being answered.
struct Streams {
    /// The number of the newest. With several replicas, the first one is random.
    last: u64,
    open: HashMap<u64, EventStream>,
}

impl Sessions {
    /// Sessions of a token, at most this number.
    pub(crate) fn new(most: usize, sealed: Option<SealedSessions>) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), open: Mutex::default(), sealed }
    }

    /// Whether a call of a session waits for its client.
    pub(crate) fn wait_for_clients(&self) -> bool {
        self.open.lock().values().any(|session| session.connection.waits_for_client())
    }

    /// The number of open sessions.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }

    /// Ends all sessions, whose token is not valid any more.
    pub(crate) fn end(&self) {
        for (_, session) in self.open.lock().drain() {
            session.end();
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(async move { session.is_lost().await });
            }
        }
    }

    /// A permit for one more session. At the limit, it is that of the session which was idle longest,
    /// and which ends: a client that reconnects without an end of its sessions is not locked out.
    ///
    /// # Errors
    /// If all are in use: the time after which one may not be any more.
    pub(crate) async fn place(&self) -> Result<OwnedSemaphorePermit, Duration> {
        loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                return Ok(place);
            }
            let Some(idle) = self.idle_longest()? else { return Err(RETRY_AFTER) };
            // Before it ends: its client may come back at once.
            self.forgets(&idle).await;
            let place = {
                let mut open = self.open.lock();
                // It may have been used meanwhile, or has ended.
                let is_idle = open.contains_key(idle.name())
                    && idle.time_until_idle(Instant::now()).is_some_and(|time| time.is_zero());
                is_idle.then(|| open.remove(idle.name()))
            };
            if let Some(place) = place.flatten().and_then(|session| session.end()) {
                return Ok(place);
            }
        }
    }

    /// The session that was idle longest; `None` if all are in use for an unknown time.
    ///
    /// # Errors
    /// If none was idle for long enough: the time until one is.
    fn idle_longest(&self) -> Result<Option<Arc<HttpSession>>, Duration> {
        let now = Instant::now();
        let open = self.open.lock();
        let times = open.values().filter_map(|session| {
            let time = session.time_until_idle(now)?;
            Some((time, *session.used.lock(), session))
        });
        match times.min_by_key(|(time, used, _)| (*time, *used)) {
            None => Ok(None),
            Some((time, _, session)) if time.is_zero() => Ok(Some(Arc::clone(session))),
            Some((time, ..)) => Err(time),
        }
    }

    /// Notes that this process ends a session, unless another replica can continue it.
    async fn forgets(&self, session: &HttpSession) {
        if self.sealed.is_none() {
            session.is_lost().await;
        }
    }

    /// Opens a session.
    pub(crate) fn open(&self, session: &Arc<HttpSession>) {
        self.open.lock().insert(Arc::clone(session.name()), Arc::clone(session));
    }

    /// An open session, which is in use now.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<HttpSession>> {
        let open = self.open.lock();
        let session = open.get(id).cloned()?;
        // While the others are locked: it is not ended to make room after this.
        *session.used.lock() = Instant::now();
        drop(open);
        Some(session)
    }

    /// Ends a session, its calls and its streams; false if it is unknown.
    pub(crate) fn close(&self, id: &str) -> bool {
        let closed = self.open.lock().remove(id);
        closed.is_some_and(|session| {
            session.end();
            true
        })
    }

    /// Ends sessions that have ended at another replica, and cancels requests that were cancelled there, as long as
    /// this is polled.
    pub(crate) async fn follow(&self, serving: &ServeContext) {
        let mut looks = interval(LOOK);
        for look in 0_u64.. {
            looks.tick().await;
            let is_due = |session: &&Arc<HttpSession>| {
                look.is_multiple_of(LOOKS_AT_ALL) || session.connection.is_busy()
            };
            let due: Vec<_> = self.open.lock().values().filter(is_due).cloned().collect();
            for session in due {
                let Some(begun) = session.connection.session() else { continue };
                let Some(shared) = &begun.shared else { continue };
                match shared.read(LOOK).await {
                    Ok(state) if state.ended => {
                        self.close(session.name());
                        serving.fresh().end_conversation(&begun.access, &begun.id).await;
                    }
                    Ok(state) => state.cancelled().for_each(|(id, number)| {
                        session.connection.cancel(id, number);
                    }),
                    // Without the store, none is known to have ended.
                    Err(_) => break,
                }
            }
        }
    }

    /// Ends idle sessions, as long as this is polled.
    pub(crate) async fn end_idle(&self) {
        let mut sweeps = interval(SWEEP);
        loop {
            let now = sweeps.tick().await;
            let is_idle = |session: &&Arc<HttpSession>| session.is_idle(now);
            let idle: Vec<_> = self.open.lock().values().filter(is_idle).cloned().collect();
            for session in &idle {
                // Before it ends: its client may come back at once.
                self.forgets(session).await;
            }
            self.open.lock().retain(|_, session| {
                let is_idle = session.is_idle(now);
                if is_idle {
                    session.end();
                }
                !is_idle
            });
        }
    }
}

impl HttpSession {
    /// A session without requests, which ends at the latest with serving.
    pub(crate) fn new(
        serving: &ServeContext,
        caller: &Caller,
        place: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        Self::with_id(Uuid::new_v4().to_string().into(), serving, caller, place)
    }

    /// The same with the id of a conversation.
    pub(crate) fn with_id(
        id: Arc<str>,
        serving: &ServeContext,
        caller: &Caller,
        place: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        let replicas = serving.gateway.config.replicas.clone();
        let ended = serving.cancellation.child_token();
        let endpoint = caller.endpoint.clone();
        Self::of((id, replicas), serving.current.changes(), ended, endpoint, place)
    }

    fn of(
        (id, replicas): (Arc<str>, Option<Replicas>),
        changes: Changes,
        ended: CancellationToken,
        endpoint: Option<Arc<str>>,
        place: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        // A client that comes back to a stream at another replica gets none of another request.
        let last = replicas.as_ref().map_or(0, |_| Uuid::new_v4().as_u64_pair().0 >> 1);
        let streams = Streams { last, open: HashMap::new() };
        // It ends because its client ended it, or was idle for too long.
        let connection = Connection::new(id, changes, ended.clone(), Duration::ZERO, replicas);
        Arc::new(Self {
            connection,
            name: OnceLock::new(),
            common: EventStream::new(Some(COMMON), Some(ended.clone())),
            streams: Mutex::new(streams),
            ended,
            used: Mutex::new(Instant::now()),
            endpoint,
            place: Mutex::new(Some(place)),
        })
    }

    /// Its id for the client.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.name.get().map_or_else(|| self.connection.id(), |(name, _)| name)
    }

    /// Sets its id for the client, and when it began, before it is opened.
    pub(crate) fn is_named(&self, name: Arc<str>, began_ms: u64) {
        let _ = self.name.set((name, began_ms));
    }

    /// When a session with a separate id for the client began.
    pub(crate) fn began_ms(&self) -> u64 {
        self.name.get().map_or(0, |(_, began_ms)| *began_ms)
    }

    /// Opens the stream of a request. It ends with its response, which also the end of the session
    /// brings about.
    pub(crate) fn open_stream(self: &Arc<Self>) -> OpenStream {
        let mut streams = self.streams.lock();
        streams.last += 1;
        let number = streams.last;
        let events = EventStream::new(Some(number), None);
        streams.open.insert(number, events.clone());
        OpenStream { session: Arc::clone(self), number, events }
    }

    /// The body for a client that comes back to a stream; `None` if it has ended.
    pub(crate) fn resume(&self, last: &EventId, expires: Option<Instant>) -> Option<Body> {
        if last.stream == COMMON {
            return Some(self.common.body_after(last.number, false, expires));
        }
        let streams = self.streams.lock();
        streams.open.get(&last.stream).map(|events| events.body_after(last.number, true, expires))
    }

    /// Whether a request may use it: one to its endpoint, while that has the menu with which it began.
    pub(crate) fn is_of(&self, caller: &Caller) -> bool {
        let began = self.connection.session().map(|session| &session.access.personality);
        self.endpoint == caller.endpoint
            && began.is_none_or(|personality| *personality == caller.access.personality)
    }

    /// Whether its endpoint has another menu by now: it cannot be used any more, and its client begins another
    /// one.
    pub(super) fn is_outdated(&self, caller: &Caller) -> bool {
        self.endpoint == caller.endpoint && !self.is_of(caller)
    }

    /// Ends it. Returns the permit of its place.
    fn end(&self) -> Option<OwnedSemaphorePermit> {
        self.ended.cancel();
        self.place.lock().take()
    }

    /// The time after which it may be ended to make room: none if it is idle for long enough, and
    /// `None` while something of it runs or waits, whose end is not known.
    fn time_until_idle(&self, now: Instant) -> Option<Duration> {
        let is_needed = self.connection.is_busy()
            || self.connection.waits_for_client()
            || self.common.is_read()
            || !self.streams.lock().open.is_empty()
            || self.connection.session().is_some_and(|session| session.is_waited_for());
        let idle = now.saturating_duration_since(*self.used.lock());
        (!is_needed).then(|| RECENTLY.saturating_sub(idle))
    }

    /// Notes that the gateway ends it, and not its client.
    pub(super) async fn is_lost(&self) {
        if let Some(session) = self.connection.session() {
            session.is_lost().await;
        }
    }

    fn is_idle(&self, now: Instant) -> bool {
        let mut used = self.used.lock();
        if self.connection.is_busy() {
            *used = now;
        }
        now.saturating_duration_since(*used) >= IDLE
    }
}

/// A stream to which a client can come back until this is dropped.
pub(crate) struct OpenStream {
    session: Arc<HttpSession>,
    number: u64,
    pub(crate) events: EventStream,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.session.streams.lock().open.remove(&self.number);
    }
}

/// The session id that a request names.
///
/// # Errors
/// If it names none (400).
pub(crate) fn named<'a>(
    headers: &'a HeaderMap,
    id: Option<&RequestId>,
) -> Result<&'a str, Refusal> {
    let refused = |error| Refusal::of(id.cloned(), error);
    single(headers, &SESSION).map_err(refused)?.ok_or_else(|| {
        let message = "a session is needed: send `initialize` first, and then the header \
            `mcp-session-id` of its response";
        refused(ErrorData::invalid_request(message, None))
    })
}

/// The refusal of a session that is unknown or has ended.
pub(crate) fn unknown(id: Option<&RequestId>) -> Refusal {
    let message = "Session not found: it has ended; begin another one with `initialize`";
    let error = ErrorData::invalid_request(message, None);
    Refusal::of(id.cloned(), error).status_is(StatusCode::NOT_FOUND)
}

/// All sessions of the token are in use.
pub(crate) fn no_place(id: Option<&RequestId>, wait: Duration) -> Refusal {
    let message = "this token has reached its limit of open sessions, and all are in use; end one \
        with DELETE, or try later";
    let refusal = Refusal::of(id.cloned(), ErrorData::internal_error(message, None));
    refusal.status_is(StatusCode::SERVICE_UNAVAILABLE).retry_after(wait)
}

#[cfg(test)]
mod tests {
    use rmcp::model::RequestId;

    use super::*;

    const NEARLY: Duration = Duration::from_secs(29 * 60);

    fn session(place: OwnedSemaphorePermit) -> Arc<HttpSession> {
        let id = (Uuid::new_v4().to_string().into(), None);
        HttpSession::of(id, Changes::default(), CancellationToken::new(), None, place)
    }

    async fn opened(sessions: &Sessions) -> Arc<HttpSession> {
        let session = session(sessions.place().await.unwrap());
        sessions.open(&session);
        session
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_limit_the_session_that_was_idle_longest_makes_room_and_none_in_use() {
        let sessions = Sessions::new(5, None);
        let busy = opened(&sessions).await;
        let _call = busy.connection.register(&RequestId::Number(1), CancellationToken::new());
        let streaming = opened(&sessions).await;
        let _stream = streaming.open_stream();
        let listening = opened(&sessions).await;
        let body = listening.common.body_until(None);
        let (older, newer) = (opened(&sessions).await, opened(&sessions).await);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(sessions.get(newer.connection.id()).is_some());
        assert_eq!(sessions.place().await.unwrap_err(), Duration::from_secs(20));
        tokio::time::sleep(Duration::from_secs(20)).await;
        let place = sessions.place().await.unwrap();
        assert!(older.ended.is_cancelled() && sessions.get(older.connection.id()).is_none());
        assert_eq!(sessions.place().await.unwrap_err(), Duration::from_secs(10));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let second = sessions.place().await.unwrap();
        assert!(newer.ended.is_cancelled());
        assert_eq!(
            sessions.place().await.unwrap_err(),
            RETRY_AFTER,
            "the end of a call is unknown"
        );
        drop(body);
        assert!(sessions.place().await.is_ok(), "nothing reads the stream any more");
        assert!(![&busy, &streaming].iter().any(|session| session.ended.is_cancelled()));
        drop((place, second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_is_closed_makes_room_at_once() {
        let sessions = Sessions::new(1, None);
        let closed = opened(&sessions).await;
        assert!(sessions.place().await.is_err());
        sessions.close(closed.connection.id());
        assert!(sessions.place().await.is_ok(), "although a stream of it may still be read");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_its_client_was_silent_for_half_an_hour() {
        let sessions = Arc::new(Sessions::new(3, None));
        let sweeps = tokio::spawn({
            let sessions = Arc::clone(&sessions);
            async move { sessions.end_idle().await }
        });
        let (used, busy) = (opened(&sessions).await, opened(&sessions).await);
        let silent = opened(&sessions).await;
        let long = busy.connection.register(&RequestId::Number(1), CancellationToken::new());
        for _ in 0..3 {
            tokio::time::sleep(NEARLY).await;
            assert!(sessions.get(used.connection.id()).is_some());
        }
        silent.connection.gone().await;
        assert!(sessions.get(silent.connection.id()).is_none());
        assert!(!busy.ended.is_cancelled());
        drop(long);
        tokio::time::sleep(IDLE * 2).await;
        assert!(used.ended.is_cancelled() && busy.ended.is_cancelled());
        sweeps.abort();
    }
}
