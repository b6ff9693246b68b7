//! One request and its response: what all methods need of the client, whatever the transport.

use std::{ops::Deref, panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{
        DiscoverResult, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject,
        ServerJsonRpcMessage, ServerNotification, ServerResult,
    },
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use toolcrib_core::{CancellationToken, ClientAbilities, ClientPort};
use toolcrib_mcp::__internal::{self as wire, AssetKind};

use super::{
    ServeContext,
    access::Caller,
    call, changes, completion,
    connection::Connection,
    downstream::{Downstream, InputRequests, LogLevel, Route, is_of_protocol},
    events::EventStream,
    list, logging,
    message::{Request, no_method},
    params::ParamHeaders,
    prompts,
    quoted::bounded,
    resources,
    rounds::{self, Round},
    servers::CombinedOffers,
    session::Session,
    skills,
};

/// The metadata with a client's capabilities, in the stateless era.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The methods for what only servers offer.
const OF_SERVERS: [&str; 8] = [
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// Those of them that skills offer too.
const OF_SKILLS: [&str; 3] = ["resources/list", "resources/templates/list", "resources/read"];

/// The result of a request.
pub(super) type Outcome = Result<ServerResult, ErrorData>;

/// A request's caller, client and limits.
pub(super) struct Exchange {
    pub(super) serving: ServeContext,
    /// The permit of its token, if that limits concurrent calls.
    pub(super) limit: Option<OwnedSemaphorePermit>,
    pub(super) caller: Caller,
    pub(super) id: RequestId,
    pub(super) era: Era,
    /// The limits of the client's requests; none over HTTP without a session.
    pub(super) connection: Option<Connection>,
    /// The receiver of the request's notifications.
    pub(super) client: ClientSender,
    /// The receiver of the messages of its call.
    pub(super) open: OpenRequest,
    /// The receiver of servers' requests that the client answers in a further round.
    pub(super) asks: Option<mpsc::Sender<InputRequests>>,
    /// The headers that repeat arguments; absent by stdio.
    pub(super) headers: Option<ParamHeaders>,
    /// Fires when the client no longer needs a response.
    pub(super) unwanted: CancellationToken,
}

impl Exchange {
    /// A permit of the connection, until it is dropped.
    pub(super) fn place(&self) -> Result<Option<OwnedSemaphorePermit>, ErrorData> {
        self.connection.as_ref().map(Connection::place).transpose()
    }

    /// Done when the client cancels the request, or has gone.
    pub(super) async fn no_longer_needed(&self) {
        tokio::select! {
            biased;
            () = self.unwanted.cancelled() => {}
            () = ended(self.connection.as_ref()) => {}
        }
    }

    /// Answers the request. A panic is an error of this request alone.
    pub(super) async fn answer(self, mut request: Request) -> Answer {
        let id = self.id.clone();
        // A subscription does not end by itself.
        let is_waited_for = request.method != "subscriptions/listen";
        let counted = is_waited_for.then(|| self.serving.counted());
        let round = match self.era {
            Era::Session(_) => Ok(None),
            Era::Stateless(_) => Round::take(&mut request, &self.caller.access, &self.open),
        };
        let round = match round {
            Ok(round) => round,
            Err(error) => return Answer::new(id, Err(error)),
        };
        let can = self.abilities(&request);
        let round = round.filter(|round| round.continues() || can != ClientAbilities::default());
        match round {
            None => {
                let mut recheck = None;
                let outcome = self.finished(request, can, &mut recheck).await;
                Answer { recheck, ..Answer::new(id, outcome) }
            }
            Some(round) => {
                // Large futures of rare requests are on the heap: each request has room for the rest.
                Answer::new(id, Box::pin(self.in_rounds(request, can, round, counted)).await)
            }
        }
    }

    /// Answers a request that may need its client's input before it has a result.
    async fn in_rounds(
        mut self,
        request: Request,
        can: ClientAbilities,
        round: Round,
        counted: Option<impl Send + 'static>,
    ) -> Outcome {
        let (sender, asks) = mpsc::channel(1);
        self.asks = Some(sender);
        let (serving, connection) = (self.serving.clone(), self.connection.clone());
        let this_round = std::mem::take(&mut self.unwanted);
        let unwanted = self.unwanted.clone();
        let (method, params) = (request.method.clone(), request.params.clone());
        let caller = self.caller.clone();
        let bound = move || rounds::bound(&method, &params, &caller.access);
        let call = async move {
            let outcome = self.finished(request, can, &mut None).await;
            drop((self.limit, counted));
            outcome
        }
        .boxed();
        let gone = async {
            tokio::select! {
                () = this_round.cancelled() => {}
                () = ended(connection.as_ref()) => {}
            }
        };
        rounds::first(&serving, round, bound, call, asks, &unwanted, gone).await
    }

    /// Whether the client may receive progress of its call: further rounds have their own tokens.
    pub(super) fn may_report(&self) -> bool {
        self.asks.is_some() || self.open.progress().is_some()
    }

    async fn finished(
        &self,
        request: Request,
        can: ClientAbilities,
        recheck: &mut Option<RecheckOnDrop>,
    ) -> Outcome {
        let outcome = AssertUnwindSafe(self.outcome(request, can, recheck)).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(ErrorData::internal_error("the request ended without an answer", None))
        });
        outcome.map(|mut result| {
            match self.era.version().has_initialize() {
                true => result.strip_result_type_for_legacy_peer(),
                false => result.fill_missing_cache_hints(),
            }
            result
        })
    }

    /// The client's abilities for servers.
    fn abilities(&self, request: &Request) -> ClientAbilities {
        match &self.era {
            Era::Session(session) => session.client.abilities,
            Era::Stateless(_) => {
                let declared = request.meta.0.get(CAPABILITIES);
                declared.map(wire::abilities).unwrap_or_default()
            }
        }
    }

    /// The client, for the servers that this request reaches.
    fn client(&self, mut meta: Map<String, Value>, abilities: ClientAbilities) -> Downstream {
        let (key, log, route) = match (&self.era, &self.asks, &self.connection) {
            (Era::Session(session), _, Some(connection)) => {
                let route = Route::Session(connection.clone(), self.client.clone());
                (session.client.key, Arc::clone(&session.client.log), route)
            }
            (_, asks, _) => {
                let route = asks.clone().map_or(Route::None, Route::Rounds);
                // Each request is a separate client.
                let log = Arc::new(LogLevel::of_request(&meta));
                (Arc::as_ptr(&log).addr(), log, route)
            }
        };
        let redactor = self.serving.gateway.config.engine.redactor().clone();
        let client = Some(self.open.clone());
        // The rest is about the client's own connection, as an idempotency key is.
        meta.retain(|key, _| {
            key != "progressToken" && !key.starts_with("toolcrib/") && !is_of_protocol(key)
        });
        Downstream { key, abilities, meta, redactor, log, client, route }
    }

    async fn outcome(
        &self,
        request: Request,
        can: ClientAbilities,
        recheck: &mut Option<RecheckOnDrop>,
    ) -> Outcome {
        let is_stateless = !self.era.version().has_initialize();
        let Request { method, params, meta, .. } = request;
        let port: Arc<dyn ClientPort> = Arc::new(self.client(meta.0.0, can));
        let context = RequestContext { exchange: self, port: &port };
        let has_servers = !self.serving.gateway.config.servers.is_empty();
        // Skills may be read from files: not before each call.
        let has_skills = || self.serving.gateway.has_skills(&self.caller.access);
        match method.as_str() {
            "tools/call" => call::call(&context, params, recheck).await.map(Into::into),
            "tools/list" => list::list(&context, &params).await.map(Into::into),
            "skills/list" if has_skills() => skills::list(&context, &params).await,
            "skills/get" if has_skills() => skills::get(&context, &params).await,
            "resources/directory/read" if has_skills() => {
                skills::directory(&context, &params).await
            }
            method
                if !has_servers
                    && OF_SERVERS.contains(&method)
                    && !(OF_SKILLS.contains(&method) && has_skills()) =>
            {
                Err(no_method(method))
            }
            "resources/list" => resources::list(&context, &params, AssetKind::Resources).await,
            "resources/templates/list" => {
                resources::list(&context, &params, AssetKind::Templates).await
            }
            "resources/read" => resources::read(&context, params).await,
            "resources/subscribe" if !is_stateless => resources::subscribe(&context, &params).await,
            "resources/unsubscribe" if !is_stateless => {
                resources::unsubscribe(&context, &params).await
            }
            "prompts/list" => prompts::list(&context, &params).await,
            "prompts/get" => prompts::get(&context, params).await,
            "completion/complete" => completion::complete(&context, params).await,
            "logging/setLevel" if !is_stateless => logging::set_level(&context, &params).await,
            "server/discover" => self.discover(&context).await.map(Into::into),
            "subscriptions/listen" if is_stateless => {
                Box::pin(changes::listen(&context, params.into())).await.map(Into::into)
            }
            "ping" if !is_stateless => Ok(ServerResult::empty(())),
            method => Err(no_method(method)),
        }
    }

    async fn discover(&self, context: &RequestContext<'_>) -> Result<DiscoverResult, ErrorData> {
        let (gateway, access) = (&self.serving.gateway, &self.caller.access);
        gateway
            .check(access)
            .map_err(|error| ErrorData::internal_error(error.caller_text(), None))?;
        let offered = match gateway.config.servers.is_empty() {
            true => CombinedOffers::default(),
            false => CombinedOffers::of(&context.servers().await?.all).await,
        };
        let instructions = gateway.instructions(access, false, &offered);
        let config = offered.config(gateway.has_skills(access)).with_instructions(instructions);
        Ok(DiscoverResult::from_server_info(ProtocolVersion::KNOWN_VERSIONS.to_vec(), config))
    }
}

