//! An open connection.

use std::sync::Arc;

use tokio::time::sleep;
use tokio_util::{sync::DropGuard, task::AbortOnDropHandle};
use toolcrib_core::CancellationToken;

use super::{
    CallAnswer, CallRequest, Page, RequestError, ServerInfo,
    ending::{CLOSED_HERE, EndOnDrop},
    handshake::Greeted,
    message::Request,
    peer::Peer,
    result::{self, Answer},
    subscription::{LISTEN_FIRST, Subscription},
};

/// The limit of rounds in which a response requests another call; as in the protocol's SDKs.
const MAX_ROUNDS: usize = 10;

/// An open connection to a server. Dropping the last handle ends it as [`close`](Self::close) does,
/// without waiting.
pub(crate) struct Connection {
    server: ServerInfo,
    is_legacy: bool,
    peer: Peer,
    /// Fires when nothing of the connection is left.
    gone: CancellationToken,
    _closing: EndOnDrop,
}

impl Connection {
    /// Takes over a connection after the handshake.
    pub(super) async fn open(
        peer: Peer,
        greeted: Greeted,
        serving: AbortOnDropHandle<()>,
        closing: EndOnDrop,
    ) -> Self {
        let Greeted { server, is_legacy } = greeted;
        let gone = CancellationToken::new();
        // Before 2026-07-28 changes are announced without a subscription.
        let subscription =
            (server.announces_changes && !is_legacy).then(Arc::<Subscription>::default);
        let attending =
            attend(peer.clone(), serving, subscription.clone(), gone.clone().drop_guard());
        tokio::spawn(attending);
        if let Some(subscription) = subscription {
            tokio::select! {
                () = subscription.settled() => {}
                () = peer.ending().over() => {}
                () = sleep(LISTEN_FIRST) => {}
            }
            subscription.hand_out();
        }
        Self { server, is_legacy, peer, gone, _closing: closing }
    }

    /// Whether it was begun with `initialize`.
    pub(super) fn is_legacy(&self) -> bool {
        self.is_legacy
    }

    /// The server's self-description and the negotiated version.
    pub(crate) fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// One page of the list of tools.
    pub(crate) async fn list_tools(&self, cursor: Option<String>) -> Result<Page, RequestError> {
        let is_first = cursor.is_none();
        let mut page = self.peer.ask(Request::ListTools { cursor }, result::page).await?;
        if !self.is_legacy {
            self.peer.transport().listed(&mut page.tools, is_first);
        }
        Ok(page)
    }

    /// One call. Firing its token, or dropping the future, sends a cancellation to the server.
    pub(crate) async fn call_tool(&self, call: CallRequest) -> Result<CallAnswer, RequestError> {
        let mut state = None;
        for round in 0..MAX_ROUNDS {
            let request = Request::CallTool {
                tool: Arc::clone(&call.tool),
                arguments: Arc::clone(&call.arguments),
                idempotency_key: Arc::clone(&call.idempotency_key),
                state,
                on_progress: Arc::clone(&call.on_progress),
            };
            match self.peer.call(request, result::answer, &call.cancellation).await {
                Ok(Answer::Whole(answer)) => return Ok(answer),
                Ok(Answer::Again { state: next }) => state = Some(next),
                // The rounds before this one were sent.
                Err(RequestError::NotSent(reason)) if round > 0 => {
                    return Err(RequestError::Lost(reason));
                }
                Err(error) => return Err(error),
            }
        }
        let problem = format!("it asked {MAX_ROUNDS} times to be called again");
        Err(RequestError::Malformed(problem))
    }

    /// Done when the connection has ended, with the reason for the operator.
    pub(crate) async fn closed(&self) -> Arc<str> {
        let ending = self.peer.ending();
        ending.over().await;
        ending.reason().unwrap_or_default()
    }

    /// Ends the connection and waits until all its processes and tasks have ended.
    pub(crate) async fn close(&self) {
        self.peer.ending().end(CLOSED_HERE);
        self.gone.cancelled().await;
    }
}

/// Attends a connection until nothing of it is left.
async fn attend(
    peer: Peer,
    serving: AbortOnDropHandle<()>,
    subscription: Option<Arc<Subscription>>,
    gone: DropGuard,
) {
    let listening = async {
        if let Some(subscription) = subscription {
            subscription.keep(&peer).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = peer.ending().over() => {}
        () = listening => {}
    }
    let _ = serving.await;
    drop(gone);
}
