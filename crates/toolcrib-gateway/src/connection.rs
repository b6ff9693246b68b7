//! The state of the connection of a request, which rmcp does not provide to the handler.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};

use rmcp::{
    ErrorData, RoleServer,
    model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::DropGuard;
use toolcrib_core::CancellationToken;

use super::{access::Caller, quoted::bounded, session::Session};

/// The limit of concurrent requests of a connection, including waiting ones.
const MAX_REQUESTS: u32 = 256;

/// A connection, or a session over HTTP. Attached to each of its requests.
#[derive(Clone)]
pub(super) struct Connection(Arc<Shared>);

struct Shared {
    /// The session's id, for an era that has sessions.
    id: Arc<str>,
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
    /// The requests in progress, with cancellation of those calls that rmcp does not know of.
    posted: Mutex<HashMap<RequestId, CancellationToken>>,
}

impl Connection {
    pub(super) fn new(id: Arc<str>, grace: Duration) -> Self {
        let all = || Arc::new(Semaphore::new(MAX_REQUESTS as usize));
        Self(Arc::new(Shared {
            id,
            gone: CancellationToken::new(),
            grace,
            places: all(),
            shares: all(),
            session: OnceLock::new(),
            posted: Mutex::default(),
        }))
    }

    /// The session's id, for an era that has sessions.
    pub(super) fn id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// The session, once it has begun.
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        self.0.session.get()
    }

    /// Stores the session; false if there is one already.
    pub(super) fn begin(&self, session: Arc<Session>) -> bool {
        self.0.session.set(session).is_ok()
    }

    /// Registers a request, which can be cancelled by its id until this is dropped. `None` while a
    /// request with the same id is in progress.
    pub(super) fn post(&self, id: &RequestId, cancellation: CancellationToken) -> Option<Posted> {
        match self.lock().entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                free.insert(cancellation);
                Some(Posted { connection: self.clone(), id: id.clone() })
            }
        }
    }

    /// Cancels a request; an unknown id belongs to another client, or is finished.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(cancellation) = self.lock().get(id) {
            cancellation.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.posted.lock()
    }

    /// Whether the client sends nothing more.
    pub(super) fn is_gone(&self) -> bool {
        self.0.gone.is_cancelled()
    }

    /// Done when the client sends nothing more.
    pub(super) async fn gone(&self) {
        self.0.gone.cancelled().await;
    }

    /// Done when responses are no longer needed.
    pub(super) async fn ended(&self) {
        self.gone().await;
        tokio::time::sleep(self.0.grace).await;
    }

    /// A request's permit, until it is dropped.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, ErrorData> {
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
    pub(super) async fn share(&self, alone: bool) -> Option<OwnedSemaphorePermit> {
        let shares = if alone { MAX_REQUESTS } else { 1 };
        // It is never closed.
        Arc::clone(&self.0.shares).acquire_many_owned(shares).await.ok()
    }
}

/// A registered request of a connection.
pub(super) struct Posted {
    connection: Connection,
    id: RequestId,
}

impl Drop for Posted {
    fn drop(&mut self) {
        self.connection.lock().remove(&self.id);
    }
}

/// A transport whose messages name their connection. rmcp lets requests continue for seconds after
/// the last message was read; their [`Connection`] ends them earlier.
pub(super) struct Watched<T> {
    transport: T,
    connection: Connection,
    /// The sender, if the transport does not state it per request.
    caller: Option<Caller>,
    _dropped: DropGuard,
}

impl<T> Watched<T> {
    pub(super) fn new(transport: T, connection: Connection, caller: Option<Caller>) -> Self {
        let _dropped = connection.0.gone.clone().drop_guard();
        Self { transport, connection, caller, _dropped }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let ServerJsonRpcMessage::Error(refused) = message {
            let error = bounded(refused.error);
            message = ServerJsonRpcMessage::error(error, refused.id);
        }
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let Some(mut message) = self.transport.receive().await else {
            self.connection.0.gone.cancel();
            return None;
        };
        let extensions = match &mut message {
            JsonRpcMessage::Request(request) => request.request.extensions_mut(),
            JsonRpcMessage::Notification(told) => told.notification.extensions_mut(),
            _ => return Some(message),
        };
        extensions.insert(self.connection.clone());
        if let Some(caller) = &self.caller {
            extensions.insert(caller.clone());
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
