//! The requests of one client: their ids, their number, and their order.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rmcp::{ErrorData, model::RequestId};
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use toolcrib_core::{CancellationToken, ClientRefusal};

use super::{changes::Changes, sender::ClientSender, session::Session};
use crate::{
    access::replicas::{OtherReplica, Replicas},
    wire::message::{CANCELLED, Notification, Response, notification},
};

/// The limit of concurrent requests of a connection, including waiting ones.
pub(crate) const MAX_REQUESTS: u32 = 256;

/// The limit of the server's own requests without a response.
const MAX_ASKED: usize = 64;

/// The limit of requests of servers outside of calls, between two requests of the client. As many as
/// during one call.
const MAX_OUTSIDE: usize = 16;

/// The purpose of the seals that are ids of requests to clients.
const OF_REQUEST: &str = "request";

/// A connection by stdio, or a session over HTTP.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Shared>);

struct Shared {
    /// The session's id, for an era that has sessions.
    id: Arc<str>,
    /// The replicas to which its client may send a response.
    replicas: Option<Replicas>,
    /// Changes since before the first request.
    changes: Changes,
    /// Fires when the client sends nothing more.
    gone: CancellationToken,
    /// How long calls continue after that.
    grace: Duration,
    /// A permit for each request in progress.
    places: Arc<Semaphore>,
    /// A permit for each running call; all of them for one that runs alone.
    shares: Arc<Semaphore>,
    /// The session that began with `initialize`.
    session: OnceLock<Arc<Session>>,
    /// The requests in progress, with the number of the last cancellation at another replica that was meant for an
    /// earlier request with the same id.
    requests: Mutex<HashMap<RequestId, (CancellationToken, u64)>>,
    /// The server's own requests without a response.
    asked: Mutex<OutgoingRequests>,
    /// The number of requests outside of calls since the client's last request.
    outside: AtomicUsize,
    /// Fires when the client has confirmed the handshake.
    initialized: CancellationToken,
    /// Signals that the client's roots have changed.
    roots_changed: Notify,
}

/// The requests of this server to the client.
#[derive(Default)]
struct OutgoingRequests {
    last: i64,
    open: HashMap<i64, oneshot::Sender<Result<Value, ClientRefusal>>>,
}

impl Connection {
    /// A connection that ends when `gone` fires, and whose calls continue that long.
    pub(crate) fn new(
        id: Arc<str>,
        changes: Changes,
        gone: CancellationToken,
        grace: Duration,
        replicas: Option<Replicas>,
    ) -> Self {
        let all = || Arc::new(Semaphore::new(MAX_REQUESTS as usize));
        Self(Arc::new(Shared {
            id,
            replicas,
            changes,
            gone,
            grace,
            places: all(),
            shares: all(),
            session: OnceLock::new(),
            requests: Mutex::default(),
            asked: Mutex::default(),
            outside: AtomicUsize::new(0),
            initialized: CancellationToken::new(),
            roots_changed: Notify::new(),
        }))
    }

    /// The session's id, for an era that has sessions.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// Changes since before the first request.
    pub(crate) fn changes(&self) -> &Changes {
        &self.0.changes
    }

