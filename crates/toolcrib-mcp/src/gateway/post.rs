//! `tools/call` over HTTP, read where the request is. rmcp copies each request and passes it and
//! its answer through several tasks; what is asked in the usual way need not go there.
//!
//! Only what is in perfect order and can have but one answer is taken here. Everything else is
//! rmcp's: what is wrong with a request it says, and a call of a session that takes longer it
//! answers as a stream, which a client may come back for.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE, HeaderName},
    request::Parts,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ProtocolVersion, RequestId,
        ServerJsonRpcMessage, ServerResult,
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;
use toolcrib_core::CancellationToken;

use super::{
    Serving,
    access::Caller,
    call::{self, Asked},
    connection::{Connection, Posted},
    session::Scope,
    sessions::Sessions,
};

/// How long a session's client waits for an answer that it cannot come back for.
const PATIENCE: Duration = Duration::from_millis(100);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

const CALL: &str = "tools/call";

/// A call that is in order.
pub(super) struct Post {
    id: RequestId,
    request: CallToolRequestParams,
    protocol: ProtocolVersion,
    /// Fires when it is not wanted any more.
    unwanted: CancellationToken,
    /// The session's; none in the stateless era.
    connection: Option<(Connection, Posted)>,
}

/// What became of it.
pub(super) enum Answered {
    /// The body of the answer.
    Whole(Bytes),
    /// It runs on.
    Later(Running),
}

/// A call that has begun. Travels with its request to where the answer is waited for.
#[derive(Clone)]
pub(super) struct Running {
    call: Arc<Mutex<Option<JoinHandle<Answer>>>>,
    /// Dropped with the request.
    _answered: Arc<DropGuard>,
}

type Answer = Result<CallToolResult, ErrorData>;

impl Post {
    /// Reads a request. None if it is not a call, or not one to be taken here.
    pub(super) async fn read(parts: &Parts, body: &[u8], sessions: &Sessions) -> Option<Self> {
        if !takes_json_and_events(&parts.headers) {
            return None;
        }
        let mut json = serde_json::Deserializer::from_slice(body);
        let message: Message<'_> = object(&mut json).ok()?;
        json.end().ok()?;
        let Params { name, arguments, meta } = message.params;
        if message.jsonrpc != "2.0" || message.method != CALL || meta.progress.is_some() {
            return None;
        }
        let headers = &parts.headers;
        let unwanted = CancellationToken::new();
        let (protocol, connection) = match meta.protocol {
            Some(protocol) if protocol == ProtocolVersion::V_2026_07_28 => {
                meta.capabilities?;
                let stands = |header, value: &str| only(headers, &header) == Some(value.as_bytes());
                let in_order = stands(PROTOCOL, protocol.as_str())
                    && stands(METHOD, CALL)
                    && stands(NAME, &name)
                    && !headers.contains_key(SESSION);
                (in_order.then_some(protocol)?, None)
            }
            Some(_) => return None,
            None => {
                let protocol = session_protocol(headers)?;
                let id = str::from_utf8(only(headers, &SESSION)?).ok()?;
                let connection = sessions.touched(id).await?;
                connection.session()?;
                let posted = connection.post(&message.id, unwanted.clone())?;
                (protocol, Some((connection, posted)))
            }
        };
        let mut request = CallToolRequestParams::new(name);
        request.arguments = arguments;
        Some(Self { id: message.id, request, protocol, unwanted, connection })
    }

