//! The port to a transport: lines over pipes, or HTTP.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use rmcp::model::ProtocolVersion;

use super::{
    ending::Ending,
    exchange::Exchange,
    intake::Intake,
    types::{ConnectError, RemoteTool},
};
use crate::{oauth::Owner, server::CallerAccess};

/// State shared by the parts of one connection.
#[derive(Clone)]
pub(super) struct Wiring {
    pub(super) intake: Arc<Intake>,
    pub(super) ending: Arc<Ending>,
}

/// The caller of a connection.
#[derive(Clone, Copy)]
pub(crate) struct CallerContext<'a> {
    /// For its logins.
    pub(crate) owner: &'a Owner,
    /// Its additions to the declaration.
    pub(crate) access: &'a CallerAccess,
}

/// A way to reach one server.
pub(super) trait Dial: Send + Sync + 'static {
    /// The server for the operator.
    fn target(&self) -> &str;

    /// Starts or dials it for a caller, without a message of the protocol.
    fn dial(
        &self,
        wiring: Wiring,
        caller: CallerContext<'_>,
    ) -> BoxFuture<'static, Result<RawConnection, ConnectError>>;
}

/// A transport before the handshake.
pub(super) struct RawConnection {
    pub(super) transport: Arc<dyn Transport>,
    /// Reads the messages that belong to no request. It ends the connection, or ends with it, and is
    /// done when nothing of it is left. Dropped before, it leaves nothing either, without a farewell.
    pub(super) serving: BoxFuture<'static, ()>,
}

/// Sends messages to one server. It passes the server's messages to the intake.
pub(super) trait Transport: Send + Sync + 'static {
    /// Sends a request, once, unless it has been [withdrawn](Exchange::withdraw). Done when all
    /// writing and reading for it is finished. Its response goes to the intake, before that or
    /// after.
    ///
    /// Dropped, it sends nothing more, and reads no response; but a message on a shared stream that
    /// has been begun is written to its end.
    fn send(self: Arc<Self>, exchange: Arc<Exchange>) -> BoxFuture<'static, Result<(), SendError>>;

    /// Sends a notification, or the response to a request of the server.
    fn post(self: Arc<Self>, message: Vec<u8>) -> BoxFuture<'static, Result<(), SendError>>;

    /// Called after the response to `initialize`, before further messages.
    fn initialized(&self, _version: &ProtocolVersion) {}

    /// Whether a dropped [`send`](Self::send) cancels this request, without a notification.
    fn cancels_by_closing(&self, _exchange: &Exchange) -> bool {
        false
    }

    /// Finds the headers of calls in the schemas of listed tools, and marks the tools whose schemas
    /// declare invalid ones.
    fn listed(&self, _tools: &mut [RemoteTool]) {}
}

/// A message that was not sent, or a request whose response is missing. The [`Exchange`] knows
/// whether the server received its request.
#[derive(Debug)]
pub(super) struct SendError {
    /// For the operator.
    pub(super) problem: String,
    pub(super) kind: SendErrorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendErrorKind {
    /// The connection broke.
    Broken,
    /// The server no longer knows the session, and refused the request for that.
    SessionLost,
    /// The server has responded nevertheless, with an invalid response.
    Unusable,
    /// The server has responded with more than is read.
    TooLarge,
    /// The server has denied access: any other request would get the same.
    Denied,
    /// The server limits the rate. It permits the next request after this time, if it says so.
    Limited(Option<Duration>),
    /// The server, or a proxy in front of it, has failed with this status.
    Failed(u16),
}

impl SendError {
    pub(super) fn broken(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), kind: SendErrorKind::Broken }
    }
}
