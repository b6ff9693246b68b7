//! The handshake of either era.

use std::{sync::Arc, time::Duration};

use rmcp::model::{
    DiscoverResult, ErrorCode, Implementation, InitializeResult, ProtocolVersion,
    ServerCapabilities,
};
use tokio::time::timeout;

use super::{
    message::{self, Request},
    peer::Peer,
    result,
    types::{ConnectError, RequestError, ServerInfo},
};

/// How long a server may take to answer `server/discover`. Some older ones never answer a request
/// that they do not know.
const DISCOVER_WITHIN: Duration = Duration::from_secs(10);

/// Errors of `server/discover` that only a server since 2026-07-28 gives.
const OF_NEW_SERVERS: [ErrorCode; 3] = [
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorCode::HEADER_MISMATCH,
];

/// The kind of handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// With `server/discover`, and if that is refused or not answered for 10 s, with `initialize`
    /// on the same connection.
    Either,
    /// With `server/discover` alone, as of 2026-07-28.
    Modern,
    /// With `initialize`, as servers before 2026-07-28 require.
    Legacy,
}

/// The result of a handshake.
pub(super) struct HandshakeResult {
    pub(super) server: ServerInfo,
    /// Whether the version is one before 2026-07-28.
    pub(super) is_legacy: bool,
}

/// A connection that could not be opened.
pub(super) struct HandshakeError {
    pub(super) error: ConnectError,
    /// Whether the kind of handshake may be the cause.
    pub(super) may_be_greeting: bool,
}

impl HandshakeError {
    /// The server was not reached, refused access, or speaks an unknown version. The kind of
    /// handshake does not matter.
    pub(super) fn for_good(error: ConnectError) -> Self {
        Self { error, may_be_greeting: false }
    }

    fn of(error: RequestError, peer: &Peer) -> Self {
        let may_be_greeting = !matches!(
            error,
            RequestError::NotSent(_) | RequestError::Denied(_) | RequestError::Limited { .. }
        );
        let problem = match (peer.ending().reason(), &error) {
            (Some(reason), _) => format!("it was lost before it was ready: {reason}"),
            (
                None,
                RequestError::NotSent(problem)
                | RequestError::Lost(problem)
                | RequestError::SessionLost(problem)
                | RequestError::Denied(problem)
                | RequestError::Limited { problem, .. }
                | RequestError::Failed { problem, .. }
                | RequestError::Malformed(problem)
                | RequestError::TooLarge(problem),
            ) => problem.clone(),
            (None, error) => error.to_string(),
        };
        Self { error: ConnectError { problem, source: Some(Box::new(error)) }, may_be_greeting }
    }
}

/// Greets the server and negotiates a version.
pub(super) async fn shake_hands(
    peer: &Peer,
    greeting: Greeting,
) -> Result<HandshakeResult, HandshakeError> {
    let discovered = match greeting {
        Greeting::Either => discover(peer).await?,
        Greeting::Modern => match discover(peer).await? {
            Some(greeted) => return Ok(greeted),
            None => {
                let problem = "it does not answer `server/discover`".to_owned();
                return Err(HandshakeError::for_good(ConnectError { problem, source: None }));
            }
        },
        Greeting::Legacy => None,
    };
    match discovered {
        Some(discovered) => Ok(discovered),
        None => initialize(peer).await,
    }
}

/// `None` if the server does not know the request.
async fn discover(peer: &Peer) -> Result<Option<HandshakeResult>, HandshakeError> {
    let version = ProtocolVersion::V_2026_07_28;
    peer.introduce(Some(version.clone()));
    let ask = || peer.ask(Request::Discover {}, result::plain::<DiscoverResult>);
    let asked = async {
        match ask().await {
            // It may list this version among those that it supports, and expect it again.
            Err(RequestError::Refused { code, .. })
                if ErrorCode(code) == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION =>
            {
                ask().await
            }
            first => first,
        }
    };
    match timeout(DISCOVER_WITHIN, asked).await {
        Ok(Ok(found)) if found.supported_versions.contains(&version) => {
            let named = found.server_info();
            let said = found.instructions.as_deref();
            Ok(Some(greeted(peer, &version, found.capabilities.clone(), named.as_ref(), said)))
        }
        Ok(Ok(found)) => {
            let error = unsupported(&found.supported_versions);
            Err(HandshakeError { error, may_be_greeting: true })
        }
        Ok(Err(RequestError::Refused { code, .. }))
            if !OF_NEW_SERVERS.contains(&ErrorCode(code)) =>
        {
            Ok(None)
        }
        Ok(Err(error)) => Err(HandshakeError::of(error, peer)),
        Err(_) => Ok(None),
    }
}

async fn initialize(peer: &Peer) -> Result<HandshakeResult, HandshakeError> {
    peer.introduce(None);
    let found =
        peer.ask(Request::initialize(peer.abilities()), result::plain::<InitializeResult>).await;
    let found = found.map_err(|error| HandshakeError::of(error, peer))?;
    let version = found.protocol_version;
    peer.transport().initialized(&version);
    if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) {
        return Err(HandshakeError::for_good(unsupported(&[version])));
    }
    if !version.has_initialize() {
        peer.introduce(Some(version.clone()));
    }
    peer.notify(message::initialized()).await.map_err(|error| HandshakeError::of(error, peer))?;
    let said = found.instructions.as_deref();
    Ok(greeted(peer, &version, found.capabilities.clone(), Some(&found.server_info), said))
}

fn greeted(
    peer: &Peer,
    version: &ProtocolVersion,
    capabilities: ServerCapabilities,
    named: Option<&Implementation>,
    instructions: Option<&str>,
) -> HandshakeResult {
    let intake = peer.intake();
    let server = ServerInfo {
        name: named.map(|named| intake.shown(&named.name)).unwrap_or_default(),
        version: named.map(|named| intake.shown(&named.version)).unwrap_or_default(),
        protocol: version.to_string(),
        capabilities: Arc::new(capabilities),
        instructions: instructions.map(Into::into),
    };
    HandshakeResult { server, is_legacy: version.has_initialize() }
}

fn unsupported(spoken: &[ProtocolVersion]) -> ConnectError {
    let listed = |versions: &[ProtocolVersion]| {
        versions.iter().map(ProtocolVersion::as_str).collect::<Vec<_>>().join(", ")
    };
    let problem = format!(
        "it speaks version `{}` of the protocol, which is not supported here; supported are {}",
        listed(spoken),
        listed(ProtocolVersion::KNOWN_VERSIONS)
    );
    ConnectError { problem, source: None }
}
