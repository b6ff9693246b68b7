//! An open connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, SubscriptionFilter},
    service::{Peer, Service as _, ServiceError},
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::DropGuard;
use toolcrib_core::CancellationToken;

use super::{
    CallAnswer, CallRequest, Connection, Page, RequestError, ServerInfo,
    carry::Introduction,
    ending::CLOSED_HERE,
    open::{Dialled, Host, Running, Wiring},
    request::{Requests, Sent, is_unknown_method},
    result::{self, Answer},
    text::bounded,
};

/// How often a call is sent again because its answer asks for that; what the protocol's own SDKs do.
const MAX_ROUNDS: usize = 10;

/// How long a connection waits for its subscription before it is handed out. From then on a change
/// is heard in any case; one that comes late is taken for a change.
const LISTEN_FIRST: Duration = Duration::from_secs(1);

/// How long it takes until a subscription that was lost is tried again, at first and at most.
const LISTEN_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

pub(super) struct Link {
    server: ServerInfo,
    is_legacy: bool,
    pub(super) requests: Requests,
    /// Fires when nothing of the connection is left.
    gone: CancellationToken,
    /// Ends the connection when the last handle goes.
    _closing: DropGuard,
}

impl Link {
    /// Takes over what has shaken hands.
    pub(super) async fn open((running, carrier): Dialled, wiring: Wiring) -> Self {
        let info = running.peer().peer_info();
        let info = info.as_deref();
        let is_legacy = info.is_none_or(|info| info.protocol_version.has_initialize());
        let tools = info.and_then(|info| info.capabilities.tools.as_ref());
        let announces_changes = tools.is_some_and(|tools| tools.list_changed == Some(true));
        let named = info.and_then(|info| info.server_info.as_ref());
        let server = ServerInfo {
            name: named.map(|named| bounded(named.name.clone())).unwrap_or_default(),
            version: named.map(|named| bounded(named.version.clone())).unwrap_or_default(),
            protocol: info
                .map(|info| bounded(info.protocol_version.to_string()))
                .unwrap_or_default(),
            announces_changes,
        };
        let introduction = (!is_legacy).then(|| introduction(&server.protocol));
        let peer = running.peer().clone();
        let requests = Requests::new(peer, carrier, introduction, wiring.clone());
        let gone = CancellationToken::new();
        let closing = wiring.closing.clone().drop_guard();
        let ending = Arc::clone(&wiring.ending);
        let listening = (announces_changes && !is_legacy).then(Arc::<Listening>::default);
        tokio::spawn(attend(running, wiring, listening.clone(), gone.clone().drop_guard()));
        let link = Self { server, is_legacy, requests, gone, _closing: closing };
        if let Some(listening) = listening {
            tokio::select! {
                () = listening.is_settled.cancelled() => {}
                () = ending.over() => {}
                () = sleep(LISTEN_FIRST) => {}
            }
            listening.is_handed_out.store(true, Ordering::Release);
        }
        link
    }

    /// Whether it was begun with `initialize`.
    pub(super) fn is_legacy(&self) -> bool {
        self.is_legacy
    }
}

impl Connection for Link {
    fn server(&self) -> &ServerInfo {
        &self.server
    }

    fn list_tools(&self, cursor: Option<String>) -> BoxFuture<'static, Result<Page, RequestError>> {
        let requests = self.requests.clone();
        Box::pin(async move {
            let is_first = cursor.is_none();
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest {
                method: Default::default(),
                params: Some(params),
                extensions: Default::default(),
            };
            let request = ClientRequest::ListToolsRequest(request);
            let page = result::page(requests.ask(request).await?)?;
            requests.carrier().listed(&page.tools, is_first);
            Ok(page)
        })
    }

    fn call_tool(
        &self,
        request: CallRequest,
    ) -> BoxFuture<'static, Result<CallAnswer, RequestError>> {
        let requests = self.requests.clone();
        Box::pin(call_tool(requests, request))
    }

    fn closed(&self) -> BoxFuture<'static, Arc<str>> {
        let ending = Arc::clone(&self.requests.wiring.ending);
        Box::pin(async move {
            ending.over().await;
            ending.reason().unwrap_or_default()
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let gone = self.gone.clone();
        self.requests.wiring.ending.end(CLOSED_HERE);
        Box::pin(async move { gone.cancelled().await })
    }
}

async fn call_tool(requests: Requests, request: CallRequest) -> Result<CallAnswer, RequestError> {
    let CallRequest { tool, arguments, on_progress, cancellation } = request;
    let mut state = None;
    for round in 0..MAX_ROUNDS {
        let sent = Sent {
            tool: Arc::clone(&tool),
            arguments: Arc::clone(&arguments),
            state,
            on_progress: Arc::clone(&on_progress),
        };
        let result = match requests.call(sent, &cancellation).await {
            // The rounds before this one were sent.
            Err(RequestError::NotSent(reason)) if round > 0 => {
                return Err(RequestError::Lost(reason));
            }
            result => result?,
        };
        match result::answer(result)? {
            Answer::Whole(answer) => return Ok(answer),
            Answer::Again { state: next } => state = Some(next),
        }
    }
    let problem = format!("it asked {MAX_ROUNDS} times to be called again");
    Err(RequestError::Malformed(problem))
}

/// What the protocol library says of this client in each request.
fn introduction(protocol: &str) -> Introduction {
    let info = Host.get_info();
    Introduction {
        protocol: protocol.to_owned(),
        client: serde_json::to_value(info.client_info).unwrap_or_default(),
        capabilities: serde_json::to_value(info.capabilities).unwrap_or_default(),
    }
}

/// Stays with a connection until nothing of it is left.
async fn attend(
    running: Running,
    wiring: Wiring,
    subscription: Option<Arc<Listening>>,
    gone: DropGuard,
) {
    let Wiring { intake, ending, closing } = wiring;
    let peer = running.peer().clone();
    let listening = async {
        if let Some(subscription) = subscription {
            listen(&peer, &subscription, || intake.signal_changed_tools()).await;
            subscription.is_settled.cancel();
        }
        std::future::pending::<()>().await;
    };
    let served = running.waiting();
    tokio::pin!(served);
    let is_served = tokio::select! {
        () = ending.over() => false,
        () = closing.cancelled() => false,
        () = listening => false,
        _ = &mut served => true,
    };
    // Whoever ended it from elsewhere has said why.
    ending.end(if is_served { "the connection was closed" } else { CLOSED_HERE });
    if !is_served {
        closing.cancel();
        let _ = served.await;
    }
    drop(gone);
}

/// What a connection and its subscription know of each other.
#[derive(Default)]
struct Listening {
    /// Fires when it is there, or known not to come.
    is_settled: CancellationToken,
    /// Whether the connection may have been listed already.
    is_handed_out: AtomicBool,
}

/// Keeps a subscription to changes of the tools open, for as long as the server knows of such. What
/// it brings is seen by the intake.
async fn listen(peer: &Peer<RoleClient>, listening: &Listening, changed: impl Fn()) {
    let (first, most) = LISTEN_AGAIN;
    let mut wait = first;
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                let since = Instant::now();
                listening.is_settled.cancel();
                if listening.is_handed_out.load(Ordering::Acquire) {
                    // What changed since it was listed was told to nobody.
                    changed();
                }
                while let Ok(Some(_)) = subscription.next().await {}
                if since.elapsed() > most {
                    wait = first;
                }
            }
            Err(ServiceError::McpError(error)) if is_unknown_method(&error) => return,
            Err(_) => {}
        }
        sleep(wait).await;
        wait = (wait * 2).min(most);
    }
}
