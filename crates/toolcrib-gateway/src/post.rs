//! `tools/call` over HTTP, processed in the request's task. rmcp copies each request and passes it
//! and its response through several tasks; common requests bypass it.
//!
//! Only valid requests with exactly one possible response are processed here. rmcp gets everything
//! else: it reports errors of requests, and answers longer calls of a session as a stream that a
//! client may come back for.

use std::{
    fmt,
    marker::PhantomData,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use parking_lot::Mutex;

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE, HeaderName},
    request::Parts,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResult, ProtocolVersion, RequestId, RequestMetaObject,
        ServerJsonRpcMessage, ServerResult,
    },
    transport::common::http_header::BASE64_HEADER_PREFIX,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};
use tokio::{runtime::Handle, task::JoinHandle, time::timeout};
use tokio_util::{sync::DropGuard, task::TaskTracker};
use toolcrib_core::{__internal::PlainJson, CancellationToken, changes_integers};

use super::{
    Serving,
    access::Caller,
    call::{self, Asked},
    connection::{Connection, Posted},
    session::Scope,
    sessions::Sessions,
};

/// How long a session's client waits for a response that it cannot come back for.
const PATIENCE: Duration = Duration::from_millis(100);

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

const CALL: &str = "tools/call";

/// A valid call.
pub(super) struct Post {
    id: RequestId,
    request: CallToolRequestParams,
    protocol: ProtocolVersion,
    /// Fires when it is no longer needed.
    unwanted: CancellationToken,
    /// The session's; `None` in the stateless era.
    connection: Option<(Connection, Posted)>,
}

/// The outcome.
pub(super) enum Answered {
    /// The body of the response.
    Whole(Bytes),
    /// It is still running.
    Later(Running),
}

/// A running call. Attached to its request for the task that waits for the response.
#[derive(Clone)]
pub(super) struct Running {
    call: Arc<Mutex<Option<JoinHandle<Answer>>>>,
    /// Dropped with the request.
    _answered: Arc<DropGuard>,
    _posted: Option<Arc<Posted>>,
}

type Answer = Result<CallToolResult, ErrorData>;

impl Post {
    /// Parses a request. `None` if it is not a call, or not one for this path.
    pub(super) fn read(parts: &Parts, body: &[u8], sessions: &Sessions) -> Option<Self> {
        if !takes_json_and_events(&parts.headers) {
            return None;
        }
        let mut json = serde_json::Deserializer::from_slice(body);
        let message: Message<'_> = object(&mut json).ok()?;
        json.end().ok()?;
        // It is refused where all that cannot be read is.
        if changes_integers(body) {
            return None;
        }
        let Params { name, arguments, meta } = message.params;
        if message.jsonrpc != "2.0" || message.method != CALL {
            return None;
        }
        // A request with a progress token needs a stream, not a single response.
        if meta.get_progress_token().is_some() {
            return None;
        }
        let headers = &parts.headers;
        let unwanted = CancellationToken::new();
        let (protocol, connection) = match meta.protocol_version() {
            Some(protocol) if protocol == ProtocolVersion::V_2026_07_28 => {
                meta.client_capabilities()?;
                let stands = |header, value: &str| only(headers, &header) == Some(value.as_bytes());
                let in_order = stands(PROTOCOL, protocol.as_str())
                    && stands(METHOD, CALL)
                    && stands(NAME, &name)
                    // A value that looks Base64-encoded would mean another name.
                    && !name.starts_with(BASE64_HEADER_PREFIX)
                    && !headers.contains_key(SESSION);
                (in_order.then_some(protocol)?, None)
            }
            Some(_) => return None,
            None => {
                if !names_an_era_with_sessions(headers) {
                    return None;
                }
                let id = str::from_utf8(only(headers, &SESSION)?).ok()?;
                let connection = sessions.touched(id)?;
                let protocol = connection.session()?.protocol.clone();
                let posted = connection.post(&message.id, unwanted.clone())?;
                (protocol, Some((connection, posted)))
            }
        };
        let mut request = CallToolRequestParams::new(name);
        request.arguments = arguments;
        Some(Self { id: message.id, request, protocol, unwanted, connection })
    }

    /// Makes the call. In the stateless era it ends when this is dropped, and in a session it
    /// continues.
    pub(super) async fn answer(self, serving: &Serving, caller: Caller) -> Answered {
        let Self { id, request, protocol, unwanted, connection } = self;
        let (connection, posted) = connection.unzip();
        // The id is in use while the call runs, and until its response is written.
        let posted = posted.map(Arc::new);
        let in_session = connection.is_some();
        // Without a session a call is for this response alone.
        let answered = if in_session { CancellationToken::new() } else { unwanted.clone() };
        let answering = answered.clone().drop_guard();
        let session = connection.as_ref().and_then(Connection::session).cloned();
        let scope = match session {
            Some(session) => Scope::Session(session),
            None => Scope::Request(serving.clone(), Arc::clone(&caller.access)),
        };
        let asked = Asked {
            id: id.to_string().into(),
            protocol: Some(protocol),
            connection,
            unwanted,
            answered,
            progress: None,
        };
        let mut begun = Begun::new(serving, {
            let (serving, posted) = (serving.clone(), posted.clone());
            async move {
                let answer = call::call(&serving, &caller, &scope, request, &asked).await;
                drop(posted);
                answer
            }
        });
        let answer = if in_session {
            match timeout(PATIENCE, &mut begun).await {
                Ok(answer) => answer,
                Err(_) => {
                    return Answered::Later(Running {
                        call: Arc::new(Mutex::new(begun.go_on())),
                        _answered: Arc::new(answering),
                        _posted: posted,
                    });
                }
            }
        } else {
            begun.await
        };
        Answered::Whole(written(answer, id, in_session))
    }
}

