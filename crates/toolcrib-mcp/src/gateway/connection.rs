//! What the handler must know of the connection that a request came by, and rmcp does not tell it.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio_util::sync::DropGuard;
use toolcrib_core::CancellationToken;

use super::access::Caller;

/// A connection, or a session over HTTP. Travels with each of its requests.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    /// The session's id, for an era that has sessions.
    pub(super) id: Arc<str>,
    /// Fires when the client sends nothing more.
    gone: CancellationToken,
    /// How long calls go on after that.
    grace: Duration,
}

impl Connection {
    pub(super) fn new(id: Arc<str>, grace: Duration) -> Self {
        Self { id, gone: CancellationToken::new(), grace }
    }

    /// Done when nobody waits for an answer any more.
    pub(super) async fn ended(&self) {
        self.gone.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }
}

/// A transport whose requests say which connection they came by. rmcp lets requests go on for
/// seconds after the last message was read; their [`Connection`] tells them earlier.
pub(super) struct Watched<T> {
    transport: T,
    connection: Connection,
    /// Who sends, where the transport does not say it of each request.
    caller: Option<Caller>,
    _dropped: DropGuard,
}

impl<T> Watched<T> {
    pub(super) fn new(transport: T, connection: Connection, caller: Option<Caller>) -> Self {
        let _dropped = connection.gone.clone().drop_guard();
        Self { transport, connection, caller, _dropped }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let Some(mut message) = self.transport.receive().await else {
            self.connection.gone.cancel();
            return None;
        };
        if let JsonRpcMessage::Request(request) = &mut message {
            let extensions = request.request.extensions_mut();
            extensions.insert(self.connection.clone());
            if let Some(caller) = &self.caller {
                extensions.insert(caller.clone());
            }
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
