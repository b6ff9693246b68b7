//! The messages of this client.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ErrorCode, Implementation, ProtocolVersion,
    RequestMetaObject, SubscriptionFilter,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolcrib_core::CancellationToken;

/// Receives a server's progress: a text, and the percentage done, 0 to 100.
pub(crate) type OnProgress = Arc<dyn Fn(String, Option<u8>) + Send + Sync>;

/// A request, serialized as its parameters.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Request {
    Discover {},
    Initialize(Box<ClientConfig>),
    ListTools {
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    CallTool {
        #[serde(rename = "name")]
        tool: Arc<str>,
        /// Shared with the caller, which may have to send it again.
        arguments: Arc<Map<String, Value>>,
        #[serde(skip)]
        idempotency_key: Arc<str>,
        /// The server's state to return, if it requested another call.
        #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
        state: Option<String>,
        #[serde(skip)]
        on_progress: OnProgress,
    },
    /// A subscription to changes of the tools.
    Listen {
        notifications: SubscriptionFilter,
        /// Fires when the server has acknowledged it.
        #[serde(skip)]
        acknowledged: CancellationToken,
    },
}

impl Request {
    /// A handshake with `initialize`.
    pub(super) fn initialize() -> Self {
        let (capabilities, client) = this_client();
        let config = ClientConfig::new(capabilities, client);
        let config = config.with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        Self::Initialize(Box::new(config))
    }

    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Discover {} => "server/discover",
            Self::Initialize(_) => "initialize",
            Self::ListTools { .. } => "tools/list",
            Self::CallTool { .. } => "tools/call",
            Self::Listen { .. } => "subscriptions/listen",
        }
    }

    /// Whether it is part of a handshake. The protocol has no cancellation of these.
    pub(super) fn is_greeting(&self) -> bool {
        matches!(self, Self::Discover {} | Self::Initialize(_))
    }

    /// The message, on one line and without its end.
    pub(super) fn to_json(
        &self,
        id: i64,
        introduction: Option<&Introduction>,
    ) -> serde_json::Result<Vec<u8>> {
        // Only calls report progress.
        let (progress_token, idempotency_key) = match self {
            Self::CallTool { idempotency_key, .. } => (Some(id), Some(&**idempotency_key)),
            _ => (None, None),
        };
        let introduction = introduction.map(|introduction| &introduction.meta);
        let has_meta = progress_token.is_some() || introduction.is_some();
        serde_json::to_vec(&Message {
            jsonrpc: "2.0",
            id,
            method: self.method(),
            params: Params {
                request: self,
                meta: has_meta.then_some(Meta { progress_token, idempotency_key, introduction }),
            },
        })
    }
}

/// The client's metadata, in each request since 2026-07-28; before, once in the handshake.
pub(super) struct Introduction {
    pub(super) version: ProtocolVersion,
    meta: RequestMetaObject,
}

impl Introduction {
    pub(super) fn new(version: ProtocolVersion) -> Self {
        let (capabilities, client) = this_client();
        let meta = RequestMetaObject::with_client_context(version.clone(), client, capabilities);
        Self { version, meta }
    }
}

#[derive(Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    #[serde(flatten)]
    request: &'a Request,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    progress_token: Option<i64>,
    #[serde(rename = "toolcrib/idempotency-key", skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(flatten)]
    introduction: Option<&'a RequestMetaObject>,
}

/// The end of a handshake with `initialize`.
pub(super) fn initialized() -> Vec<u8> {
    written(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

/// The cancellation of a request.
pub(super) fn cancelled(id: i64) -> Vec<u8> {
    let params = json!({ "requestId": id, "reason": "the caller no longer waits" });
    written(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
}

/// The response to a request of the server: this client answers pings and nothing else.
pub(super) fn reply(id: &Value, method: &str) -> Vec<u8> {
    written(&if method == "ping" {
        json!({ "jsonrpc": "2.0", "id": id, "result": {} })
    } else {
        let code = ErrorCode::METHOD_NOT_FOUND.0;
        let error = json!({ "code": code, "message": "this client has declared no capabilities" });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    })
}

fn written(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}

fn this_client() -> (ClientCapabilities, Implementation) {
    let this = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
    (ClientCapabilities::default(), this)
}
