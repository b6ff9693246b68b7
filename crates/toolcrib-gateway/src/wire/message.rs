//! One message of a client, read once: every check and every handler sees the same value.

use bytes::Bytes;
use rmcp::{
    ErrorData,
    model::{
        ErrorCode, InitializeRequestParams, ProtocolVersion, RequestId, RequestMetaObject,
        ServerJsonRpcMessage, ServerResult,
    },
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use toolcrib_core::__internal::{PlainJson, shortened};

use super::{find_id::FindId, quoted::bounded};

/// The size limit of a message, in bytes: of a line, and of a body over HTTP.
pub(crate) const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// The limit of values in a message, as in the arguments of a call: each takes memory, and time of an
/// async worker.
const MOST_VALUES: usize = 100_000;

/// The handshake of the eras with sessions.
pub(crate) const INITIALIZE: &str = "initialize";

/// A valid message.
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// The response to a request of the server.
pub(crate) struct Response {
    pub(crate) id: RequestId,
    /// The result, or the error's code and message.
    pub(crate) outcome: Result<Value, (i32, String)>,
}

/// A message that needs a response.
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    /// `_meta` of the parameters.
    pub(crate) meta: RequestMetaObject,
    /// The protocol version in it.
    pub(crate) version: Option<ProtocolVersion>,
    /// The other parameters.
    pub(crate) params: Map<String, Value>,
}

/// The result of a request, in its response.
pub(crate) type Outcome = Result<ServerResult, ErrorData>;

/// A message that needs no response.
pub(crate) struct Notification {
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// An invalid message, and the error that answers it.
pub(crate) struct InvalidMessage {
    /// The request's id, if a response can contain it.
    pub(crate) id: Option<RequestId>,
    pub(crate) error: Box<ErrorData>,
    /// False for a response and a notification: an error for one could be answered in turn, without
    /// end.
    pub(crate) needs_response: bool,
}

impl Message {
    /// Reads one message of JSON-RPC 2.0.
    ///
    /// # Errors
    /// [`InvalidMessage`], whose error does not quote the message.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let is_array = || bytes.trim_ascii_start().starts_with(b"[");
        match PlainJson::read_at_most(MOST_VALUES, bytes) {
            Ok(Value::Object(fields)) => Self::of(fields),
            Ok(Value::Array(_)) => Err(InvalidMessage::new(None, batch())),
            Err(_) if is_array() => Err(InvalidMessage::new(None, batch())),
            Ok(_) => Err(InvalidMessage::new(None, no_message())),
            Err(error) => Err(InvalidMessage::not_json(bytes, &error)),
        }
    }

    fn of(fields: Map<String, Value>) -> Result<Self, InvalidMessage> {
        let [mut version, mut id, mut method, mut params, mut result, mut error] =
            [const { None }; 6];
        for (name, value) in fields {
            *match name.as_str() {
                "jsonrpc" => &mut version,
                "id" => &mut id,
                "method" => &mut method,
                "params" => &mut params,
                "result" => &mut result,
                "error" => &mut error,
                // Others are ignored.
                _ => continue,
            } = Some(value);
        }
        let is_response = result.is_some() || error.is_some();
        let (has_id, has_method) = (id.is_some(), method.is_some());
        let id = id.and_then(valid_id);
        let invalid = |error: ErrorData| InvalidMessage {
            needs_response: if has_method { has_id } else { !is_response },
            ..InvalidMessage::new(id.clone(), error)
        };
        let wrong = |message| invalid(ErrorData::invalid_request(message, None));
        if version.as_ref().and_then(Value::as_str) != Some("2.0") {
            return Err(wrong("not valid JSON-RPC 2.0: `jsonrpc` must be \"2.0\""));
        }
        if has_id && id.is_none() {
            return Err(wrong(
                "the `id` of a request must be a string, or an integer of at most 64 bits",
            ));
        }
        let method = match method {
            Some(Value::String(method)) => method,
            Some(_) => return Err(invalid(no_message())),
            None if is_response => {
                let id =
                    id.clone().ok_or_else(|| wrong("a response needs the id of its request"))?;
                return Ok(Self::Response(Response { id, outcome: outcome(result, error) }));
            }
            None => return Err(wrong("not a request: `method` is missing")),
        };
        let no_object = |name| {
            let message = format!("`{name}` must be an object");
            invalid(ErrorData::invalid_params(message, None))
        };
        let mut params = object(params).ok_or_else(|| no_object("params"))?;
        let Some(id) = id.clone() else {
            return Ok(Self::Notification(Notification { method, params }));
        };
        if matches!(&id, RequestId::String(text) if text.len() > MAX_ID) {
            return Err(wrong("the `id` of a request has at most 256 bytes"));
        }
        let meta = object(params.remove("_meta")).ok_or_else(|| no_object("_meta"))?;
        let meta = RequestMetaObject::from(meta);
        let version = meta.protocol_version();
        Ok(Self::Request(Request { id, method, meta, version, params }))
    }
}

