//! A request, with the data of its client that every method needs on any transport.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use rmcp::{
    ErrorData,
    model::{ProtocolVersion, RequestId},
};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use toolcrib_core::{CancellationToken, ClientAbilities, ClientPort};
use toolcrib_mcp::__internal as mcp;

use super::{
    connection::Connection,
    context::ServeContext,
    downstream::{Downstream, Route},
    links::LinkOwner,
    log_messages::LogLevel,
    rounds::InputRequests,
    sender::{ClientSender, OpenRequest, RecheckOnDrop},
    session::Session,
};
use crate::{
    access::{Access, Caller, access_log::AccessEntry},
    wire::{
        message::{Request, complete, is_of_protocol},
        params::ParamHeaders,
    },
};

/// The metadata with a client's capabilities, in the stateless era.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request's caller, client and limits.
pub(crate) struct ClientRequest {
    pub(crate) serving: ServeContext,
    /// The permit of its token, if that limits concurrent calls.
    pub(crate) limit: Option<OwnedSemaphorePermit>,
    pub(crate) caller: Caller,
    pub(crate) id: RequestId,
    pub(crate) era: Era,
    /// The limits of the client's requests; none over HTTP without a session.
    pub(crate) connection: Option<Connection>,
    /// The receiver of the request's notifications.
    pub(crate) client: ClientSender,
    /// The receiver of the messages of its call.
    pub(crate) open: OpenRequest,
    /// The receiver of servers' requests that the client answers in a further round.
    pub(crate) asks: Option<mpsc::Sender<InputRequests>>,
    /// The headers that repeat arguments; absent by stdio.
    pub(crate) headers: Option<ParamHeaders>,
    /// Fires when the client no longer needs a response.
    pub(crate) unwanted: CancellationToken,
}

impl ClientRequest {
    /// A permit of the connection, until it is dropped.
    pub(crate) fn place(&self) -> Result<Option<OwnedSemaphorePermit>, ErrorData> {
        self.connection.as_ref().map(Connection::place).transpose()
    }

    /// Done when the client cancels the request, or has gone.
    pub(crate) async fn no_longer_needed(&self) {
        tokio::select! {
            biased;
            () = self.unwanted.cancelled() => {}
            () = ended(self.connection.as_ref()) => {}
        }
    }

    /// An entry of the access log about this request.
    pub(crate) fn log_entry(&self, method: &'static str) -> AccessEntry {
        let mut entry = AccessEntry::new(method, Some(&self.caller));
        entry.session = self.era.session().map(|session| Arc::clone(&session.id));
        entry.protocol = Some(self.era.version().to_string());
        entry
    }

    /// Whether the client may receive progress of its call: further rounds have their own tokens.
    pub(crate) fn may_report(&self) -> bool {
        self.asks.is_some() || self.open.progress().is_some()
    }

    /// The client's abilities for servers.
    pub(crate) fn abilities(&self, request: &Request) -> ClientAbilities {
        match &self.era {
            Era::Session(session) => session.client.abilities,
            Era::Stateless(_) => {
                let declared = request.meta.0.get(CAPABILITIES);
                declared.map(mcp::abilities).unwrap_or_default()
            }
        }
    }

    /// The client, for the servers that this request reaches.
    pub(crate) fn client(
        &self,
        mut meta: Map<String, Value>,
        abilities: ClientAbilities,
    ) -> Downstream {
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
}

/// Done when responses to a connection are no longer needed.
pub(crate) async fn ended(connection: Option<&Connection>) {
    match connection {
        Some(connection) => connection.ended().await,
        None => std::future::pending().await,
    }
}

/// A request in progress, and its client.
pub(crate) struct RequestContext<'a> {
    pub(crate) request: &'a ClientRequest,
    /// Its client, for the servers that it reaches.
    pub(crate) port: &'a Arc<dyn ClientPort>,
    /// Set by a call that may have changed the menu of its session.
    pub(crate) recheck: &'a OnceLock<RecheckOnDrop>,
}

impl Deref for RequestContext<'_> {
    type Target = ClientRequest;

    fn deref(&self) -> &ClientRequest {
        self.request
    }
}

impl RequestContext<'_> {
    /// The owner of the links in its results; `None` for a request over HTTP whose caller cannot be
    /// recognized at its next one.
    pub(crate) fn link_owner(&self) -> Option<LinkOwner> {
        let Access { tenant, principal, personality, .. } = &*self.caller.access;
        let session = match principal {
            Some(_) => None,
            None => self.era.session().map(|session| Arc::clone(&session.id)),
        };
        let is_known = principal.is_some() || session.is_some() || self.caller.peer.is_none();
        is_known.then(|| LinkOwner {
            tenant: tenant.clone(),
            principal: principal.clone(),
            personality: personality.clone(),
            session,
        })
    }
}

/// The era of a request, with its version of the protocol.
pub(crate) enum Era {
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
    pub(crate) fn of(request: &Request, session: Option<&Arc<Session>>) -> Result<Self, ErrorData> {
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
    pub(crate) fn version(&self) -> &ProtocolVersion {
        match self {
            Self::Session(session) => &session.protocol,
            Self::Stateless(version) => version,
        }
    }

    /// The session.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Session(session) => Some(session),
            Self::Stateless(_) => None,
        }
    }
}
