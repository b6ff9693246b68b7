//! Errors for unreadable messages.

use std::borrow::Cow;

use rmcp::{
    ErrorData,
    model::{ErrorCode, RequestId, ServerJsonRpcMessage},
};
use serde_json::Value;
use toolcrib_core::__internal::PlainJson;
use toolcrib_mcp::__internal::Envelope;

use super::{
    find_id::FindId,
    quoted::{bounded, shortened},
    routes::MAX_BODY,
};

/// A message that is refused before it has any effect.
pub(super) struct Unreadable {
    /// The request's id, if a response can contain it.
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl Unreadable {
    /// A request with the id of another one in progress. Their responses could not be
    /// distinguished.
    pub(super) fn asked_already(id: RequestId) -> Self {
        let message = "a request with this id is still being answered; give each request its own";
        Self { id: Some(id), error: ErrorData::invalid_request(message, None) }
    }

    /// `initialize` in a request of the stateless era, which does not have that method.
    pub(super) fn no_handshake(id: RequestId) -> Self {
        Self { id: Some(id), error: no_method("initialize") }
    }

    /// A message that exceeds the size limit, with its id, if found.
    pub(super) fn too_long(id: Option<Value>) -> Self {
        let message = format!("a message has at most {MAX_BODY} bytes, and this one has more");
        Self { id: id.and_then(name), error: ErrorData::invalid_request(message, None) }
    }

    /// An invalid message. The error does not quote it.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(bytes) else {
            let id = FindId::of(bytes).and_then(name);
            return Self { id, error: flaw(bytes) };
        };
        let wrong = |message| ErrorData::invalid_request(message, None);
        let has_id = envelope.id.is_some();
        let method = envelope.method.is_some();
        let is_of_version = envelope.is_of_version();
        let id = envelope.id.and_then(name);
        let error = if !is_of_version {
            wrong("not valid JSON-RPC 2.0: `jsonrpc` must be \"2.0\"")
        } else if has_id && id.is_none() {
            wrong("the `id` of a request must be a string, or an integer of at most 64 bits")
        } else if !method {
            wrong("not a request: `method` is missing")
        } else {
            flaw(bytes)
        };
        Self { id, error }
    }

    /// The response, as written. Without an id it has no `id`, as the protocol requires.
    pub(super) fn answer(&self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(bounded(self.error.clone()), self.id.clone())
    }
}

/// The id and the method of a request, if a response can contain its id.
pub(super) fn request_in(bytes: &[u8]) -> Option<(RequestId, Cow<'_, str>)> {
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).ok()?;
    Some((envelope.id.and_then(name)?, envelope.method?))
}

/// A method that does not exist here, or that the server does not declare.
pub(super) fn no_method(method: &str) -> ErrorData {
    let message = format!("unknown method `{}`", shortened(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Whether it needs no response: it is a response itself, or a notification. An error for it could
/// be answered in turn, without end.
pub(super) fn is_unanswered(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Envelope<'_>>(bytes).is_ok_and(|envelope| match envelope.method {
        Some(_) => envelope.id.is_none(),
        None => envelope.is_answer(),
    })
}

/// Whether a message is JSON that parsers interpret differently; see [`PlainJson`].
pub(super) fn is_ambiguous(bytes: &[u8]) -> bool {
    PlainJson::read(bytes).is_err_and(|error| error.is_data())
}

/// An id that a response can contain.
fn name(id: Value) -> Option<RequestId> {
    serde_json::from_value(id).ok()
}

fn flaw(bytes: &[u8]) -> ErrorData {
    if bytes.trim_ascii_start().starts_with(b"[") {
        let message = "batches are not supported; send each message separately";
        return ErrorData::invalid_request(message, None);
    }
    // What is said of JSON that cannot be read quotes nothing.
    match PlainJson::read(bytes) {
        Err(error) if error.is_data() => {
            ErrorData::invalid_request(format!("this is not exactly one value: {error}"), None)
        }
        Err(error) => ErrorData::parse_error(format!("this is not valid JSON: {error}"), None),
        _ => ErrorData::invalid_request("this is not a message of JSON-RPC 2.0", None),
    }
}