impl Notification {
    /// The request that it cancels, if it is a cancellation.
    pub(crate) fn cancelled(self) -> Option<RequestId> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelledParams {
            request_id: RequestId,
        }
        let is_cancellation = self.method == CANCELLED;
        let params = is_cancellation.then(|| serde_json::from_value(self.params.into()))?;
        params.ok().map(|CancelledParams { request_id }| request_id)
    }
}

impl Request {
    /// Whether its metadata declares a version of the stateless era.
    pub(crate) fn declares_stateless(&self) -> bool {
        self.version.as_ref().is_some_and(|version| !version.has_initialize())
    }
}

impl InvalidMessage {
    /// A message that is answered with this error.
    pub(crate) fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self { id, error: error.into(), needs_response: true }
    }

    /// A request with the id of another one in progress. Their responses could not be
    /// distinguished.
    pub(crate) fn id_in_use(id: RequestId) -> Self {
        let message = "a request with this id is still being answered; give each request its own";
        Self::new(Some(id), ErrorData::invalid_request(message, None))
    }

    /// A message that exceeds the size limit, with its id, if found.
    pub(crate) fn too_long(id: Option<Value>) -> Self {
        let message = format!("a message has at most {MAX_MESSAGE} bytes, and this one has more");
        Self::new(id.and_then(valid_id), ErrorData::invalid_request(message, None))
    }

    fn not_json(bytes: &[u8], error: &serde_json::Error) -> Self {
        /// The kind of a message whose values cannot be read.
        #[derive(Deserialize)]
        struct Outline {
            id: Option<IgnoredAny>,
            method: Option<IgnoredAny>,
            result: Option<IgnoredAny>,
            error: Option<IgnoredAny>,
        }
        let outline = serde_json::from_slice::<Outline>(bytes);
        let needs_response = outline.map_or(true, |outline| match outline.method {
            Some(_) => outline.id.is_some(),
            None => outline.result.is_none() && outline.error.is_none(),
        });
        // The reader's errors quote nothing.
        let error = if error.is_data() {
            let message = format!("this is not exactly one value: {error}");
            ErrorData::invalid_request(message, None)
        } else {
            ErrorData::parse_error(format!("this is not valid JSON: {error}"), None)
        };
        Self { needs_response, ..Self::new(FindId::of(bytes).and_then(valid_id), error) }
    }

    /// The response. Without an id it has no `id`, as the protocol requires.
    pub(crate) fn response(self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(bounded(*self.error), self.id)
    }
}

/// A method that does not exist here, or that the server does not declare.
pub(crate) fn no_method(method: &str) -> ErrorData {
    let message = format!("unknown method `{}`", shortened(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// The outcome in a response.
fn outcome(result: Option<Value>, error: Option<Value>) -> Result<Value, (i32, String)> {
    let Some(error) = error else {
        return Ok(result.unwrap_or_default());
    };
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    Err((code.unwrap_or(ErrorCode::INTERNAL_ERROR.0), message.to_owned()))
}

/// An object, which is empty if it is absent.
fn object(value: Option<Value>) -> Option<Map<String, Value>> {
    match value {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(fields)) => Some(fields),
        Some(_) => None,
    }
}

/// The notification that cancels a request.
pub(crate) const CANCELLED: &str = "notifications/cancelled";

/// The longest id of a request, in bytes: stores and logs keep it.
const MAX_ID: usize = 256;

/// An id that a response can contain.
fn valid_id(id: Value) -> Option<RequestId> {
    serde_json::from_value(id).ok()
}

fn batch() -> ErrorData {
    let message = "batches are not supported; send each message separately";
    ErrorData::invalid_request(message, None)
}

fn no_message() -> ErrorData {
    ErrorData::invalid_request("this is not a message of JSON-RPC 2.0", None)
}

/// Whether the metadata of a stateless request is complete.
pub(crate) fn complete(meta: &RequestMetaObject) -> Result<(), ErrorData> {
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

pub(crate) fn notification(method: &str, params: &Value) -> Bytes {
    serde_json::json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string().into()
}

/// Whether metadata is the protocol's own, about one connection.
pub(crate) fn is_of_protocol(key: &str) -> bool {
    key.starts_with("io.modelcontextprotocol/")
}

/// The version that the parameters of `initialize` request.
pub(crate) fn requested_version(params: &Map<String, Value>) -> Result<ProtocolVersion, ErrorData> {
    let params = serde_json::from_value::<InitializeRequestParams>(params.clone().into());
    params.map(|params| params.protocol_version).map_err(|missing| {
        let message = format!("these are not the parameters of `{INITIALIZE}`: {missing}");
        ErrorData::invalid_params(message, None)
    })
}

/// A message as JSON, on one line.
pub(crate) fn json(message: &ServerJsonRpcMessage) -> Bytes {
    serde_json::to_vec(message).unwrap_or_default().into()
}
