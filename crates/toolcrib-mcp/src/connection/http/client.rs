//! The HTTP transport of the protocol library, on a restricted client.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use bytes::Bytes;
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use tokio::time::{Instant, sleep, timeout};
use toolcrib_capabilities::http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpRequest, HttpStream, Method,
    StatusCode, header,
};
use toolcrib_core::CancellationToken;

use super::{
    super::{call::Call, intake::Intake, open::Wiring},
    events::{Events, events},
    failure::{Failure, HttpFailure},
    names::Annotated,
};

/// The size limit of a JSON response: 16 MiB. It is kept in memory whole.
const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;
/// The size limit of the body of an error response: 64 KiB.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The timeout of ending a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time without a response after which a session is probed before a call, and the timeout of
/// the probe.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_WITHIN: Duration = Duration::from_secs(2);
/// A probe. Neither the protocol library nor a call uses its id.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"toolcrib-probe","method":"ping"}"#;

/// The reason of a connection's end when the server no longer knows its session.
const SESSION_EXPIRED: &str = "its session has expired (HTTP 404)";

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_AND_EVENTS: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Sends and reads for one connection: for the protocol library, and [bypassing
/// it](super::carrier).
#[derive(Clone)]
pub(super) struct Client(pub(super) Arc<Shared>);

pub(super) struct Shared {
    http: HttpClient,
    url: Arc<str>,
    headers: HeaderMap,
    pub(super) wiring: Wiring,
    /// The time of the server's last response.
    heard: Mutex<Instant>,
    has_streamed: AtomicBool,
    /// The headers of each request after a handshake with `initialize`.
    after_handshake: OnceLock<HeaderMap>,
    pub(super) annotated: Annotated,
}

/// The head of a response, before its body is read.
pub(super) enum Head {
    /// Accepted, without a response here.
    Accepted,
    Events(HttpStream),
    Json(HttpStream),
    /// An error status.
    Refusal(HttpStream),
    /// Not a response of the protocol.
    Other(HttpStream),
}

/// The body of an error response.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// The protocol error in it.
    pub(super) said: Option<ErrorData>,
    pub(super) text: String,
}

impl From<Refusal> for HttpFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Status { status: refusal.status.as_u16(), text: refusal.text }
    }
}

impl Client {
    pub(super) fn new(http: HttpClient, url: Arc<str>, headers: HeaderMap, wiring: Wiring) -> Self {
        Self(Arc::new(Shared {
            http,
            url,
            headers,
            wiring,
            heard: Mutex::new(Instant::now()),
            has_streamed: AtomicBool::new(false),
            after_handshake: OnceLock::new(),
            annotated: Annotated::default(),
        }))
    }

    fn request(
        &self,
        method: Method,
        session: Option<&str>,
        of_the_protocol: HashMap<HeaderName, HeaderValue>,
    ) -> Result<HttpRequest, HttpFailure> {
        let mut headers = self.0.headers.clone();
        headers.extend(of_the_protocol);
        if let Some(session) = session {
            headers.insert(SESSION_ID, value(session)?);
        }
        Ok(self.with(method, headers))
    }

    /// A request after the handshake, in its session, if any.
    pub(super) fn after_handshake(&self, method: Method) -> HttpRequest {
        let headers = self.0.after_handshake.get().unwrap_or(&self.0.headers);
        self.with(method, headers.clone())
    }

    fn with(&self, method: Method, headers: HeaderMap) -> HttpRequest {
        let mut request = HttpRequest::new(method, &*self.0.url);
        request.headers = headers;
        request.max_redirects = 0;
        request.max_body_bytes = usize::MAX;
        // The waiting task has its own timeout.
        request.timeout = None;
        request
    }

