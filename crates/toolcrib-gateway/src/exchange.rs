//! One request and its response: what all methods need of the client, whatever the transport.

use std::{panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use rmcp::{
    ErrorData,
    model::{
        DiscoverResult, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject,
        ServerJsonRpcMessage, ServerNotification, ServerResult,
    },
};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use toolcrib_core::CancellationToken;

use super::{
    Serving,
    access::Caller,
    call, changes,
    connection::Connection,
    events::EventStream,
    handshake::server_config,
    list,
    message::{Request, no_method},
    params::ParamHeaders,
    quoted::bounded,
    session::Session,
};

/// The context of a request.
pub(super) struct Exchange {
    pub(super) serving: Serving,
    pub(super) caller: Caller,
    pub(super) id: RequestId,
    pub(super) era: Era,
    /// The limits of the client's requests; none over HTTP without a session.
    pub(super) connection: Option<Connection>,
    /// The receiver of the request's notifications.
    pub(super) client: Outgoing,
    /// The token of progress, if the client requested it.
    pub(super) progress: Option<ProgressToken>,
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
        let ended = async {
            match &self.connection {
                Some(connection) => connection.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.unwanted.cancelled() => {}
            () = ended => {}
        }
    }

    /// Answers the request. A panic is an error of this request alone.
    pub(super) async fn answer(self, request: Request) -> Answer {
        let mut recheck = None;
        let outcome = AssertUnwindSafe(self.outcome(request, &mut recheck)).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(ErrorData::internal_error("the request ended without an answer", None))
        });
        let outcome = outcome.map(|mut result| {
            match self.era.version().has_initialize() {
                true => result.strip_result_type_for_legacy_peer(),
                false => result.fill_missing_cache_hints(),
            }
            result
        });
        Answer { recheck, ..Answer::new(self.id, outcome) }
    }

    async fn outcome(
        &self,
        request: Request,
        recheck: &mut Option<Recheck>,
    ) -> Result<ServerResult, ErrorData> {
        let is_stateless = !self.era.version().has_initialize();
        match request.method.as_str() {
            "tools/call" => call::call(self, request.params.into(), recheck).await.map(Into::into),
            "tools/list" => list::list(self, &request.params).await.map(Into::into),
            "server/discover" => self.discover().map(Into::into),
            "subscriptions/listen" if is_stateless => {
                changes::listen(self, request.params.into()).await.map(Into::into)
            }
            "ping" if !is_stateless => Ok(ServerResult::empty(())),
            method => Err(no_method(method)),
        }
    }

    fn discover(&self) -> Result<DiscoverResult, ErrorData> {
        let (gateway, access) = (&self.serving.gateway, &self.caller.access);
        gateway
            .check(access)
            .map_err(|error| ErrorData::internal_error(error.caller_text(), None))?;
        let config = server_config().with_instructions(gateway.instructions(access, false));
        Ok(DiscoverResult::from_server_info(ProtocolVersion::KNOWN_VERSIONS.to_vec(), config))
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
        let declared = meta.protocol_version();
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
    recheck: Option<Recheck>,
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
pub(super) struct Recheck(pub(super) Arc<Notify>);

impl Drop for Recheck {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// The receiver of notifications.
#[derive(Clone)]
pub(super) enum Outgoing {
    /// The lines of a client by stdio.
    Lines(mpsc::Sender<Bytes>),
    /// A stream over HTTP.
    Events(EventStream),
}

impl Outgoing {
    /// Sends a notification; false if the client reads nothing any more.
    pub(super) async fn notify(&self, notification: ServerNotification) -> bool {
        let message = json(&ServerJsonRpcMessage::notification(notification));
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
