use std::{sync::Arc, time::Duration};

use toolcrib_capabilities::http::{HttpError, HttpErrorKind};

use super::super::transport::{SendError, SendErrorKind};
use crate::oauth::OAuthError;

/// Why a response over HTTP is missing or unusable.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    /// The response is incomplete.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An error status, with its text.
    #[error("HTTP {status}: {text}")]
    Status { status: u16, text: String, wait: Option<Duration> },
    /// The first request found nothing at this path.
    #[error(
        "there is no MCP endpoint at `{path}` (HTTP 404); correct the path of its URL, or ask who \
         runs the server{}",
        quoted(text)
    )]
    NoEndpoint { path: String, text: String },
    /// It was not sent, because no token could be had.
    #[error("no token: {0}")]
    NoToken(Arc<OAuthError>),
    /// It was refused for its token, or because it had none.
    #[error("{0}")]
    Unauthorized(Arc<OAuthError>),
    /// A response that is not of the protocol.
    #[error("{0}")]
    Unusable(String),
    /// A response of more than is read.
    #[error("{0}")]
    TooLarge(String),
    /// The stream ended without the response.
    #[error("the answer broke off")]
    BrokenOff,
    /// The stream ended without the response, and the server does not resume it.
    #[error("the answer broke off, and cannot be resumed: {0}")]
    NotResumed(String),
    /// The server no longer knows the session.
    #[error("its session has expired (HTTP {status})")]
    SessionExpired { status: u16 },
    /// It did not confirm a notification in time.
    #[error("it did not confirm a message in time")]
    Silent,
    /// It was withdrawn before it was sent.
    #[error("it was withdrawn")]
    Withdrawn,
}

impl HttpFailure {
    /// Whether the same request may succeed later. A server that reports that a stream is still
    /// being read (409) has not noticed yet that it broke off.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Status { status: 409 | 429, .. })
            || matches!(self.kind(), SendErrorKind::Broken | SendErrorKind::Failed(_))
    }

    /// Whether nothing of it has reached the server.
    pub(super) fn is_before_sending(&self) -> bool {
        match self {
            Self::Http(error) => !error.may_have_reached_server(),
            Self::NoToken(_) => true,
            _ => false,
        }
    }

    /// Whether it is a status that blames the request, and access is not the problem.
    pub(super) fn is_of_request(&self) -> bool {
        matches!(self, Self::Status { status: 400..500, .. })
            && !matches!(self, Self::Status { status: 401 | 403, .. })
    }

    /// Whether the server has responded, and finished the request in any way. After an internal
    /// error of a server, or of a proxy in front of it, the request may still be executed.
    fn kind(&self) -> SendErrorKind {
        match self {
            Self::Status { status: 401 | 403, .. } | Self::Unauthorized(_) => SendErrorKind::Denied,
            Self::Status { status: 429, wait, .. } => SendErrorKind::Limited(*wait),
            Self::SessionExpired { .. } => SendErrorKind::SessionLost,
            Self::Status { status: status @ 500.., .. } => SendErrorKind::Failed(*status),
            Self::Status { .. } | Self::NoEndpoint { .. } | Self::Unusable(_) => {
                SendErrorKind::Unusable
            }
            Self::TooLarge(_) => SendErrorKind::TooLarge,
            Self::Http(error) => match error.kind() {
                HttpErrorKind::Redirect | HttpErrorKind::Unfit => SendErrorKind::Unusable,
                _ => SendErrorKind::Broken,
            },
            Self::NoToken(_)
            | Self::BrokenOff
            | Self::NotResumed(_)
            | Self::Silent
            | Self::Withdrawn => SendErrorKind::Broken,
        }
    }
}

/// The text of a response, after a message about it.
fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; it responded: {text}") }
}

impl From<HttpFailure> for SendError {
    fn from(failure: HttpFailure) -> Self {
        Self { problem: failure.to_string(), kind: failure.kind() }
    }
}
