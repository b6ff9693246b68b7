//! An open connection.

use std::{sync::Arc, time::Duration};

use rmcp::model::SubscriptionFilter;
use serde_json::{Map, Value};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};
use tokio_util::{sync::DropGuard, task::AbortOnDropHandle};
use toolcrib_core::CancellationToken;

use super::{
    Caller,
    ending::{CLOSED_HERE, EndOnDrop},
    handshake::HandshakeResult,
    message::{self, Request, Round},
    peer::{ParseFn, Peer},
    result::{self, Answer},
    subscription::{self, LISTEN_FIRST, Subscription},
    types::{CallAnswer, CallRequest, Page, PlainRequest, RequestError, ServerInfo},
};

/// The limit of rounds in which a response requests another call; as in the protocol's SDKs.
const MAX_ROUNDS: usize = 10;

/// How long the requests of a lost session wait for their responses, and how often that is checked.
const DRAIN: Duration = Duration::from_secs(3);
const DRAIN_STEP: Duration = Duration::from_millis(10);

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
        greeted: HandshakeResult,
        serving: AbortOnDropHandle<()>,
        closing: EndOnDrop,
    ) -> Self {
        let HandshakeResult { server, is_legacy } = greeted;
        let gone = CancellationToken::new();
        // Before 2026-07-28 changes are announced without a subscription.
        let lists = subscription::of_lists(&server.capabilities).filter(|_| !is_legacy);
        let subscription = lists.as_ref().map(|_| Arc::<Subscription>::default());
        let listening = subscription.clone().zip(lists);
        let attending = attend(peer.clone(), serving, listening, gone.clone().drop_guard());
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

    /// Lets the next call begin another connection, unless a request runs in this one.
    pub(crate) fn retire(&self, reason: &str) -> bool {
        let is_idle = !self.peer.intake().has_requests();
        if is_idle {
            self.peer.ending().retire(reason);
        }
        is_idle
    }

    /// The clause of an error of a wait that ran out about messages since the last valid one that are not
    /// JSON-RPC; empty if there are none.
    pub(crate) fn stray(&self) -> String {
        self.peer.intake().stray()
    }

    /// Whether it was begun with `initialize`.
    pub(crate) fn is_legacy(&self) -> bool {
        self.is_legacy
    }

    /// The server's self-description and the negotiated version.
    pub(crate) fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// One page of the list of tools.
    pub(crate) async fn list_tools(&self, cursor: Option<String>) -> Result<Page, RequestError> {
        let mut page = self.peer.ask(Request::ListTools { cursor }, result::page).await?;
        if !self.is_legacy {
            self.peer.transport().listed(&mut page.tools);
        }
        Ok(page)
    }

    /// One call. Firing its token, or dropping the future, sends a cancellation to the server.
    pub(crate) async fn call_tool(&self, call: CallRequest) -> Result<CallAnswer, RequestError> {
        let request = |round| Request::CallTool {
            tool: Arc::clone(&call.tool),
            arguments: Arc::clone(&call.arguments),
            marked: call.marked.clone(),
            traceparent: call.traceparent.clone(),
            idempotency_key: Arc::clone(&call.idempotency_key),
            round,
            on_progress: Arc::clone(&call.on_progress),
            caller: call.caller.clone(),
        };
        self.rounds(request, result::answer, call.caller.as_ref(), &call.cancellation).await
    }

    /// One request of another method, like [`call_tool`](Self::call_tool).
    pub(crate) async fn request(
        &self,
        asked: PlainRequest,
    ) -> Result<Map<String, Value>, RequestError> {
        let request = |round| Request::Plain {
            method: asked.method,
            params: Arc::clone(&asked.params),
            round,
            on_progress: asked.on_progress.clone(),
            caller: asked.caller.clone(),
        };
        self.rounds(request, result::fields, asked.caller.as_ref(), &asked.cancellation).await
    }

    /// Makes a request, and again with the responses of its client, as often as the server requires
    /// it.
    async fn rounds<T: Send + 'static>(
        &self,
        request: impl Fn(Option<Round>) -> Request,
        read: ParseFn<Answer<T>>,
        caller: Option<&Caller>,
        cancellation: &CancellationToken,
    ) -> Result<T, RequestError> {
        let mut next = None;
        for round in 0..MAX_ROUNDS {
            match self.peer.call(request(next.take()), read, cancellation).await {
                Ok(Answer::Whole(answer)) => return Ok(answer),
                Ok(Answer::Again { state, requests }) => {
                    let responses = match requests.is_empty() {
                        true => Map::new(),
                        false => self.responses(requests, caller, cancellation).await?,
                    };
                    next = Some(Round { state, responses });
                }
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

    async fn responses(
        &self,
        requests: Map<String, Value>,
        caller: Option<&Caller>,
        cancellation: &CancellationToken,
    ) -> Result<Map<String, Value>, RequestError> {
        let Some(caller) = caller else {
            let problem = "it requires user input, which is not available here";
            return Err(RequestError::Malformed(problem.to_owned()));
        };
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(RequestError::Cancelled(self.stray())),
            () = self.peer.ending().over() => Err(RequestError::Lost(self.closed().await.to_string())),
            responses = caller.request(requests) => {
                responses.map_err(|refusal| RequestError::NotAnswered(refusal.message))
            }
        }
    }

    /// Announces changed roots to a server that may know them.
    pub(crate) async fn roots_changed(&self) -> Result<(), RequestError> {
        match self.is_legacy && self.peer.abilities().roots_changes {
            true => self.peer.notify(message::roots_changed()).await,
            // Since 2026-07-28 there is no such notification: each request asks again.
            false => Ok(()),
        }
    }

    /// Whether the server has a level of log messages for the connection.
    pub(crate) fn has_log_levels(&self) -> bool {
        self.is_legacy && self.server.capabilities.logging.is_some()
    }

    /// Keeps a subscription to the changes of one resource, until the future is dropped or the
    /// connection ends. `began` is called when it has begun.
    ///
    /// # Errors
    /// The server's refusal.
    pub(crate) async fn listen_to(
        &self,
        uri: Arc<str>,
        began: impl FnOnce(),
    ) -> Result<(), RequestError> {
        if !self.is_legacy {
            let filter = subscription::of_resource(&uri);
            let subscription = Subscription::default();
            let listening = subscription.keep(&self.peer, &filter);
            tokio::pin!(listening);
            tokio::select! {
                biased;
                () = subscription.settled() => began(),
                Err(refusal) = &mut listening => return Err(refusal),
                () = self.peer.ending().over() => {
                    return Err(RequestError::Lost(self.closed().await.to_string()));
                }
            }
            tokio::select! {
                Err(refusal) = listening => return Err(refusal),
                () = self.peer.ending().over() => return Ok(()),
            }
        }
        let request = |method| {
            let params = Map::from_iter([("uri".to_owned(), Value::from(&*uri))]);
            Request::plain(method, params)
        };
        self.peer.ask(request("resources/subscribe"), result::nothing).await?;
        began();
        let _unsubscribe = Unsubscribe {
            peer: self.peer.clone(),
            request: Some(request("resources/unsubscribe")),
        };
        self.peer.ending().over().await;
        Ok(())
    }

    /// Done when the connection has ended or takes no more requests, with the reason for the operator.
    pub(crate) async fn closed(&self) -> Arc<str> {
        let ending = self.peer.ending();
        ending.retired().await;
        ending.reason().unwrap_or_default()
    }

    /// Ends the connection and waits until all its processes and tasks have ended.
    pub(crate) async fn close(&self) {
        let _ = timeout(DRAIN, self.drained()).await;
        self.peer.ending().end(CLOSED_HERE);
        self.gone.cancelled().await;
    }

    /// Done at once, unless its session was lost: then each of its requests learns from its own response
    /// whether it was executed.
    async fn drained(&self) {
        let ending = self.peer.ending();
        while ending.is_retired() && !ending.is_over() && self.peer.intake().has_requests() {
            sleep(DRAIN_STEP).await;
        }
    }
}

/// Ends a subscription in a session.
struct Unsubscribe {
    peer: Peer,
    request: Option<Request>,
}

impl Drop for Unsubscribe {
    fn drop(&mut self) {
        if let (Some(request), Ok(runtime)) = (self.request.take(), Handle::try_current())
            && !self.peer.ending().is_over()
        {
            let peer = self.peer.clone();
            // It ends with the connection at the latest.
            runtime.spawn(async move { peer.ask(request, result::nothing).await });
        }
    }
}

/// Attends a connection until nothing of it is left.
async fn attend(
    peer: Peer,
    serving: AbortOnDropHandle<()>,
    subscription: Option<(Arc<Subscription>, SubscriptionFilter)>,
    gone: DropGuard,
) {
    let listening = async {
        if let Some((subscription, lists)) = subscription {
            // Without it, changes are not announced.
            let _ = subscription.keep(&peer, &lists).await;
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
