use rmcp::transport::{DynamicTransportError, streamable_http_client::StreamableHttpError};
use toolcrib_scope::http::{HttpError, HttpErrorKind};

use super::super::carry::NotCarried;

/// What the protocol library is told of a request that failed.
pub(super) type Failure = StreamableHttpError<HttpFailure>;

/// Why there is no usable answer over HTTP.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    /// There is no whole answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A status that says no, with what came along.
    #[error("HTTP {status}: {text}")]
    Status { status: u16, text: String },
    /// An answer, but none of the protocol.
    #[error("{0}")]
    Unusable(String),
    /// The stream that should hold the answer ended without it.
    #[error("the answer broke off")]
    BrokenOff,
    /// It ended without it, and the server does not give the rest.
    #[error("the answer broke off, and cannot be resumed: {0}")]
    NotResumed(String),
    /// Nobody waits for it any more, so it was not sent.
    #[error("it was withdrawn")]
    Withdrawn,
}

impl From<HttpFailure> for Failure {
    fn from(failure: HttpFailure) -> Self {
        Self::Client(failure)
    }
}

impl HttpFailure {
    /// Whether the server has answered, and done with the request whatever it did. A server that
    /// reports trouble of its own, or a proxy in front of it, has not: the request may have been
    /// carried out.
    fn is_answer(&self) -> bool {
        match self {
            Self::Status { status, .. } => *status < 500,
            Self::Unusable(_) => true,
            Self::Http(error) => {
                matches!(error.kind(), HttpErrorKind::Redirect | HttpErrorKind::Unfit)
            }
            Self::BrokenOff | Self::NotResumed(_) | Self::Withdrawn => false,
        }
    }

    /// Whether the same request may come to something later. A server that says of a stream that
    /// somebody still reads it (409) has not noticed yet that it broke off.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Status { status: 409 | 429, .. }) || !self.is_answer()
    }

    /// Whether the server was reached, and may answer a request of another kind.
    fn may_be_of_request(&self) -> bool {
        match self {
            Self::Status { status, .. } => !matches!(status, 401 | 403 | 429),
            Self::Unusable(_) | Self::BrokenOff | Self::NotResumed(_) => true,
            Self::Http(error) => error.may_have_reached_server(),
            Self::Withdrawn => false,
        }
    }
}

/// Why a connection over HTTP was not opened, and whether it may be for how it was begun. `None`
/// where the error is not of HTTP.
pub(in super::super) fn why_not_connected(error: &DynamicTransportError) -> Option<(String, bool)> {
    let failure = error.error.downcast_ref::<Failure>()?;
    Some(match failure {
        StreamableHttpError::Client(failure) => (failure.to_string(), failure.may_be_of_request()),
        other => (other.to_string(), true),
    })
}

/// Why a request over HTTP has no usable answer, and whether it has one nevertheless. `None` where
/// the error is not of HTTP.
pub(in super::super) fn why_not_answered(error: &DynamicTransportError) -> Option<NotCarried> {
    error.error.downcast_ref::<Failure>().map(NotCarried::from)
}

impl From<&Failure> for NotCarried {
    fn from(failure: &Failure) -> Self {
        match failure {
            StreamableHttpError::Client(failure) => {
                Self { problem: failure.to_string(), is_answer: failure.is_answer() }
            }
            other => Self::broken(other.to_string()),
        }
    }
}