    /// Sends a message, and reads the response headers.
    pub(super) async fn post(
        &self,
        json: Vec<u8>,
        mut request: HttpRequest,
        call: Option<&Call>,
    ) -> Result<Head, Failure> {
        request.body = Some(Bytes::from(json));
        request.headers.insert(header::ACCEPT, JSON_AND_EVENTS);
        request.headers.insert(header::CONTENT_TYPE, JSON);
        if call.is_some_and(|call| !call.begin()) {
            return Err(HttpFailure::Withdrawn.into());
        }
        let had_session = request.headers.contains_key(SESSION_ID);
        let Wiring { intake, ending, .. } = &self.0.wiring;
        let answer = self.0.http.stream(request, ending.token()).await.map_err(|error| {
            if !error.may_have_reached_server()
                && let Some(call) = call
            {
                call.revert();
            }
            // While other calls wait, their responses show whether the server is still alive.
            if matches!(error, HttpError::Connect { .. }) && !intake.has_other_calls() {
                ending.end(error.to_string());
            }
            HttpFailure::Http(error)
        })?;
        *self.0.heard.lock() = Instant::now();
        Ok(match answer.status() {
            StatusCode::NOT_FOUND if had_session => {
                // A response, but no proof that nothing was done: the request counts as sent.
                ending.end(SESSION_EXPIRED);
                return Err(StreamableHttpError::SessionExpired);
            }
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Head::Accepted,
            status if !status.is_success() => Head::Refusal(answer),
            _ if is_of(&answer, &EVENTS) => Head::Events(answer),
            _ if is_of(&answer, &JSON) => Head::Json(answer),
            _ => Head::Other(answer),
        })
    }

    /// Whether the server has not responded for long.
    pub(super) fn is_silent(&self) -> bool {
        let heard = *self.0.heard.lock();
        heard.elapsed() > PROBE_AFTER
    }

    /// Probes whether the server still knows the session: a call that meets an expired one counts
    /// as made. Any other response, or a timeout, means nothing.
    pub(super) async fn probe_session(&self) -> Result<(), Failure> {
        let request = self.after_handshake(Method::POST);
        if !request.headers.contains_key(SESSION_ID) {
            return Ok(());
        }
        match timeout(PROBE_WITHIN, self.post(PING.to_vec(), request, None)).await {
            Ok(Err(expired @ StreamableHttpError::SessionExpired)) => Err(expired),
            _ => Ok(()),
        }
    }

    /// A response that is one JSON message, which may only be that to this request, and the
    /// intake's verdict.
    pub(super) async fn json(
        &self,
        answer: HttpStream,
        id: Option<&RequestId>,
    ) -> Result<(Vec<u8>, Option<ServerJsonRpcMessage>), HttpFailure> {
        let body = read(answer, MAX_JSON_BYTES).await?;
        let bytes = body.len();
        let intake = &self.0.wiring.intake;
        let (of_body, id) = (Arc::clone(intake), id.cloned());
        let taking = move || (of_body.take_answer_to(id.as_ref(), &body), body);
        let (taken, body) =
            intake.off_worker(bytes, taking).await.map_err(HttpFailure::Unusable)?;
        if let Some(pause) = taken.pause {
            sleep(pause).await;
        }
        if let Some(reason) = taken.hopeless {
            self.0.wiring.ending.end(reason);
        }
        Ok((body, taken.message))
    }

    /// The events of a call's response after the event of this id; `None` if the server cannot be
    /// reached now. An error is final: a retry would get the same.
    pub(super) async fn resumed(&self, last_event_id: &str) -> Result<Option<HttpStream>, Failure> {
        let mut request = self.after_handshake(Method::GET);
        request.headers.insert(header::ACCEPT, EVENTS);
        request.headers.insert(LAST_EVENT_ID, value(last_event_id)?);
        let has_session = request.headers.contains_key(SESSION_ID);
        let ending = &self.0.wiring.ending;
        let answer = match self.0.http.stream(request, ending.token()).await {
            Ok(answer) => answer,
            Err(error) => return not_resumed(&HttpFailure::Http(error)),
        };
        match answer.status() {
            StatusCode::NOT_FOUND if has_session => {
                ending.end(SESSION_EXPIRED);
                Err(StreamableHttpError::SessionExpired)
            }
            status if !status.is_success() => {
                not_resumed(&refusal(answer, &self.0.wiring.intake).await.into())
            }
            _ if is_of(&answer, &EVENTS) => Ok(Some(answer)),
            _ => not_resumed(&HttpFailure::Unusable(not_of_the_protocol(
                &answer,
                &self.0.wiring.intake,
            ))),
        }
    }
}

