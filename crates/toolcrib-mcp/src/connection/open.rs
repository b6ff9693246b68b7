//! Opens a connection to a server: the handshake of either era.

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
    intake::Intake, link::Link,
};

/// The protocol library's service on an open connection.
pub(super) type Running = RunningService<RoleClient, Host>;

/// An open connection: the protocol library's service, and the carrier for calls that bypass it.
pub(super) type Dialed = (Running, Arc<dyn Carrier>);

/// State shared by the parts of one connection.
#[derive(Clone)]
pub(super) struct Wiring {
    pub(super) intake: Arc<Intake>,
    pub(super) ending: Arc<Ending>,
    /// Ends the connection from this side.
    pub(super) closing: CancellationToken,
}

/// A transport to one server.
pub(super) trait Dial: Send + Sync + 'static {
    /// The server for the operator.
    fn target(&self) -> &str;

    /// Starts or dials it and performs the handshake.
    fn dial(
        &self,
        greeting: Greeting,
        wiring: Wiring,
    ) -> BoxFuture<'static, Result<Dialed, Failed>>;
}

/// The kind of handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    /// With `server/discover`, and if that is refused or not answered for 10 s, with `initialize`
    /// on the same connection.
    Either,
    /// With `initialize`, as servers before 2026-07-28 require.
    Legacy,
}

/// A connection that could not be opened.
pub(super) struct Failed {
    pub(super) error: ConnectError,
    /// Whether the kind of handshake may be the cause.
    pub(super) may_be_greeting: bool,
}

impl Failed {
    /// The server was not reached, refused access, or speaks an unknown version. The kind of
    /// handshake does not matter.
    pub(super) fn not_reached(
        problem: impl Into<String>,
        source: impl Into<Option<Box<dyn Error + Send + Sync>>>,
    ) -> Self {
        let error = ConnectError { problem: problem.into(), source: source.into() };
        Self { error, may_be_greeting: false }
    }

    fn of_handshake(error: ClientInitializeError, ending: &Ending) -> Self {
        if let ClientInitializeError::TransportError { error: sent, .. } = &error
            && let Some((problem, may_be_greeting)) = http::why_not_connected(sent)
        {
            let error = ConnectError { problem, source: Some(Box::new(error)) };
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
        let error = ConnectError { problem, source: Some(Box::new(error)) };
        Self { error, may_be_greeting: true }
    }
}

/// Opens connections by a transport, and remembers the server's kind of handshake: one that ignores
/// unknown requests costs its 10 s once, not at every start.
///
/// Some servers end, or send garbage, when their first request is unknown to them, and a legacy
/// server may be replaced by a newer one. So if the handshake fails, the other kind is tried, once,
/// on a separate connection; a program is started twice then.
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
        intake: Arc::new(Intake::new(Arc::clone(signals), dial.target())),
        ending: Arc::default(),
        closing: CancellationToken::new(),
    };
    let dialed = dial.dial(greeting, wiring.clone()).await.map_err(|mut failed| {
        failed.error.problem = wiring.intake.shown(&failed.error.problem);
        failed
    })?;
    Ok(Link::open(dialed, wiring).await)
}

/// Performs the handshake over a transport.
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
        // The protocol library accepts any version of a server.
        Some(spoken) if !ProtocolVersion::KNOWN_VERSIONS.contains(&spoken) => {
            let _ = running.cancel().await;
            let known: Vec<_> =
                ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
            let problem = format!(
                "it speaks version `{}` of the protocol, which is not supported here; supported are {}",
                spoken.as_str(),
                known.join(", ")
            );
            Err(Failed::not_reached(problem, None))
        }
        _ => Ok(running),
    }
}

/// Answers a server's requests: only pings.
pub(super) struct Host;

impl Host {
    /// The response to a request of the server.
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