/// Done when responses to a connection are no longer needed.
async fn ended(connection: Option<&Connection>) {
    match connection {
        Some(connection) => connection.ended().await,
        None => std::future::pending().await,
    }
}

/// A request in progress, and its client.
pub(super) struct RequestContext<'a> {
    pub(super) exchange: &'a Exchange,
    /// Its client, for the servers that it reaches.
    pub(super) port: &'a Arc<dyn ClientPort>,
}

impl Deref for RequestContext<'_> {
    type Target = Exchange;

    fn deref(&self) -> &Exchange {
        self.exchange
    }
}

/// The era of a request, with its version of the protocol.
pub(super) enum Era {
    /// A request of a session.
    Session(Arc<Session>),
    /// An independent request, with its own metadata.
    Stateless(ProtocolVersion),
}

impl Era {
    /// The era of a request of a connection with this session. A request without one declares its
    /// version itself; only `ping` may precede every handshake.
    ///
    /// # Errors
    /// If the version is not supported, or metadata of a stateless request is missing.
    pub(super) fn of(request: &Request, session: Option<&Arc<Session>>) -> Result<Self, ErrorData> {
        let meta = &request.meta;
        let declared = request.version.clone();
        if let Some(version) = &declared
            && !ProtocolVersion::KNOWN_VERSIONS.contains(version)
        {
            let known = ProtocolVersion::KNOWN_VERSIONS;
            return Err(ErrorData::unsupported_protocol_version(version.clone(), known));
        }
        match (declared, session) {
            (None, Some(session)) => Ok(Self::Session(Arc::clone(session))),
            (Some(version), Some(session)) if version.has_initialize() => {
                Ok(Self::Session(Arc::clone(session)))
            }
            (None, None) if request.method == "ping" => {
                Ok(Self::Stateless(ProtocolVersion::LATEST_WITH_INITIALIZE))
            }
            (declared, _) => {
                complete(meta)?;
                Ok(Self::Stateless(declared.unwrap_or_default()))
            }
        }
    }