/// The meaning of a failure to resume a stream. The call may still have been executed.
fn not_resumed(failure: &HttpFailure) -> Result<Option<HttpStream>, Failure> {
    if failure.may_pass() {
        return Ok(None);
    }
    Err(HttpFailure::NotResumed(failure.to_string()).into())
}

/// The body of an error response.
pub(super) async fn refusal(answer: HttpStream, intake: &Intake) -> Refusal {
    let status = answer.status();
    let is_json = is_of(&answer, &JSON);
    let challenge = challenge(&answer);
    let body = read(answer, MAX_ERROR_BYTES).await.unwrap_or_default();
    let lets_nobody_in = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // A request that is refused before it is parsed has no id in the response.
    let said = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(refused)) if is_json && !lets_nobody_in => {
            Some(refused.error)
        }
        _ => None,
    };
    let text = match challenge {
        Some(challenge) => format!("it requires authorization: {challenge}"),
        None => intake.preview(&body),
    };
    Refusal { status, said, text }
}

/// The error for a response that belongs to no request.
pub(super) fn of_no_request(body: &[u8], intake: &Intake) -> HttpFailure {
    HttpFailure::Unusable(format!("its response belongs to no request: {}", intake.preview(body)))
}

impl StreamableHttpClient for Client {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let intake = &self.0.wiring.intake;
        let session = session_id.as_deref();
        let request = self.request(Method::POST, session, custom_headers)?;
        if is_initialized(&message) {
            // From here on calls bypass this, with the same headers.
            let _ = self.0.after_handshake.set(request.headers.clone());
        }
        intake.expect(&message);
        let _owed = intake.owed(&message);
        let call = Call::of(&message);
        let json = serde_json::to_vec(&message)?;
        let head = self.post(json, request, call.as_deref()).await?;
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        match head {
            Head::Accepted => Ok(StreamableHttpPostResponse::Accepted),
            Head::Refusal(answer) => {
                let mut refusal = refusal(answer, &self.0.wiring.intake).await;
                let lets_in =
                    !matches!(refusal.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
                let may_be_of_era =
                    refusal.status.is_client_error() && lets_in && session.is_none();
                if refusal.said.is_none() && may_be_of_era && is_discovery(&message) {
                    let text = format!("HTTP {}: {}", refusal.status.as_u16(), refusal.text);
                    refusal.said = Some(ErrorData::invalid_request(text, None));
                }
                match (id, refusal.said.take()) {
                    (Some(id), Some(error)) => {
                        intake.forget(id);
                        let message = ServerJsonRpcMessage::error(error, Some(id.clone()));
                        Ok(StreamableHttpPostResponse::Json(message, None))
                    }
                    _ => Err(HttpFailure::from(refusal).into()),
                }
            }
            Head::Events(answer) => {
                let session = session_of(&answer);
                let events = events(answer, &self.0.wiring, id.cloned());
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Head::Json(answer) => {
                let session = session_of(&answer);
                let (body, message) = self.json(answer, id).await?;
                let Some(id) = id else { return Ok(StreamableHttpPostResponse::Accepted) };
                match message {
                    Some(
                        message @ (ServerJsonRpcMessage::Response(_)
                        | ServerJsonRpcMessage::Error(_)),
                    ) => Ok(StreamableHttpPostResponse::Json(with_id(message, id), session)),
                    _ => Err(of_no_request(&body, &self.0.wiring.intake).into()),
                }
            }
            Head::Other(answer) if id.is_none() => {
                // A notification is accepted, whatever the response contains.
                let _ = read(answer, MAX_ERROR_BYTES).await;
                Ok(StreamableHttpPostResponse::Accepted)
            }
            Head::Other(answer) => {
                Err(HttpFailure::Unusable(not_of_the_protocol(&answer, &self.0.wiring.intake))
                    .into())
            }
        }
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let Wiring { intake, ending, .. } = &self.0.wiring;
        let mut request = self.request(Method::GET, session_id.as_deref(), custom_headers)?;
        request.headers.insert(header::ACCEPT, EVENTS);
        let is_resumed = last_event_id.is_some();
        if let Some(last) = last_event_id {
            request.headers.insert(LAST_EVENT_ID, value(&last)?);
        }
        let answer =
            self.0.http.stream(request, ending.token()).await.map_err(HttpFailure::Http)?;
        match answer.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let challenge = challenge(&answer).unwrap_or_default();
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
            }
            StatusCode::NOT_FOUND if session_id.is_some() => {
                Err(StreamableHttpError::SessionExpired)
            }
            status if !status.is_success() => {
                let text = not_of_the_protocol(&answer, &self.0.wiring.intake);
                Err(HttpFailure::Status { status: status.as_u16(), text }.into())
            }
            _ if is_of(&answer, &EVENTS) => {
                if self.0.has_streamed.swap(true, Ordering::Relaxed) && !is_resumed {
                    // Changes in between were not announced.
                    intake.signal_changed_tools();
                }
                Ok(events(answer, &self.0.wiring, None))
            }
            _ => {
                Err(HttpFailure::Unusable(not_of_the_protocol(&answer, &self.0.wiring.intake))
                    .into())
            }
        }
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let mut request = self.request(Method::DELETE, Some(&*session_id), custom_headers)?;
        request.timeout = Some(DELETE_TIMEOUT);
        request.max_body_bytes = MAX_ERROR_BYTES;
        // Sent when the connection has ended, so not cancelled by its end.
        let never = CancellationToken::new();
        self.0.http.send(request, &never).await.map_err(HttpFailure::Http)?;
        Ok(())
    }
}

