//! The HTTP of the protocol library, by a client that only goes where it may.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use tokio::time::sleep;
use toolcrib_core::CancellationToken;
use toolcrib_scope::http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpRequest, HttpStream, Method,
    StatusCode, header,
};

use super::{
    super::{
        call::Call,
        open::Wiring,
        text::{bounded, preview},
    },
    events::{Events, events},
    failure::{Failure, HttpFailure},
};

/// How many bytes an answer in JSON may have: 16 MiB. It is held in memory whole.
const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;
/// How many bytes of what comes with a status that says no are read: 64 KiB.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How long a server has to end a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_AND_EVENTS: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// What one connection sends and reads.
#[derive(Clone)]
pub(super) struct Client(Arc<Shared>);

struct Shared {
    http: HttpClient,
    headers: HeaderMap,
    wiring: Wiring,
    has_streamed: AtomicBool,
}

impl Client {
    pub(super) fn new(http: HttpClient, headers: HeaderMap, wiring: Wiring) -> Self {
        Self(Arc::new(Shared { http, headers, wiring, has_streamed: AtomicBool::new(false) }))
    }

    fn request(
        &self,
        method: Method,
        url: &str,
        session: Option<&str>,
        of_the_protocol: HashMap<HeaderName, HeaderValue>,
    ) -> Result<HttpRequest, Failure> {
        let mut request = HttpRequest::new(method, url);
        request.headers = self.0.headers.clone();
        request.headers.extend(of_the_protocol);
        if let Some(session) = session {
            request.headers.insert(SESSION_ID, value(session)?);
        }
        request.max_redirects = 0;
        request.max_body_bytes = usize::MAX;
        // Whoever waits for the answer knows how long.
        request.timeout = None;
        Ok(request)
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        mut request: HttpRequest,
        call: Option<&Call>,
    ) -> Result<HttpStream, Failure> {
        let body = serde_json::to_vec(message)?;
        request.body = Some(Bytes::from(body));
        request.headers.insert(header::ACCEPT, JSON_AND_EVENTS);
        request.headers.insert(header::CONTENT_TYPE, JSON);
        if call.is_some_and(|call| !call.begin()) {
            return Err(HttpFailure::Withdrawn.into());
        }
        let Wiring { intake, ending, .. } = &self.0.wiring;
        let answer = self.0.http.stream(request, ending.token()).await;
        answer.map_err(|error| {
            if !error.may_have_reached_server()
                && let Some(call) = call
            {
                call.revert();
            }
            // While others wait for their answers, theirs say whether the server is still there.
            if matches!(error, HttpError::Connect { .. }) && !intake.has_other_calls() {
                ending.end(error.to_string());
            }
            HttpFailure::Http(error).into()
        })
    }

    /// What a status says that says no.
    async fn refusal(
        &self,
        answer: HttpStream,
        message: &ClientJsonRpcMessage,
        had_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = answer.status();
        let is_json = is_of(&answer, &JSON);
        let challenge = challenge(&answer);
        let body = read(answer, MAX_ERROR_BYTES).await.unwrap_or_default();
        let lets_nobody_in = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let text = match challenge {
            Some(challenge) => format!("it wants authorization: {challenge}"),
            None => preview(&body),
        };
        let id = match message {
            ClientJsonRpcMessage::Request(request) if !lets_nobody_in => Some(&request.id),
            _ => None,
        };
        if let Some(id) = id {
            // What refuses a request before it is read cannot say which one it was.
            let said = match serde_json::from_slice(&body) {
                Ok(ServerJsonRpcMessage::Error(refused)) if is_json => Some(refused.error),
                _ if status.is_client_error() && !had_session && is_discovery(message) => {
                    let text = format!("HTTP {}: {text}", status.as_u16());
                    Some(ErrorData::invalid_request(text, None))
                }
                _ => None,
            };
            if let Some(error) = said {
                self.0.wiring.intake.forget(id);
                let message = ServerJsonRpcMessage::error(error, Some(id.clone()));
                return Ok(StreamableHttpPostResponse::Json(message, None));
            }
        }
        Err(HttpFailure::Status { status: status.as_u16(), text: bounded(text) }.into())
    }