    /// The version of the protocol.
    pub(super) fn version(&self) -> &ProtocolVersion {
        match self {
            Self::Session(session) => &session.protocol,
            Self::Stateless(version) => version,
        }
    }

    /// The session.
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Session(session) => Some(session),
            Self::Stateless(_) => None,
        }
    }
}

/// Whether the metadata of a stateless request is complete.
pub(super) fn complete(meta: &RequestMetaObject) -> Result<(), ErrorData> {
    let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "`_meta` of the parameters lacks these fields, or they are malformed: {}",
        missing.join(", ")
    );
    Err(ErrorData::invalid_params(message, None))
}

/// A response to send.
pub(super) struct Answer {
    pub(super) id: RequestId,
    pub(super) outcome: Result<ServerResult, ErrorData>,
    recheck: Option<RecheckOnDrop>,
}

impl Answer {
    pub(super) fn new(id: RequestId, outcome: Result<ServerResult, ErrorData>) -> Self {
        Self { id, outcome, recheck: None }
    }

    /// Sends the response, as JSON.
    pub(super) fn send<R>(self, send: impl FnOnce(Bytes) -> R) -> R {
        let message = match self.outcome {
            Ok(result) => ServerJsonRpcMessage::response(result, self.id),
            Err(error) => ServerJsonRpcMessage::error(bounded(error), Some(self.id)),
        };
        let sent = send(json(&message));
        drop(self.recheck);
        sent
    }
}

