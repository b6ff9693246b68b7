//! Responses over HTTP: whole ones, streams of events, and refusals.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt as _, Full};
use rmcp::{
    ErrorData,
    model::{ErrorCode, RequestId, ServerJsonRpcMessage},
};
use serde_json::json as json_value;

use super::{
    events::Body,
    headers::{EVENTS, JSON},
    message::{self, InvalidMessage},
    quoted::bounded,
};

/// A request that is not answered.
pub(crate) struct Refusal {
    status: StatusCode,
    reason: Reason,
    /// The cause, for the operator, if the client does not receive it.
    cause: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

enum Reason {
    /// Outside of the protocol.
    Http(String),
    /// An error of the protocol, with the id of the request, if it is known.
    Protocol(Option<RequestId>, Box<ErrorData>),
}

impl Refusal {
    /// A refusal before the protocol.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, reason: Reason::Http(message.into()), cause: None, headers: Vec::new() }
    }

    /// A refusal by the protocol.
    pub(crate) fn of(id: Option<RequestId>, error: ErrorData) -> Self {
        let status = match error.code {
            ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        let reason = Reason::Protocol(id, bounded(error).into());
        Self { status, reason, cause: None, headers: Vec::new() }
    }

    /// The same with another status.
    pub(crate) fn status_is(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The same with a cause that only the operator receives.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The same with a response header.
    pub(crate) fn header(mut self, header: (HeaderName, HeaderValue)) -> Self {
        self.headers.push(header);
        self
    }

    /// The same with the time after which the client may try again, in whole seconds.
    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.header((RETRY_AFTER, HeaderValue::from(seconds.max(1))))
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The reason, for the log.
    pub(crate) fn for_operator(&self) -> &str {
        match (&self.cause, &self.reason) {
            (Some(cause), _) => cause,
            (None, Reason::Http(message)) => message,
            (None, Reason::Protocol(_, error)) => &error.message,
        }
    }

    pub(crate) fn response(self) -> Response<Body> {
        let body = match self.reason {
            Reason::Http(message) => json_value!({ "error": message }).to_string().into(),
            Reason::Protocol(id, error) => message::json(&ServerJsonRpcMessage::error(*error, id)),
        };
        let mut response = json(self.status, body);
        response.headers_mut().extend(self.headers);
        response
    }
}

impl From<InvalidMessage> for Refusal {
    fn from(invalid: InvalidMessage) -> Self {
        Self::of(invalid.id, *invalid.error)
    }
}

/// A response of JSON.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = whole(status, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// A response with a whole body.
pub(crate) fn whole(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// A response of events.
pub(crate) fn events(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // A proxy that collects a response would delay its events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