    /// The session, once it has begun.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.0.session.get()
    }

    /// Stores the session; false if there is one already.
    pub(crate) fn begin(&self, session: Arc<Session>) -> bool {
        self.0.session.set(session).is_ok()
    }

    /// Registers a request, which can be cancelled by its id until this is dropped. `None` while a
    /// request with the same id is in progress.
    pub(crate) fn register(
        &self,
        id: &RequestId,
        cancellation: CancellationToken,
    ) -> Option<RequestGuard> {
        let shared = self.session().and_then(|session| session.shared.as_ref());
        let earlier = shared.map_or(0, |shared| shared.last().last_cancellation(id));
        match self.0.requests.lock().entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                free.insert((cancellation, earlier));
                self.0.outside.store(0, Ordering::Relaxed);
                Some(RequestGuard { connection: self.clone(), id: id.clone() })
            }
        }
    }

    /// Waits until the client may be asked outside of its requests.
    ///
    /// # Errors
    /// If it has been asked too often since its last request, or has gone.
    pub(crate) async fn admit_outside(&self) -> Result<(), ClientRefusal> {
        if self.0.outside.fetch_add(1, Ordering::Relaxed) >= MAX_OUTSIDE {
            let problem = format!(
                "outside of calls, servers may send {MAX_OUTSIDE} requests between two requests of \
                 the client, and this is one more"
            );
            return Err(ClientRefusal::not_supported(problem));
        }
        tokio::select! {
            () = self.0.initialized.cancelled() => Ok(()),
            () = self.gone() => Err(ClientRefusal::failed("the client has gone")),
        }
    }

    /// Done when the client has announced changed roots.
    pub(crate) async fn roots_changed(&self) {
        self.0.roots_changed.notified().await;
    }

    /// Asks the client, and waits for its response.
    pub(crate) async fn ask(
        &self,
        client: &ClientSender,
        request: Value,
    ) -> Result<Value, ClientRefusal> {
        let (sender, response) = oneshot::channel();
        let (id, shown) = {
            let mut asked = self.0.asked.lock();
            if asked.open.len() >= MAX_ASKED {
                let problem = "the client has too many unanswered requests";
                return Err(ClientRefusal::failed(problem));
            }
            let id = asked.last + 1;
            let shown = self.shown(id)?;
            asked.last = id;
            asked.open.insert(id, sender);
            (id, shown)
        };
        let mut message = request;
        if let Some(fields) = message.as_object_mut() {
            fields.insert("jsonrpc".to_owned(), "2.0".into());
            fields.insert("id".to_owned(), shown.clone());
        }
        let mut pending =
            PendingRequest { connection: self, client, id, shown, event: None, is_over: false };
        let gone = || ClientRefusal::failed("the client has gone");
        pending.event = client.request(message.to_string().into()).await;
        if pending.event.is_none() {
            return Err(ClientRefusal::failed("the client does not read its messages"));
        }
        let response = tokio::select! {
            biased;
            response = response => response.map_err(|_| gone())?,
            () = self.gone() => Err(gone()),
        };
        pending.is_over = true;
        response
    }

    /// The id of a request for the client. With several replicas it is a seal of the process and the session: the
    /// response may reach another one, or the session as another process continues it.
    fn shown(&self, id: i64) -> Result<Value, ClientRefusal> {
        let Some(replicas) = &self.0.replicas else { return Ok(id.into()) };
        let sealed = replicas.located(OF_REQUEST, (&*self.0.id, id));
        let failed = || ClientRefusal::failed("the system has no randomness");
        sealed.map(|sealed| Value::String(sealed.as_ref().to_owned())).ok_or_else(failed)
    }

    /// The replica whose request this responds to, if that is another one.
    pub(crate) fn elsewhere(response: &Response, replicas: &Replicas) -> Option<OtherReplica> {
        let RequestId::String(id) = &response.id else { return None };
        replicas.elsewhere(OF_REQUEST, id)
    }

    /// Passes a response on to the request that waits for it; others are ignored.
    pub(crate) fn answered(&self, response: Response) {
        let id = match (&response.id, &self.0.replicas) {
            (RequestId::Number(id), None) => *id,
            (RequestId::String(sealed), Some(replicas)) => {
                match replicas.here::<(Arc<str>, i64)>(OF_REQUEST, sealed) {
                    Some((session, id)) if session == self.0.id => id,
                    _ => return,
                }
            }
            _ => return,
        };
        let open = self.0.asked.lock().open.remove(&id);
        if let Some(open) = open {
            let outcome = response.outcome;
            let outcome = outcome.map_err(|(code, message)| ClientRefusal { code, message });
            // The waiter may have gone.
            let _ = open.send(outcome);
        }
    }

    /// Acts on a notification, such as the cancellation of a request by its id. Unknown notifications have no
    /// effect. The id of a cancelled request that is not in progress here is returned: it has ended, or is in
    /// progress at another replica.
    pub(crate) fn notice(&self, notification: Notification) -> Option<RequestId> {
        match notification.method.as_str() {
            "notifications/initialized" => self.0.initialized.cancel(),
            "notifications/roots/list_changed" => {
                self.0.outside.store(0, Ordering::Relaxed);
                self.0.roots_changed.notify_one();
            }
            CANCELLED => {
                let id = notification.cancelled()?;
                return (!self.cancel(&id, u64::MAX)).then_some(id);
            }
            _ => {}
        }
        None
    }

    /// Cancels a request, by the cancellation of this number; false if it is not in progress here.
    pub(crate) fn cancel(&self, id: &RequestId, number: u64) -> bool {
        let requests = self.0.requests.lock();
        let Some((request, earlier)) = requests.get(id) else { return false };
        if number > *earlier {
            request.cancel();
        }
        true
    }

    /// Whether a request is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        !self.0.requests.lock().is_empty()
    }

    /// Whether a request of a server to the client has no response yet.
    pub(crate) fn waits_for_client(&self) -> bool {
        !self.0.asked.lock().open.is_empty()
    }

    /// The client sends nothing more.
    pub(crate) fn end(&self) {
        self.0.gone.cancel();
    }

    /// Done when the client sends nothing more.
    pub(crate) async fn gone(&self) {
        self.0.gone.cancelled().await;
    }

    /// Done when responses are no longer needed.
    pub(crate) async fn ended(&self) {
        self.gone().await;
        tokio::time::sleep(self.0.grace).await;
    }

    /// A request's permit, until it is dropped.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, ErrorData> {
        Arc::clone(&self.0.places).try_acquire_owned().map_err(|_| {
            let message = format!(
                "{MAX_REQUESTS} requests of this connection are in progress, which is the limit; \
                 send this one again after one of them is answered"
            );
            ErrorData::internal_error(message, None)
        })
    }

    /// Waits until a call may run, concurrently or alone; the permit ends when this is dropped.
    /// Calls begin in the order in which they wait, as in a batch.
    pub(crate) async fn share(&self, alone: bool) -> Option<OwnedSemaphorePermit> {
        let shares = if alone { MAX_REQUESTS } else { 1 };
        // It is never closed.
        Arc::clone(&self.0.shares).acquire_many_owned(shares).await.ok()
    }
}

/// A request to the client that waits for its response. Dropped before, it is cancelled.
struct PendingRequest<'a> {
    connection: &'a Connection,
    client: &'a ClientSender,
    id: i64,
    /// Its id for the client.
    shown: Value,
    /// The number of its event.
    event: Option<u64>,
    is_over: bool,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.connection.0.asked.lock().open.remove(&self.id);
        let Some(event) = self.event else { return };
        self.client.request_is_over(event);
        if !self.is_over {
            let params = json!({ "requestId": self.shown, "reason": "the call is over" });
            self.client.offer(notification("notifications/cancelled", &params));
        }
    }
}

/// Keeps a request of a connection registered until it is dropped.
pub(crate) struct RequestGuard {
    connection: Connection,
    id: RequestId,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.connection.0.requests.lock().remove(&self.id);
    }
}