/// The whole body of a response.
async fn read(mut answer: HttpStream, max_bytes: usize) -> Result<Vec<u8>, HttpFailure> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if piece.len() > max_bytes.saturating_sub(body.len()) {
            let problem = format!("it sent an answer of more than {max_bytes} bytes");
            return Err(HttpFailure::Unusable(problem));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The response, with the id as it was sent: some servers write a number as text.
fn with_id(mut message: ServerJsonRpcMessage, id: &RequestId) -> ServerJsonRpcMessage {
    match &mut message {
        ServerJsonRpcMessage::Response(response) => response.id = id.clone(),
        ServerJsonRpcMessage::Error(error) => error.id = Some(id.clone()),
        _ => {}
    }
    message
}

fn is_discovery(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_))
    )
}

/// Whether it ends the handshake of an era with sessions.
fn is_initialized(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        ClientJsonRpcMessage::Notification(notification)
            if matches!(notification.notification, ClientNotification::InitializedNotification(_))
    )
}

fn is_of(answer: &HttpStream, media_type: &HeaderValue) -> bool {
    let said = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let said = said.and_then(|said| said.split(|byte| *byte == b';').next());
    said.is_some_and(|said| said.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes()))
}

fn session_of(answer: &HttpStream) -> Option<String> {
    answer.headers().get(SESSION_ID)?.to_str().ok().map(str::to_owned)
}

fn challenge(answer: &HttpStream) -> Option<String> {
    let said = answer.headers().get(header::WWW_AUTHENTICATE)?.to_str().ok()?;
    Some(said.to_owned())
}

pub(super) fn not_of_the_protocol(answer: &HttpStream, intake: &Intake) -> String {
    match answer.headers().get(header::CONTENT_TYPE) {
        Some(said) => format!("its answer is of type {}", intake.preview(said.as_bytes())),
        None => "its answer has no type".to_owned(),
    }
}

fn value(text: &str) -> Result<HeaderValue, HttpFailure> {
    HeaderValue::from_str(text).map_err(|_| {
        HttpFailure::Unusable("it gave a session or event an id that cannot be sent".to_owned())
    })
}
