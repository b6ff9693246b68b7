//! Requests beside calls of tools, and announcements: what a gateway passes on.

use std::{
    iter,
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rmcp::model::ServerCapabilities;
use serde_json::{Map, Value};
use tokio::{
    sync::{broadcast, oneshot},
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;
use toolcrib_core::{
    __internal::Backoff, CancellationToken, ClientHandle, ClientPort, PinKind, PinnedDefinition,
    Progress, ToolError,
};

use super::{
    McpClient, McpClientBuilder, McpError,
    call::{failure, never_sent, not_available},
    live::LiveConnection,
    scope::IdentityScope,
    state::ConnectResult,
    supervisor::Supervisor,
};
use crate::{
    __internal::Subscribed,
    connection::{
        Caller,
        types::{PlainRequest, RequestError, ServerNotice},
    },
};

/// The levels of log messages, the one with the most messages first.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The wait before a lost subscription is made again.
const AGAIN: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };

/// One request of a server, in the protocol's form.
pub struct McpRequest {
    /// The method.
    pub method: &'static str,
    /// The parameters, without `_meta`.
    pub params: Arc<Map<String, Value>>,
    /// Receives progress.
    pub on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Whom the server may ask meanwhile.
    pub client: Option<ClientHandle>,
    /// Ends the request.
    pub cancellation: CancellationToken,
}

/// The offers of a connected server.
#[derive(Debug, Clone)]
pub struct ServerOffers {
    /// Its capabilities.
    pub capabilities: Arc<ServerCapabilities>,
    /// Its instructions for models.
    pub instructions: Option<Arc<str>>,
}

/// The announcements of one session with a server.
pub struct Notices {
    whose: IdentityScope,
    all: broadcast::Receiver<(IdentityScope, ServerNotice)>,
}

impl Notices {
    /// The next announcement; `None` once the client has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<ServerNotice> {
        loop {
            match self.all.recv().await {
                Ok((whose, notice)) if whose == self.whose => return Some(notice),
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl McpClient {
    /// The server's offers; it is started or connected if needed. If that fails: the offers of the last
    /// connection.
    ///
    /// # Errors
    /// [`McpError`] with the cause.
    #[doc(hidden)]
    pub async fn offers(&self) -> Result<ServerOffers, McpError> {
        let session = self.session()?;
        let connected = session.connection().await;
        session.offers(connected)
    }

    /// The same, for as long as a server that owes a response is awaited: `limit` counts from the first
    /// request that waits for it. `None` if the server is not ready, and never was.
    ///
    /// # Errors
    /// The caller may have no session with the server.
    #[doc(hidden)]
    pub async fn offers_within(&self, limit: Duration) -> Result<Option<ServerOffers>, McpError> {
        let session = self.session()?;
        let connected = session.connection_within(limit).await;
        Ok(session.offers(connected).ok())
    }

    /// Makes a request in its session.
    ///
    /// # Errors
    /// The server's failure, for models, with its cause.
    #[doc(hidden)]
    pub async fn request(&self, request: McpRequest) -> Result<Map<String, Value>, ToolError> {
        let session = self.session().map_err(not_available)?;
        let uri = request.params.get("uri").and_then(Value::as_str);
        if request.method == "resources/read" && uri.is_some_and(|uri| session.is_of_skill(uri)) {
            let tool = self.exposed_name(McpClientBuilder::LOAD_SKILL);
            let text = format!("this is a file of a skill; `{tool}` reads it");
            return Err(ToolError::input_invalid(text));
        }
        plain(&session, request).await
    }

    /// The announcements of its session, from now on.
    #[doc(hidden)]
    pub fn notices(&self) -> Notices {
        let all = self.sessions().shared().notices.subscribe();
        Notices { whose: self.whose.clone(), all }
    }

    /// Adds a client of its session, for as long as it lives. While it is the only one, the server may
    /// ask it outside of calls. It is asked within its own limits and rules.
    #[doc(hidden)]
    pub fn attach(&self, client: &Arc<dyn ClientPort>) {
        // Such a server was not declared a client to ask.
        if self.whose.can_something() {
            self.sessions().shared().attach(&self.whose, client);
        }
    }

    /// Announces changed roots of the only client of its session, without waiting.
    #[doc(hidden)]
    pub fn roots_changed(&self) {
        let sessions = self.sessions();
        if sessions.shared().only_client(&self.whose).is_some()
            && let Some(session) = sessions.find(&self.whose)
            && let Some(live) = session.live()
        {
            session.spawn(async move {
                // A new connection asks again.
                let _ = live.connection().roots_changed().await;
            });
        }
    }

    /// Subscribes to a resource: the announcements of its session report its changes, also after the
    /// connection was lost and opened again.
    ///
    /// # Errors
    /// The server's refusal.
    #[doc(hidden)]
    pub async fn subscribe(&self, uri: Arc<str>) -> Result<Arc<Subscribed>, ToolError> {
        let session = self.session().map_err(not_available)?;
        let before = session.state().subscriptions.get(&uri).and_then(Weak::upgrade);
        if let Some(before) = before {
            return Ok(before);
        }
        let (began, beginning) = oneshot::channel();
        let supervisor = Arc::clone(&session);
        let task = tokio::spawn(listening(supervisor, Arc::clone(&uri), began));
        let subscribed = Arc::new(Subscribed { _task: AbortOnDropHandle::new(task) });
        match beginning.await {
            Ok(Err(error)) => return Err(failure(session.server(), true, error)),
            Ok(Ok(())) => {}
            Err(_) => return Err(never_sent(session.server())),
        }
        let mut state = session.state();
        state.subscriptions.retain(|_, subscribed| subscribed.strong_count() > 0);
        state.subscriptions.insert(uri, Arc::downgrade(&subscribed));
        drop(state);
        Ok(subscribed)
    }

    /// Requires log messages of a level of its session with a server that has levels. A level of
    /// more messages, required earlier, stays. A server that is not ready receives it when it is; it is
    /// awaited as in [`offers_within`](Self::offers_within).
    #[doc(hidden)]
    pub async fn set_log_level(&self, level: Arc<str>, limit: Duration) -> Result<(), ToolError> {
        let session = self.session().map_err(not_available)?;
        {
            let position = |level: &str| LEVELS.iter().position(|known| *known == level);
            let mut state = session.state();
            let before = state.log_level.as_deref().and_then(position);
            if before.is_some_and(|before| position(&level) >= Some(before)) {
                return Ok(());
            }
            state.log_level = Some(Arc::clone(&level));
        }
        let live = session.connection_within(limit).await.map_err(not_available)?;
        if live.connection().has_log_levels() {
            match live.connection().request(log_level(&level)).await {
                // A new connection begins with the level.
                Ok(_) | Err(RequestError::NotSent(_) | RequestError::SessionLost(_)) => {}
                Err(error) => return Err(failure(session.server(), true, error)),
            }
        }
        Ok(())
    }
}

impl Supervisor {
    /// The offers of a connection, or of the last one.
    fn offers(&self, connected: ConnectResult) -> Result<ServerOffers, McpError> {
        let server = match connected {
            Ok(live) => live.connection().server().clone(),
            // Its clients have been told what it offers: a request reports the failure.
            Err(error) => self.state().info.clone().ok_or(error)?,
        };
        let capabilities = Arc::clone(&server.capabilities);
        let pins = self.settings().pins().zip(server.instructions.clone());
        let instructions = match pins {
            None => server.instructions.clone(),
            Some((pins, text)) => {
                let definition = Value::from(&*text);
                let pinned =
                    PinnedDefinition { name: Arc::default(), definition, is_offered: true };
                let checked =
                    pins.check(self.origin(), PinKind::Instructions, &mut iter::once(pinned));
                checked.is_ok_and(|reasons| reasons.iter().all(Option::is_none)).then_some(text)
            }
        };
        Ok(ServerOffers { capabilities, instructions })
    }

    /// Sets the level of a new connection.
    pub(super) fn send_log_level(&self, live: &Arc<LiveConnection>, level: Arc<str>) {
        if live.connection().has_log_levels() {
            let live = Arc::clone(live);
            self.spawn(async move {
                // Without it the server uses its own level.
                let _ = live.connection().request(log_level(&level)).await;
            });
        }
    }
}

fn log_level(level: &str) -> PlainRequest {
    PlainRequest {
        method: "logging/setLevel",
        params: Arc::new(Map::from_iter([("level".to_owned(), Value::from(level))])),
        on_progress: None,
        caller: None,
        cancellation: CancellationToken::new(),
    }
}

/// Keeps a subscription. Only the first attempt reports an error.
async fn listening(
    supervisor: Arc<Supervisor>,
    uri: Arc<str>,
    began: oneshot::Sender<Result<(), RequestError>>,
) {
    let began = Mutex::new(Some(began));
    let report = |outcome| {
        let began = began.lock().take();
        began.map(|began| began.send(outcome)).is_some()
    };
    let failures = AtomicU32::new(0);
    let mut again = false;
    loop {
        match supervisor.connection().await {
            Ok(live) => {
                let listening = live.connection().listen_to(Arc::clone(&uri), || {
                    failures.store(0, Ordering::Relaxed);
                    if !report(Ok(())) {
                        // Changes since the previous subscription were not announced.
                        supervisor.noticed(ServerNotice::ResourceUpdated(Arc::clone(&uri)));
                    }
                });
                match listening.await {
                    Err(RequestError::NotSent(_) | RequestError::SessionLost(_)) if !again => {
                        again = true;
                        live.settled().await;
                        continue;
                    }
                    Err(error) => {
                        if report(Err(error)) {
                            return;
                        }
                    }
                    Ok(()) => again = false,
                }
            }
            Err(error) => {
                if report(Err(RequestError::NotSent(error.to_string()))) {
                    return;
                }
            }
        }
        sleep(AGAIN.longest(1 + failures.fetch_add(1, Ordering::Relaxed))).await;
    }
}

/// Makes a request, once more if the server did not receive it.
pub(super) async fn plain(
    supervisor: &Arc<Supervisor>,
    request: McpRequest,
) -> Result<Map<String, Value>, ToolError> {
    let McpRequest { method, params, on_progress, client, cancellation } = request;
    let server = supervisor.server();
    let over = CancellationToken::new();
    let _over = over.clone().drop_guard();
    let caller = client.map(|ClientHandle(client)| Caller::new(client, Arc::clone(server), over));
    let mut tried_before = false;
    loop {
        let live = tokio::select! {
            biased;
            () = cancellation.cancelled() => return Err(never_sent(server)),
            live = supervisor.connection() => live.map_err(not_available)?,
        };
        let asked = live.connection().request(PlainRequest {
            method,
            params: Arc::clone(&params),
            on_progress: on_progress.clone(),
            caller: caller.clone(),
            cancellation: cancellation.clone(),
        });
        match asked.await {
            Ok(answer) => return Ok(answer),
            Err(RequestError::NotSent(_)) if cancellation.is_cancelled() => {
                return Err(never_sent(server));
            }
            Err(RequestError::NotSent(_)) if !tried_before => {
                tried_before = true;
                live.settled().await;
            }
            // All other methods only read.
            Err(RequestError::SessionLost(_)) if !tried_before && method != "tools/call" => {
                tried_before = true;
                live.settled().await;
            }
            Err(error) => return Err(failure(server, true, error)),
        }
    }
}
