//! The messages of this client.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProtocolVersion, RequestMetaObject,
    SubscriptionFilter,
};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};
use toolcrib_core::{CancellationToken, ClientAbilities, ClientRefusal, Progress};

use super::{MarkedArguments, caller::Caller};

/// Receives a server's progress, with its count, and without an audience.
pub(crate) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// The next round of a request, after a response that requires one.
#[derive(Serialize, Default)]
pub(super) struct Round {
    /// The server's state to return.
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<String>,
    /// The responses to the server's requests.
    #[serde(rename = "inputResponses", skip_serializing_if = "Map::is_empty")]
    pub(super) responses: Map<String, Value>,
}

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
        /// The arguments that are copied to headers.
        #[serde(skip)]
        marked: MarkedArguments,
        #[serde(skip)]
        idempotency_key: Arc<str>,
        #[serde(skip)]
        traceparent: Option<Arc<str>>,
        #[serde(flatten)]
        round: Option<Round>,
        #[serde(skip)]
        on_progress: OnProgress,
        #[serde(skip)]
        caller: Option<Caller>,
    },
    /// A request of a method without a separate type.
    Plain {
        #[serde(skip)]
        method: &'static str,
        #[serde(flatten)]
        params: Arc<Map<String, Value>>,
        #[serde(flatten)]
        round: Option<Round>,
        #[serde(skip)]
        on_progress: Option<OnProgress>,
        #[serde(skip)]
        caller: Option<Caller>,
    },
    /// A subscription to changes.
    Listen {
        notifications: SubscriptionFilter,
        /// Fires when the server has acknowledged it.
        #[serde(skip)]
        acknowledged: CancellationToken,
    },
}

impl Request {
    /// A request without progress, for no client.
    pub(super) fn plain(method: &'static str, params: Map<String, Value>) -> Self {
        let params = Arc::new(params);
        Self::Plain { method, params, round: None, on_progress: None, caller: None }
    }

    /// A handshake with `initialize`.
    pub(super) fn initialize(can: ClientAbilities) -> Self {
        let (capabilities, client) = this_client(can);
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
            Self::Plain { method, .. } => method,
        }
    }

    /// The subject of a request of another method than `tools/call`, for intermediaries.
    pub(super) fn target(&self) -> Option<&str> {
        let Self::Plain { method, params, .. } = self else { return None };
        let key = match *method {
            "prompts/get" | "tools/call" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            _ => return None,
        };
        params.get(key).and_then(Value::as_str)
    }

    /// The client that it is made for.
    pub(super) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::CallTool { caller, .. } | Self::Plain { caller, .. } => caller.as_ref(),
            _ => None,
        }
    }

    /// The receiver of its progress.
    pub(super) fn on_progress(&self) -> Option<&OnProgress> {
        match self {
            Self::CallTool { on_progress, .. } => Some(on_progress),
            Self::Plain { on_progress, .. } => on_progress.as_ref(),
            _ => None,
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
        let progress_token = self.on_progress().map(|_| id);
        let (idempotency_key, traceparent) = match self {
            Self::CallTool { idempotency_key, traceparent, .. } => {
                (Some(&**idempotency_key), traceparent.as_deref())
            }
            _ => (None, None),
        };
        let introduction = introduction.map(|introduction| &introduction.meta);
        let passed_on = self.caller().and_then(Caller::meta);
        // In a session it is set once.
        let log_level = introduction.and_then(|_| self.caller()?.log_level());
        let has_meta = progress_token.is_some() || introduction.is_some() || passed_on.is_some();
        serde_json::to_vec(&Message {
            jsonrpc: "2.0",
            id,
            method: self.method(),
            params: Params {
                request: self,
                meta: has_meta.then_some(Meta {
                    progress_token,
                    idempotency_key,
                    traceparent,
                    log_level,
                    introduction,
                    passed_on,
                }),
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
    pub(super) fn new(version: ProtocolVersion, can: ClientAbilities) -> Self {
        let (capabilities, client) = this_client(can);
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
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", skip_serializing_if = "Option::is_none")]
    log_level: Option<&'a str>,
    #[serde(flatten)]
    introduction: Option<&'a RequestMetaObject>,
    #[serde(flatten)]
    passed_on: Option<&'a Map<String, Value>>,
}

/// The end of a handshake with `initialize`.
pub(super) fn initialized() -> Vec<u8> {
    written(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

/// The client's roots have changed.
pub(super) fn roots_changed() -> Vec<u8> {
    written(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }))
}

/// The cancellation of a request.
pub(super) fn cancelled(id: i64) -> Vec<u8> {
    let params = json!({ "requestId": id, "reason": "the caller no longer waits" });
    written(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
}

/// The response to a request of the server.
pub(super) fn reply(id: &Value, answer: Result<Value, ClientRefusal>) -> Vec<u8> {
    written(&match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(ClientRefusal { code, message }) => {
            let error = json!({ "code": code, "message": message });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    })
}

fn written(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}

fn this_client(can: ClientAbilities) -> (ClientCapabilities, Implementation) {
    let this = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
    let mut declared = Map::new();
    let parts = |parts: [(&str, bool); 2]| -> Value {
        let parts = parts.into_iter().filter(|(_, can)| *can);
        parts.map(|(part, _)| (part.to_owned(), json!({}))).collect::<Map<_, _>>().into()
    };
    if can.elicitation_form || can.elicitation_url {
        let modes = parts([("form", can.elicitation_form), ("url", can.elicitation_url)]);
        declared.insert("elicitation".to_owned(), modes);
    }
    if can.sampling {
        let more = parts([("tools", can.sampling_tools), ("context", can.sampling_context)]);
        declared.insert("sampling".to_owned(), more);
    }
    if can.roots {
        let announced = can.roots_changes.then(|| ("listChanged".to_owned(), true.into()));
        let roots: Map<_, _> = announced.into_iter().collect();
        declared.insert("roots".to_owned(), roots.into());
    }
    let declared = ClientCapabilities::deserialize(Value::Object(declared));
    (declared.unwrap_or_default(), this)
}
