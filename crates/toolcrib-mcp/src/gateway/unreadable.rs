//! What a client is told of a message that cannot be read.

use std::borrow::Cow;

use rmcp::{
    ErrorData,
    model::{ErrorCode, RequestId, ServerJsonRpcMessage},
};
use serde_json::Value;
use toolcrib_core::PlainJson;

use super::{
    find_id::FindId,
    quoted::{bounded, shortened},
    routes::MAX_BODY,
};
use crate::envelope::Envelope;

/// A message that is refused before anything is done about it.
pub(super) struct Unreadable {
    /// The request's, where it has one that an answer can name.
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl Unreadable {
    /// A request that comes while another one of the same id is worked on. Their answers could not be
    /// told apart.
    pub(super) fn asked_already(id: RequestId) -> Self {
        let message = "a request with this id is still being answered; give each request its own";
        Self { id: Some(id), error: ErrorData::invalid_request(message, None) }
    }

    /// `initialize` in a request of the stateless era, which does not have that method.
    pub(super) fn no_handshake(id: RequestId) -> Self {
        Self { id: Some(id), error: no_method("initialize") }
    }

    /// A message that is longer than any may be, with what stands for its id.
    pub(super) fn too_long(id: Option<Value>) -> Self {
        let message = format!("a message has at most {MAX_BODY} bytes, and this one has more");
        Self { id: id.and_then(name), error: ErrorData::invalid_request(message, None) }
    }

    /// A message that is none. What is wrong with it is said without what it holds.
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
            wrong("this is no JSON-RPC 2.0: `jsonrpc` must be \"2.0\"")
        } else if has_id && id.is_none() {
            wrong("the `id` of a request must be a string, or an integer of at most 64 bits")
        } else if !method {
            wrong("this is no request: it has no `method`")
        } else {
            flaw(bytes)
        };
        Self { id, error }
    }

    /// The answer, as it is written. Without an id it has no `id`: so the protocol wants it.
    pub(super) fn answer(&self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(bounded(self.error.clone()), self.id.clone())
    }
}

/// The id and the method of a request, if it has an id that an answer can name.
pub(super) fn request_in(bytes: &[u8]) -> Option<(RequestId, Cow<'_, str>)> {
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).ok()?;
    Some((envelope.id.and_then(name)?, envelope.method?))
}

/// A method that does not exist here, or that the server does not declare.
pub(super) fn no_method(method: &str) -> ErrorData {
    let message = format!("there is no method `{}` here", shortened(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Whether nobody waits for an answer to this: it is an answer itself, or tells something. An answer
/// to such could be answered in turn, without end.
pub(super) fn is_unanswered(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Envelope<'_>>(bytes).is_ok_and(|envelope| match envelope.method {
        Some(_) => envelope.id.is_none(),
        None => envelope.is_answer(),
    })
}

/// Whether a message is JSON that different parsers read in different ways; see [`PlainJson`].
pub(super) fn is_ambiguous(bytes: &[u8]) -> bool {
    serde_json::from_slice::<PlainJson>(bytes).is_err_and(|error| error.is_data())
}

/// An id that an answer can name.
fn name(id: Value) -> Option<RequestId> {
    serde_json::from_value(id).ok()
}

fn flaw(bytes: &[u8]) -> ErrorData {
    if bytes.trim_ascii_start().starts_with(b"[") {
        let message = "messages are not taken in batches; send each by itself";
        return ErrorData::invalid_request(message, None);
    }
    // What is said of JSON that cannot be read quotes nothing.
    match serde_json::from_slice::<PlainJson>(bytes) {
        Err(error) if error.is_data() => {
            ErrorData::invalid_request(format!("this is not exactly one value: {error}"), None)
        }
        Err(error) => ErrorData::parse_error(format!("this cannot be read as JSON: {error}"), None),
        _ => ErrorData::invalid_request("this is no message of JSON-RPC 2.0", None),
    }
}