    /// Makes the call. In the stateless era it ends when this is dropped, and in a session it runs
    /// on.
    pub(super) async fn answer(self, serving: &Serving, caller: Caller) -> Answered {
        let Self { id, request, protocol, unwanted, connection } = self;
        let (connection, posted) = connection.unzip();
        let answered = CancellationToken::new();
        let answering = answered.clone().drop_guard();
        let session = connection.as_ref().and_then(Connection::session).cloned();
        let scope = match session {
            Some(session) => Scope::Session(session),
            None => Scope::Request(serving.clone(), Arc::clone(&caller.access)),
        };
        let in_session = connection.is_some();
        let asked = Asked {
            id: id.to_string().into(),
            protocol: Some(protocol),
            connection,
            unwanted: unwanted.clone(),
            answered,
            progress: None,
        };
        // A task of its own, so that it comes to its end whatever becomes of the connection.
        let mut running = serving.running.spawn({
            let serving = serving.clone();
            async move {
                let answer = call::call(&serving, &caller, &scope, request, &asked).await;
                drop(posted);
                answer
            }
        });
        let answer = if in_session {
            tokio::select! {
                answer = &mut running => answer,
                () = tokio::time::sleep(PATIENCE) => {
                    return Answered::Later(Running::new(running, answering));
                }
            }
        } else {
            let _hung_up = unwanted.drop_guard();
            running.await
        };
        let answer = answer.unwrap_or_else(|_| Err(ended()));
        Answered::Whole(written(answer, id, in_session))
    }
}

impl Running {
    fn new(call: JoinHandle<Answer>, answering: DropGuard) -> Self {
        Self { call: Arc::new(Mutex::new(Some(call))), _answered: Arc::new(answering) }
    }

    /// Waits for the answer, which there is once.
    pub(super) async fn answer(&self) -> Answer {
        let running = self.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        match running {
            Some(running) => running.await.unwrap_or_else(|_| Err(ended())),
            None => Err(ended()),
        }
    }
}

fn ended() -> ErrorData {
    ErrorData::internal_error("the call ended without an answer", None)
}

/// An answer as rmcp writes it for the era.
fn written(answer: Answer, id: RequestId, in_session: bool) -> Bytes {
    let message = match answer {
        Ok(mut result) => {
            if in_session {
                result.result_type = None;
            }
            ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id)
        }
        Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
    };
    serde_json::to_vec(&message).unwrap_or_default().into()
}

/// The version that a session's request names, or the one that it means where it names none.
fn session_protocol(headers: &HeaderMap) -> Option<ProtocolVersion> {
    if !headers.contains_key(PROTOCOL) {
        return Some(ProtocolVersion::V_2025_03_26);
    }
    let named = only(headers, &PROTOCOL)?;
    ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .find(|known| known.as_str().as_bytes() == named)
        .filter(|known| known.as_str() < ProtocolVersion::STANDARD_HEADERS.as_str())
        .cloned()
}

/// Whether a request says that it is JSON, and that it takes JSON and events, as clients write it.
fn takes_json_and_events(headers: &HeaderMap) -> bool {
    let accepts = |kind: &str| {
        let kinds = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        // Commas in quotes part nothing.
        let kinds = kinds.filter(|kinds| !kinds.contains('"'));
        kinds.flat_map(|kinds| kinds.split(',')).any(|each| each.trim() == kind)
    };
    let is_json = |kind: &HeaderValue| {
        let kind = kind.to_str().unwrap_or_default();
        kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
    };
    headers.get(CONTENT_TYPE).is_some_and(is_json)
        && accepts("application/json")
        && accepts("text/event-stream")
}

/// The value of a header that stands once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        _ => None,
    }
}

/// A request of which nothing is to be said that is not read here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: &'a str,
    id: RequestId,
    #[serde(borrow)]
    method: &'a str,
    #[serde(deserialize_with = "object")]
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    arguments: Option<Map<String, Value>>,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

/// What is said about a request. Nothing depends on the rest, which is read all the same: what is no
/// JSON in it makes the message none.
#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    protocol: Option<ProtocolVersion>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<ClientCapabilities>,
    /// Who wants to hear of progress takes more than one answer.
    #[serde(rename = "progressToken")]
    progress: Option<IgnoredAny>,
    #[serde(flatten)]
    _rest: Map<String, Value>,
}

/// Reads what must be an object: a structure takes an array too, field by field.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(json: D) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    json.deserialize_map(Object(PhantomData))
}