/// A call that runs in the request's task, which is quicker than a separate one. It is finished
/// even if the connection ends: on drop the rest of it becomes a task.
struct Begun {
    /// `None` once it has ended, or continues elsewhere.
    call: Option<BoxFuture<'static, Answer>>,
    running: TaskTracker,
}

impl Begun {
    fn new(serving: &Serving, call: impl Future<Output = Answer> + Send + 'static) -> Self {
        // A panic must not end the connection.
        let call = AssertUnwindSafe(call).catch_unwind();
        let call = call.map(|answer| answer.unwrap_or_else(|_| Err(ended())));
        Self { call: Some(call.boxed()), running: serving.running.clone() }
    }

    /// Lets it continue as a task. `None` if it has ended, or the gateway has.
    fn go_on(&mut self) -> Option<JoinHandle<Answer>> {
        let call = self.call.take()?;
        Some(self.running.spawn_on(call, &Handle::try_current().ok()?))
    }
}

impl Future for Begun {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(call) = &mut self.call else { return Poll::Ready(Err(ended())) };
        let answer = ready!(call.poll_unpin(cx));
        self.call = None;
        Poll::Ready(answer)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.go_on();
    }
}

impl Running {
    /// Waits for the response, which exists once.
    pub(super) async fn answer(&self) -> Answer {
        let running = self.call.lock().take();
        match running {
            Some(running) => running.await.unwrap_or_else(|_| Err(ended())),
            None => Err(ended()),
        }
    }
}

fn ended() -> ErrorData {
    ErrorData::internal_error("the call ended without an answer", None)
}

/// A response as rmcp writes it for the era.
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

/// Whether a session's request names a version that has sessions, or none.
fn names_an_era_with_sessions(headers: &HeaderMap) -> bool {
    let is_one = |named: &[u8]| {
        ProtocolVersion::KNOWN_VERSIONS
            .iter()
            .filter(|known| known.as_str() < ProtocolVersion::STANDARD_HEADERS.as_str())
            .any(|known| known.as_str().as_bytes() == named)
    };
    !headers.contains_key(PROTOCOL) || only(headers, &PROTOCOL).is_some_and(is_one)
}

/// Whether a request declares JSON, and accepts JSON and events, in the usual notation.
fn takes_json_and_events(headers: &HeaderMap) -> bool {
    let accepts = |kind: &str| {
        let kinds = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        // Commas in quotes do not separate.
        let kinds = kinds.filter(|kinds| !kinds.contains('"'));
        kinds.flat_map(|kinds| kinds.split(',')).any(|each| each.trim() == kind)
    };
    is_json(headers) && accepts(JSON) && accepts(EVENTS)
}

/// Whether a request declares JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(JSON))
}

/// Expands patterns in `Accept`, such as `*/*`: the protocol library does not support them.
pub(super) fn name_what_is_taken(headers: &mut HeaderMap) {
    let takes = |pattern: &str| {
        let kinds = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        kinds.flat_map(|kinds| kinds.split(',')).any(|each| {
            let mut parts = each.split(';').map(str::trim);
            let quality = |part: &str| part.strip_prefix("q=").and_then(|q| q.parse().ok());
            parts.next() == Some(pattern) && parts.filter_map(quality).all(|q: f32| q > 0.0)
        })
    };
    let (all, json, events) = (takes("*/*"), takes("application/*"), takes("text/*"));
    for (is_taken, kind) in [(all || json, JSON), (all || events, EVENTS)] {
        if is_taken {
            headers.append(ACCEPT, HeaderValue::from_static(kind));
        }
    }
}

/// The value of a header that occurs once.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        _ => None,
    }
}

/// A request with only the fields that are read here.
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
    #[serde(default, deserialize_with = "plain_object")]
    arguments: Option<Map<String, Value>>,
    #[serde(rename = "_meta", default)]
    meta: RequestMetaObject,
}

fn plain_object<'de, D: Deserializer<'de>>(
    json: D,
) -> Result<Option<Map<String, Value>>, D::Error> {
    match Option::deserialize(json)? {
        None => Ok(None),
        Some(PlainJson(Value::Object(arguments))) => Ok(Some(arguments)),
        Some(_) => Err(D::Error::custom("not an object")),
    }
}

/// Parses a value that must be an object: a struct would also accept an array, field by field.
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