/// Has a session's menu checked when it is dropped: after the response, or if it cannot be sent.
pub(super) struct RecheckOnDrop(pub(super) Arc<Notify>);

impl Drop for RecheckOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// The open request of a call, and its token of progress. A call that needs input has another one
/// in each round, and none while it waits for its client.
#[derive(Clone)]
pub(super) struct OpenRequest(Arc<Mutex<Option<Recipient>>>);

type Recipient = (ClientSender, Option<ProgressToken>);

impl OpenRequest {
    pub(super) fn new(client: ClientSender, progress: Option<ProgressToken>) -> Self {
        Self(Arc::new(Mutex::new(Some((client, progress)))))
    }

    pub(super) fn client(&self) -> Option<ClientSender> {
        self.0.lock().as_ref().map(|(client, _)| client.clone())
    }

    /// The client with the token of progress, if it requested progress.
    pub(super) fn progress(&self) -> Option<(ClientSender, ProgressToken)> {
        let open = self.0.lock();
        let (client, token) = open.as_ref()?;
        Some((client.clone(), token.clone()?))
    }

    /// The next round replaces this one.
    pub(super) fn continue_with(&self, next: &Self) {
        let next = next.0.lock().take();
        *self.0.lock() = next;
    }

    /// The request is about to be answered.
    pub(super) fn close(&self) {
        self.0.lock().take();
    }
}

/// The receiver of notifications.
#[derive(Clone)]
pub(super) enum ClientSender {
    /// The lines of a client by stdio.
    Lines(mpsc::Sender<Bytes>),
    /// A stream over HTTP.
    Events(EventStream),
}

impl ClientSender {
    /// Sends a notification; false if the client reads nothing any more.
    pub(super) async fn notify(&self, notification: ServerNotification) -> bool {
        self.send(json(&ServerJsonRpcMessage::notification(notification))).await
    }

    /// Sends a message if the client has room for it.
    pub(super) fn offer(&self, message: Bytes) {
        match self {
            // A client that reads too slowly misses some.
            Self::Lines(lines) => drop(lines.try_send(message)),
            Self::Events(events) => events.send(message),
        }
    }

    /// Sends a request, and returns its number; `None` if the client does not read its messages.
    pub(super) async fn request(&self, message: Bytes) -> Option<u64> {
        match self {
            Self::Lines(lines) => lines.send(message).await.ok().map(|()| 0),
            Self::Events(events) => events.send_request(message),
        }
    }

    /// A request has a response, or needs none any more.
    pub(super) fn request_is_over(&self, number: u64) {
        match self {
            Self::Lines(_) => {}
            Self::Events(events) => events.is_over(number),
        }
    }

    /// Sends a message; false if the client reads nothing any more.
    pub(super) async fn send(&self, message: Bytes) -> bool {
        match self {
            Self::Lines(lines) => lines.send(message).await.is_ok(),
            Self::Events(events) => {
                events.send(message);
                true
            }
        }
    }
}

/// A message as JSON, on one line.
pub(super) fn json(message: &ServerJsonRpcMessage) -> Bytes {
    serde_json::to_vec(message).unwrap_or_default().into()
}
