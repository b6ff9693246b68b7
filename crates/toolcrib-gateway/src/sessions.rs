//! The sessions of one HTTP token. Each token has separate sessions, so that a session's id is
//! useless without the token that it was created with.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, interval},
};
use toolcrib_core::CancellationToken;
use uuid::Uuid;

use super::{
    ServeContext,
    changes::Changes,
    connection::Connection,
    events::{Body, EventId, EventStream},
};

/// The idle timeout of a session: the time without a message, and without a request in progress.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// The interval of the search for idle sessions.
const SWEEP: Duration = Duration::from_secs(60);

/// The number of the stream of messages that answer no request.
const COMMON: u64 = 0;

/// The open sessions.
pub(super) struct Sessions {
    places: Arc<Semaphore>,
    open: Mutex<HashMap<Arc<str>, Arc<HttpSession>>>,
}

/// A session over HTTP, and its streams.
pub(super) struct HttpSession {
    pub(super) connection: Connection,
    /// Messages that answer no request.
    pub(super) common: EventStream,
    streams: Mutex<Streams>,
    ended: CancellationToken,
    used: Mutex<Instant>,
}

/// The streams of requests that are still being answered.
#[derive(Default)]
struct Streams {
    last: u64,
    open: HashMap<u64, EventStream>,
}

impl Sessions {
    /// Sessions of a token, at most so many.
    pub(super) fn new(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), open: Mutex::default() }
    }

    /// The number of open sessions.
    pub(super) fn len(&self) -> usize {
        self.open.lock().len()
    }

    /// Ends all sessions.
    pub(super) fn end(&self) {
        for (_, session) in self.open.lock().drain() {
            session.ended.cancel();
        }
    }

    /// A permit for one more session; `None` at the limit.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Opens a session.
    pub(super) fn open(&self, session: &Arc<HttpSession>) {
        self.open.lock().insert(Arc::clone(session.connection.id()), Arc::clone(session));
    }

    /// An open session, which is in use now.
    pub(super) fn get(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.open.lock().get(id).cloned()?;
        *session.used.lock() = Instant::now();
        Some(session)
    }

    /// Ends a session, its calls and its streams; false if it is unknown.
    pub(super) fn close(&self, id: &str) -> bool {
        let closed = self.open.lock().remove(id);
        closed.is_some_and(|session| {
            session.ended.cancel();
            true
        })
    }

    /// Ends idle sessions, as long as this is polled.
    pub(super) async fn end_idle(&self) {
        let mut sweeps = interval(SWEEP);
        loop {
            let now = sweeps.tick().await;
            self.open.lock().retain(|_, session| {
                let is_idle = session.is_idle(now);
                if is_idle {
                    session.ended.cancel();
                }
                !is_idle
            });
        }
    }
}

impl HttpSession {
    /// A session without requests, which ends at the latest with serving.
    pub(super) fn new(serving: &ServeContext) -> Arc<Self> {
        Self::of(serving.current.changes(), serving.cancellation.child_token())
    }

    fn of(changes: Changes, ended: CancellationToken) -> Arc<Self> {
        let id = Uuid::new_v4().to_string().into();
        Arc::new(Self {
            // It ends because its client ended it, or was idle for too long.
            connection: Connection::new(id, changes, ended.clone(), Duration::ZERO),
            common: EventStream::new(Some(COMMON), Some(ended.clone())),
            streams: Mutex::default(),
            ended,
            used: Mutex::new(Instant::now()),
        })
    }

    /// Opens the stream of a request. It ends with its response, which also the end of the session
    /// brings about.
    pub(super) fn open_stream(self: &Arc<Self>) -> OpenStream {
        let mut streams = self.streams.lock();
        streams.last += 1;
        let number = streams.last;
        let events = EventStream::new(Some(number), None);
        streams.open.insert(number, events.clone());
        OpenStream { session: Arc::clone(self), number, events }
    }

    /// The body for a client that comes back to a stream; `None` if it has ended.
    pub(super) fn resume(&self, last: &EventId, expires: Option<Instant>) -> Option<Body> {
        if last.stream == COMMON {
            return Some(self.common.body_after(last.number, false, expires));
        }
        let streams = self.streams.lock();
        streams.open.get(&last.stream).map(|events| events.body_after(last.number, true, expires))
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
pub(super) struct OpenStream {
    session: Arc<HttpSession>,
    number: u64,
    pub(super) events: EventStream,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.session.streams.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::RequestId;

    use super::*;

    const NEARLY: Duration = Duration::from_secs(29 * 60);

    fn opened(sessions: &Sessions) -> Arc<HttpSession> {
        let session = HttpSession::of(Changes::default(), CancellationToken::new());
        sessions.open(&session);
        session
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_its_client_was_silent_for_half_an_hour() {
        let sessions = Arc::new(Sessions::new(3));
        let sweeps = tokio::spawn({
            let sessions = Arc::clone(&sessions);
            async move { sessions.end_idle().await }
        });
        let (used, busy, silent) = (opened(&sessions), opened(&sessions), opened(&sessions));
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
