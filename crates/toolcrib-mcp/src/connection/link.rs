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
use toolcrib_core::{__internal::Backoff, CancellationToken};

use super::{
    CallAnswer, CallRequest, Connection, Page, RequestError, ServerInfo,
    carry::Introduction,
    ending::CLOSED_HERE,
    open::{Dialed, Host, Running, Wiring},
    request::{Requests, Sent, is_unknown_method},
    result::{self, Answer},
};

/// The limit of rounds in which a response requests another call; as in the protocol's SDKs.
const MAX_ROUNDS: usize = 10;

/// How long a new connection waits for its subscription. After it, every change is noticed; a late
/// subscription counts as a change.
const LISTEN_FIRST: Duration = Duration::from_secs(1);

/// The wait before a lost subscription is tried again.
const LISTEN_AGAIN: Backoff =
    Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };

pub(super) struct Link {
    server: ServerInfo,
    is_legacy: bool,
    pub(super) requests: Requests,
    /// Fires when nothing of the connection is left.
    gone: CancellationToken,
    /// Ends the connection when the last handle is dropped.
    _closing: DropGuard,
}

impl Link {
    /// Takes over a connection after the handshake.
    pub(super) async fn open((running, carrier): Dialed, wiring: Wiring) -> Self {
        let info = running.peer().peer_info();
        let info = info.as_deref();
        let is_legacy = info.is_none_or(|info| info.protocol_version.has_initialize());
        let tools = info.and_then(|info| info.capabilities.tools.as_ref());
        let announces_changes = tools.is_some_and(|tools| tools.list_changed == Some(true));
        let named = info.and_then(|info| info.server_info.as_ref());
        let server = ServerInfo {
            name: named.map(|named| wiring.intake.shown(&named.name)).unwrap_or_default(),
            version: named.map(|named| wiring.intake.shown(&named.version)).unwrap_or_default(),
            protocol: info
                .map(|info| wiring.intake.shown(info.protocol_version.as_str()))
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
            let page = requests.ask(request, result::page).await;
            let page = page.map_err(|error| error.shown(&requests.wiring.intake))?;
            requests.carrier().listed(&page.tools, is_first);
            Ok(page)
        })
    }

    fn call_tool(
        &self,
        request: CallRequest,
    ) -> BoxFuture<'static, Result<CallAnswer, RequestError>> {
        let requests = self.requests.clone();
        Box::pin(async move {
            let intake = Arc::clone(&requests.wiring.intake);
            call_tool(requests, request).await.map_err(|error| error.shown(&intake))
        })
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

/// The client's metadata that the protocol library adds to each request.
fn introduction(protocol: &str) -> Introduction {
    let info = Host.get_info();
    Introduction {
        protocol: protocol.to_owned(),
        client: serde_json::to_value(info.client_info).unwrap_or_default(),
        capabilities: serde_json::to_value(info.capabilities).unwrap_or_default(),
    }
}

/// Attends a connection until nothing of it is left.
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
    // If it was ended elsewhere, the reason is already recorded.
    ending.end(if is_served { "the connection was closed" } else { CLOSED_HERE });
    if !is_served {
        closing.cancel();
        let _ = served.await;
    }
    drop(gone);
}

/// State shared by a connection and its subscription.
#[derive(Default)]
struct Listening {
    /// Fires when the subscription is active, or has failed.
    is_settled: CancellationToken,
    /// Whether the connection may have been listed already.
    is_handed_out: AtomicBool,
}

/// Keeps a subscription to changes of the tools open, while the server supports it. Its messages go
/// through the intake.
async fn listen(peer: &Peer<RoleClient>, listening: &Listening, changed: impl Fn()) {
    let mut failures = 0_u32;
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                let since = Instant::now();
                listening.is_settled.cancel();
                if listening.is_handed_out.load(Ordering::Acquire) {
                    // Changes since the listing were not announced.
                    changed();
                }
                while let Ok(Some(_)) = subscription.next().await {}
                if since.elapsed() > LISTEN_AGAIN.cap {
                    failures = 0;
                }
            }
            Err(ServiceError::McpError(error)) if is_unknown_method(&error) => return,
            Err(_) => {}
        }
        failures = failures.saturating_add(1);
        sleep(LISTEN_AGAIN.longest(failures)).await;
    }
}
