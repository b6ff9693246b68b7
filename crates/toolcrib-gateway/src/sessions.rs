//! The sessions of one HTTP token. Each token has separate sessions, so that a session's id is
//! useless without the token that it was created with.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use futures_util::{FutureExt as _, Stream};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientNotification, CustomNotification, ServerJsonRpcMessage},
    transport::{
        WorkerTransport,
        streamable_http_server::{
            SessionId, SessionManager,
            session::{
                ServerSseMessage,
                local::{LocalSessionManager, LocalSessionManagerError, LocalSessionWorker},
            },
        },
    },
};

use tokio::time::Instant;

use super::connection::{Connection, Watched};

/// The idle timeout of a session.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// The maximum rate of keeping a session alive whose calls bypass it.
const TOUCH: Duration = Duration::from_secs(60);

/// rmcp's sessions, whose requests know their session.
pub(super) struct Sessions {
    sessions: LocalSessionManager,
    open: Mutex<HashMap<SessionId, Open>>,
}

struct Open {
    connection: Connection,
    touched: Instant,
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut sessions = LocalSessionManager::default();
        // The last call may have come just before the next keep-alive.
        sessions.session_config.keep_alive = Some(IDLE + TOUCH);
        Self { sessions, open: Mutex::default() }
    }

    /// The connection of an open session, for a call that bypasses it. rmcp ends an idle session,
    /// so it receives a message without meaning.
    ///
    /// A session that cannot accept it at once is busy, and gets it at the next call.
    pub(super) fn touched(&self, id: &str) -> Option<Connection> {
        let mut open = self.lock();
        let open = open.get_mut(id).filter(|open| !open.connection.is_gone())?;
        if open.touched.elapsed() > TOUCH {
            let nothing = CustomNotification::new("notifications/toolcrib/in-use", None);
            let nothing =
                ClientJsonRpcMessage::notification(ClientNotification::CustomNotification(nothing));
            let id = open.connection.id();
            if let Some(told) = self.sessions.accept_message(id, nothing).now_or_never() {
                told.ok()?;
                open.touched = Instant::now();
            }
        }
        Some(open.connection.clone())
    }

    /// The connection of an open session.
    pub(super) fn connection(&self, id: &str) -> Option<Connection> {
        self.lock().get(id).map(|open| open.connection.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.open.lock()
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = Watched<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.sessions.create_session().await?;
        // A session ends because its client ended it, or was idle for too long.
        let connection = Connection::new(Arc::clone(&id), Duration::ZERO);
        let open = Open { connection: connection.clone(), touched: Instant::now() };
        self.lock().insert(Arc::clone(&id), open);
        Ok((id, Watched::new(transport, connection, None)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.lock().remove(id);
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use rmcp::{
        model::{ClientRequest, InitializeRequestParams, Request, RequestId},
        transport::Transport,
    };

    use super::*;

    const NEARLY: Duration = Duration::from_secs(29 * 60);

    /// A new session, and the task that serves it, which ends when the session does.
    async fn begun(sessions: &Arc<Sessions>) -> (SessionId, tokio::task::JoinHandle<()>) {
        let (id, mut transport) = sessions.create_session().await.unwrap();
        let serves = tokio::spawn(async move {
            while let Some(message) = transport.receive().await {
                if let ClientJsonRpcMessage::Request(request) = message {
                    let answer = ServerJsonRpcMessage::response(
                        rmcp::model::ServerResult::empty(()),
                        request.id,
                    );
                    transport.send(answer).await.unwrap();
                }
            }
        });
        let initialize = Request::new(InitializeRequestParams::default());
        let initialize = ClientJsonRpcMessage::request(
            ClientRequest::InitializeRequest(initialize),
            RequestId::Number(1),
        );
        sessions.initialize_session(&id, initialize).await.unwrap();
        (id, serves)
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_kept_by_calls_that_do_not_pass_through_it() {
        let sessions = Arc::new(Sessions::new());
        let (used, serves) = begun(&sessions).await;
        let (silent, ends) = begun(&sessions).await;
        for _ in 0..3 {
            tokio::time::sleep(NEARLY).await;
            assert!(sessions.touched(&used).is_some());
        }
        assert!(!serves.is_finished());
        ends.await.unwrap();
        assert!(sessions.touched(&silent).is_none());
        tokio::time::sleep(IDLE * 2).await;
        serves.await.unwrap();
    }
}