    /// An answer that is one JSON message.
    async fn json(
        &self,
        answer: HttpStream,
        id: Option<&RequestId>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let session = session_of(&answer);
        let body = read(answer, MAX_JSON_BYTES).await?;
        let taken = self.0.wiring.intake.take_answer_to(id, &body);
        if let Some(pause) = taken.pause {
            sleep(pause).await;
        }
        if let Some(reason) = taken.hopeless {
            self.0.wiring.ending.end(reason);
        }
        let Some(id) = id else { return Ok(StreamableHttpPostResponse::Accepted) };
        match taken.message {
            Some(
                message @ (ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)),
            ) => Ok(StreamableHttpPostResponse::Json(with_id(message, id), session)),
            _ => {
                let problem = format!("its answer is of no request: {}", preview(&body));
                Err(HttpFailure::Unusable(problem).into())
            }
        }
    }
}

impl StreamableHttpClient for Client {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let Wiring { intake, ending, .. } = &self.0.wiring;
        let session = session_id.as_deref();
        let request = self.request(Method::POST, &uri, session, custom_headers)?;
        intake.expect(&message);
        let _owed = intake.owed(&message);
        let call = Call::of(&message);
        let answer = self.post(&message, request, call.as_deref()).await?;
        let status = answer.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            // The request was not looked at: it belongs to a session that the server does not have.
            if let Some(call) = &call {
                call.revert();
            }
            ending.end("its session has expired (HTTP 404)");
            return Err(StreamableHttpError::SessionExpired);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refusal(answer, &message, session.is_some()).await;
        }
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        if is_of(&answer, &EVENTS) {
            let session = session_of(&answer);
            let events = events(answer, &self.0.wiring, id.cloned());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if is_of(&answer, &JSON) {
            return self.json(answer, id).await;
        }
        if id.is_none() {
            // Whatever it says to what is not answered, it took it.
            let _ = read(answer, MAX_ERROR_BYTES).await;
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        Err(HttpFailure::Unusable(not_of_the_protocol(&answer)).into())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let Wiring { intake, ending, .. } = &self.0.wiring;
        let mut request = self.request(Method::GET, &uri, session_id.as_deref(), custom_headers)?;
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
                let text = not_of_the_protocol(&answer);
                Err(HttpFailure::Status { status: status.as_u16(), text }.into())
            }
            _ if is_of(&answer, &EVENTS) => {
                if self.0.has_streamed.swap(true, Ordering::Relaxed) && !is_resumed {
                    // What changed in between was told to nobody.
                    intake.signal_changed_tools();
                }
                Ok(events(answer, &self.0.wiring, None))
            }
            _ => Err(HttpFailure::Unusable(not_of_the_protocol(&answer)).into()),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let mut request = self.request(Method::DELETE, &uri, Some(&*session_id), custom_headers)?;
        request.timeout = Some(DELETE_TIMEOUT);
        request.max_body_bytes = MAX_ERROR_BYTES;
        // Sent when the connection is over, so not cancelled by its end.
        let never = CancellationToken::new();
        self.0.http.send(request, &never).await.map_err(HttpFailure::Http)?;
        Ok(())
    }
}

/// The body of an answer, whole.
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

/// The answer, with the id as it was sent: some servers write a number as text.
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
    Some(bounded(said))
}

fn not_of_the_protocol(answer: &HttpStream) -> String {
    match answer.headers().get(header::CONTENT_TYPE) {
        Some(said) => format!("its answer is of type {}", preview(said.as_bytes())),
        None => "its answer is of no type".to_owned(),
    }
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_| {
        HttpFailure::Unusable("it gave a session or event an id that cannot be sent".to_owned())
            .into()
    })
}
