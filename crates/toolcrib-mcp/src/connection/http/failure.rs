use rmcp::transport::{DynamicTransportError, streamable_http_client::StreamableHttpError};
use toolcrib_capabilities::http::{HttpError, HttpErrorKind};

use super::super::carry::NotCarried;

/// The error of a failed request, for the protocol library.
pub(super) type Failure = StreamableHttpError<HttpFailure>;

/// Why a response over HTTP is unusable.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    /// The response is incomplete.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An error status, with its text.
    #[error("HTTP {status}: {text}")]
    Status { status: u16, text: String },
    /// A response that is not of the protocol.
    #[error("{0}")]
    Unusable(String),
    /// The stream ended without the response.
    #[error("the answer broke off")]
    BrokenOff,
    /// The stream ended without the response, and the server does not resume it.
    #[error("the answer broke off, and cannot be resumed: {0}")]
    NotResumed(String),
    /// It was withdrawn before it was sent.
    #[error("it was withdrawn")]
    Withdrawn,
}

impl From<HttpFailure> for Failure {
    fn from(failure: HttpFailure) -> Self {
        Self::Client(failure)
    }
}

impl HttpFailure {
    /// Whether the server has responded, and finished the request in any way. After an internal
    /// error of a server, or of a proxy in front of it, the request may still be executed.
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

    /// Whether the same request may succeed later. A server that reports that a stream is still
    /// being read (409) has not noticed yet that it broke off.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Status { status: 409 | 429, .. }) || !self.is_answer()
    }

    /// Whether the server was reached, and may respond to a request of another kind.
    fn may_be_of_request(&self) -> bool {
        match self {
            Self::Status { status, .. } => !matches!(status, 401 | 403 | 429),
            Self::Unusable(_) | Self::BrokenOff | Self::NotResumed(_) => true,
            Self::Http(error) => error.may_have_reached_server(),
            Self::Withdrawn => false,
        }
    }
}

/// Why a connection over HTTP was not opened, and whether the kind of handshake may be the cause.
/// `None` if the error is not of HTTP.
pub(in super::super) fn why_not_connected(error: &DynamicTransportError) -> Option<(String, bool)> {
    let failure = error.error.downcast_ref::<Failure>()?;
    Some(match failure {
        StreamableHttpError::Client(failure) => (failure.to_string(), failure.may_be_of_request()),
        other => (other.to_string(), true),
    })
}

/// Why a request over HTTP has no usable response, and whether there was one nevertheless. `None`
/// if the error is not of HTTP.
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
