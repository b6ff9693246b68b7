//! From a server to an open connection: the handshake of either era.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientResult, ErrorCode, ErrorData, Implementation,
        ProtocolVersion, ServerNotification, ServerRequest,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, NotificationContext, RequestContext,
        RunningService, Service, serve_client_with_lifecycle_and_ct,
    },
    transport::IntoTransport,
};
use toolcrib_core::CancellationToken;

use super::{
    Connect, ConnectError, Connection, Signals, carry::Carrier, ending::Ending, http,
    intake::Intake, link::Link, text::bounded,
};

/// What speaks the protocol on an open connection.
pub(super) type Running = RunningService<RoleClient, Host>;

/// An open connection: what speaks the protocol on it, and what takes calls past that.
pub(super) type Dialled = (Running, Arc<dyn Carrier>);

/// What the parts of one connection have in common.
#[derive(Clone)]
pub(super) struct Wiring {
    pub(super) intake: Arc<Intake>,
    pub(super) ending: Arc<Ending>,
    /// Ends the connection from here.
    pub(super) closing: CancellationToken,
}

/// A way to reach one server.
pub(super) trait Dial: Send + Sync + 'static {
    /// The server as an operator knows it.
    fn target(&self) -> &str;

    /// Starts or dials it and shakes hands.
    fn dial(
        &self,
        greeting: Greeting,
        wiring: Wiring,
    ) -> BoxFuture<'static, Result<Dialled, Failed>>;
}

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    /// With `server/discover`, and where that is refused or not answered for 10 s, with `initialize`
    /// on the same connection.
    Either,
    /// With `initialize`, as servers before 2026-07-28 want it.
    Legacy,
}

/// A connection that could not be opened.
pub(super) struct Failed {
    pub(super) error: ConnectError,
    /// Whether the way in which it was begun may be the cause.
    pub(super) may_be_greeting: bool,
}

impl Failed {
    /// The server was not reached, let nobody in, or speaks what is not known here. It is the same
    /// for every greeting.
    pub(super) fn not_reached(
        problem: impl Into<String>,
        source: impl Into<Option<Box<dyn Error + Send + Sync>>>,
    ) -> Self {
        let error = ConnectError { problem: bounded(problem), source: source.into() };
        Self { error, may_be_greeting: false }
    }

    fn of_handshake(error: ClientInitializeError, ending: &Ending) -> Self {
        if let ClientInitializeError::TransportError { error: sent, .. } = &error
            && let Some((problem, may_be_greeting)) = http::why_not_connected(sent)
        {
            let error = ConnectError { problem: bounded(problem), source: Some(Box::new(error)) };
            return Self { error, may_be_greeting };
        }
        let problem = match (ending.reason(), &error) {
            (Some(reason), _) => format!("it was lost before it was ready: {reason}"),
            // The library names its own types.
            (None, ClientInitializeError::TransportError { error: sent, .. }) => {
                format!("it was lost before it was ready: {}", sent.error)
            }
            (None, error) => error.to_string(),
        };
        let error = ConnectError { problem: bounded(problem), source: Some(Box::new(error)) };
        Self { error, may_be_greeting: true }
    }
}

/// Opens connections by a way to reach a server, and remembers how the server wants to be greeted:
/// one that is silent about what it does not know costs its 10 s once, not at every start.
///
/// Some servers end, or send garbage, when their first request is one they do not know, and one
/// that was legacy may be replaced by one that is not. So where the handshake fails, the other
/// greeting is tried, once, on a connection of its own; a program is started twice then.
pub(super) struct Opener<D> {
    dial: Arc<D>,
    is_legacy: Arc<AtomicBool>,
}

impl<D: Dial> Opener<D> {
    pub(super) fn new(dial: D) -> Arc<Self> {
        Arc::new(Self { dial: Arc::new(dial), is_legacy: Arc::default() })
    }
}

impl<D: Dial> Connect for Opener<D> {
    fn connect(
        &self,
        signals: Arc<dyn Signals>,
    ) -> BoxFuture<'static, Result<Arc<dyn Connection>, ConnectError>> {
        let (dial, is_legacy) = (Arc::clone(&self.dial), Arc::clone(&self.is_legacy));
        Box::pin(async move {
            let greeting = match is_legacy.load(Ordering::Relaxed) {
                true => Greeting::Legacy,
                false => Greeting::Either,
            };
            let link = match attempt(&*dial, greeting, &signals).await {
                Err(Failed { may_be_greeting: true, .. }) => {
                    let other = match greeting {
                        Greeting::Either => Greeting::Legacy,
                        Greeting::Legacy => Greeting::Either,
                    };
                    attempt(&*dial, other, &signals).await
                }
                first => first,
            };
            let link = link.map_err(|failed| failed.error)?;
            is_legacy.store(link.is_legacy(), Ordering::Relaxed);
            Ok(Arc::new(link) as Arc<dyn Connection>)
        })
    }

    fn target(&self) -> &str {
        self.dial.target()
    }
}

pub(super) async fn attempt(
    dial: &impl Dial,
    greeting: Greeting,
    signals: &Arc<dyn Signals>,
) -> Result<Link, Failed> {
    let wiring = Wiring {
        intake: Arc::new(Intake::new(Arc::clone(signals))),
        ending: Arc::default(),
        closing: CancellationToken::new(),
    };
    let dialled = dial.dial(greeting, wiring.clone()).await?;
    Ok(Link::open(dialled, wiring).await)
}

/// Shakes hands over a transport.
pub(super) async fn shake_hands<T, E, A>(
    transport: T,
    greeting: Greeting,
    wiring: Wiring,
) -> Result<Running, Failed>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let lifecycle = match greeting {
        Greeting::Either => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        Greeting::Legacy => ClientLifecycleMode::Initialize,
    };
    let Wiring { ending, closing, .. } = wiring;
    let running = serve_client_with_lifecycle_and_ct(Host, transport, lifecycle, closing)
        .await
        .map_err(|error| Failed::of_handshake(error, &ending))?;
    let spoken = running.peer().peer_info().map(|info| info.protocol_version.clone());
    match spoken {
        // The protocol library takes whatever a server says.
        Some(spoken) if !ProtocolVersion::KNOWN_VERSIONS.contains(&spoken) => {
            let _ = running.cancel().await;
            let known: Vec<_> =
                ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
            let problem = format!(
                "it speaks version `{}` of the protocol, which is not known here; known are {}",
                bounded(spoken.as_str()),
                known.join(", ")
            );
            Err(Failed::not_reached(problem, None))
        }
        _ => Ok(running),
    }
}

/// What a server may ask of this side: whether it is there, and nothing else.
pub(super) struct Host;

impl Host {
    /// The answer to a request of the server.
    pub(super) fn answer(request: &ServerRequest) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            _ => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client has declared no capabilities",
                None,
            )),
        }
    }
}

impl Service<RoleClient> for Host {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        Self::answer(&request)
    }

    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
