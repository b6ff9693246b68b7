//! HTTP requests before the protocol: host, origin, token, path and body, in this order.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN, WWW_AUTHENTICATE},
    request::Parts,
};
use http_body_util::{BodyExt, Collected, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::body::{Body as _, Incoming};
use percent_encoding::percent_decode_str;
use rmcp::{
    model::{ClientJsonRpcMessage, ErrorCode},
    transport::{StreamableHttpServerConfig, StreamableHttpService},
};
use serde_json::json;
use tokio::sync::Semaphore;
use toolcrib_core::{__internal::millis, CancellationToken, SkillId};

use super::{
    GatewayError, HttpAccess, MAX_SESSIONS, Serving,
    access::{Access, Caller, Token, digest},
    access_log::AccessEntry,
    authority::{Hosts, Origins},
    connection::Posted,
    handler::{Handler, INITIALIZE, has_no_sessions, is_stateless},
    pages,
    post::{Answered, METHOD, PROTOCOL, Post, SESSION, is_json, name_what_is_taken, only},
    quoted::{bounded_body, shortened},
    readiness::readiness,
    sessions::Sessions,
    unreadable::{Unreadable, is_ambiguous, request_in},
};

/// The size limit of a request body, in bytes.
pub(super) const MAX_BODY: usize = 4 * 1024 * 1024;

/// The timeout of receiving it.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// The minimum of open sessions per token, however many tokens there are.
const LEAST_SESSIONS: usize = 16;

const MCP: &str = "/mcp";
const SKILL: &str = "/mcp/skill/";
/// Whether the process responds.
const HEALTH: &str = "/healthz";
/// Whether its servers are usable.
const READY: &str = "/readyz";

type Body = BoxBody<Bytes, Infallible>;

/// The served paths and their access.
pub(super) struct Routes {
    serving: Serving,
    hosts: Hosts,
    origins: Origins,
    doors: Vec<Door>,
}

/// The access of one token.
struct Door {
    token: Token,
    access: Arc<Access>,
    mcp: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
}

/// A refusal before the protocol, which refuses other requests.
struct Refusal {
    status: StatusCode,
    message: String,
    /// The cause, for the operator, if the client does not receive it.
    cause: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), cause: None }
    }
}

impl Routes {
    pub(super) fn new(serving: &Serving, access: HttpAccess) -> Result<Self, GatewayError> {
        let share = (MAX_SESSIONS / access.tokens.len().max(1)).max(LEAST_SESSIONS);
        Ok(Self {
            hosts: Hosts::new(&access.hosts)?,
            origins: Origins::new(&access.origins)?,
            doors: access
                .tokens
                .into_iter()
                .map(|token| Door::new(serving, share, token))
                .collect(),
            serving: serving.clone(),
        })
    }

    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Response<Body> {
        let page = self.page(&request);
        let mut answer = if page.is_some() && pages::is_preflight(&request) {
            pages::preflight(request.headers())
        } else {
            self.answer_anybody(request, peer).await
        };
        if let Some(origin) = page {
            pages::let_read(answer.headers_mut(), origin);
        }
        answer
    }

    /// The origin of the page that sends a request, if there is one and it is allowed.
    fn page(&self, request: &Request<Incoming>) -> Option<HeaderValue> {
        let headers = request.headers();
        let origin = headers.get(ORIGIN)?;
        let may = self.hosts.allow(request.uri(), headers) && self.origins.allow(headers);
        may.then(|| origin.clone())
    }

    async fn answer_anybody(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        let began = Instant::now();
        if matches!(request.uri().path(), HEALTH | READY)
            && request.method() == Method::GET
            && self.hosts.allow(request.uri(), request.headers())
        {
            if request.uri().path() == HEALTH {
                return text(StatusCode::OK, "ok\n");
            }
            let (status, readiness) = readiness(&self.serving.gateway.servers);
            return json_body(status, readiness.to_string());
        }
        let (mut parts, body) = request.into_parts();
        let mut caller = Caller { access: Arc::default(), peer: Some(peer) };
        let door = match self.admit(&parts, &mut caller) {
            Ok(door) => door,
            Err(refusal) => return self.refuse(&refusal, &caller, began),
        };
        let body = match whole(body).await {
            Ok(body) => body,
            Err(refusal) => return self.refuse(&refusal, &caller, began),
        };
        let is_post = parts.method == Method::POST;
        if is_post && let Some(post) = Post::read(&parts, &body, &door.sessions) {
            match post.answer(&self.serving, caller.clone()).await {
                Answered::Whole(answer) => return json_body(StatusCode::OK, answer),
                Answered::Later(running) => drop(parts.extensions.insert(running)),
            }
        } else if is_post && is_ambiguous(&body) {
            return self.refuse_message(&Unreadable::of(&body), &caller, began);
        } else if is_post {
            match asked(&parts.headers, &body, &door.sessions) {
                Ok(posted) => drop(posted.map(|posted| parts.extensions.insert(posted))),
                Err(refused) => return self.refuse_message(&refused, &caller, began),
            }
        }
        let is_json = is_post && is_json(&parts.headers);
        name_what_is_taken(&mut parts.headers);
        parts.extensions.insert(caller.clone());
        // The handler keeps the request's parts while it runs, so the token is removed.
        parts.headers.remove(AUTHORIZATION);
        // Boxed: large, and seldom needed.
        let request = Request::from_parts(parts, Full::new(body.clone()));
        let answer = Box::pin(door.mcp.handle(request)).await;
        let status = answer.status();
        if is_json && status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // rmcp refuses unreadable messages this way.
            return self.refuse_message(&Unreadable::of(&body), &caller, began);
        }
        if !status.is_client_error() && !status.is_server_error() {
            return answer;
        }
        // A refusal is complete. Its text is for the client and the operator.
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        let body = bounded_body(&body).map_or(body, Bytes::from);
        self.log(status, &String::from_utf8_lossy(&body), &caller, began);
        Response::from_parts(head, Full::new(body).boxed())
    }

    /// Finds the access of a request, and its sender.
    fn admit(&self, parts: &Parts, caller: &mut Caller) -> Result<&Door, Refusal> {
        if !self.hosts.allow(&parts.uri, &parts.headers) {
            let message = "this host is not served here; the operator can allow host names";
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        if !self.origins.allow(&parts.headers) {
            let message = "pages of this origin may not send requests; the operator can allow \
                origins";
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        let door = self.door(&parts.headers).ok_or_else(|| {
            let message = "a valid token is needed: `Authorization: Bearer TOKEN`";
            Refusal::new(StatusCode::UNAUTHORIZED, message)
        })?;
        caller.access = Arc::clone(&door.access);
        match parts.uri.path() {
            MCP => {}
            path => match path.strip_prefix(SKILL) {
                Some(skill) => caller.access = self.with_skill(&door.access, skill)?,
                None => {
                    let message = format!("not found; MCP is served at `{MCP}`");
                    return Err(Refusal::new(StatusCode::NOT_FOUND, message));
                }
            },
        }
        Ok(door)
    }

    /// The same access with one more skill. It is checked in every request, also of a session:
    /// permissions can change.
    fn with_skill(&self, access: &Access, skill: &str) -> Result<Arc<Access>, Refusal> {
        let refused = |message| Refusal::new(StatusCode::NOT_FOUND, message);
        let skill = percent_decode_str(skill).decode_utf8_lossy();
        let id = SkillId::new(&*skill)
            .map_err(|_| refused(format!("unknown skill `{}`", shortened(&skill))))?;
        let access = access.clone().skill(id);
        self.serving.gateway.check(&access).map_err(|error| Refusal {
            cause: Some(error.to_string()),
            ..refused(error.caller_text())
        })?;
        Ok(Arc::new(access))
    }

    /// The access of a request's token. All tokens are compared, so that the duration reveals
    /// nothing.
    fn door(&self, headers: &HeaderMap) -> Option<&Door> {
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else {
            return None;
        };
        let (scheme, token) = sent.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let sent = digest(token.trim().as_bytes());
        self.doors
            .iter()
            .fold(None, |found, door| if door.token.is(&sent) { Some(door) } else { found })
    }

    fn log(&self, status: StatusCode, message: &str, caller: &Caller, began: Instant) {
        self.serving.gateway.log(|| {
            let mut entry = AccessEntry::new("http", Some(caller));
            entry.status = Some(status.as_u16());
            entry.error = Some(message.into());
            entry.duration_ms = millis(began.elapsed());
            entry
        });
    }

    /// Refuses a message that is not a request of the protocol, as a protocol error.
    fn refuse_message(
        &self,
        refused: &Unreadable,
        caller: &Caller,
        began: Instant,
    ) -> Response<Body> {
        let status = match refused.error.code {
            ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        self.log(status, &refused.error.message, caller, began);
        json_body(status, serde_json::to_vec(&refused.answer()).unwrap_or_default())
    }

    fn refuse(&self, refusal: &Refusal, caller: &Caller, began: Instant) -> Response<Body> {
        let cause = refusal.cause.as_ref().unwrap_or(&refusal.message);
        self.log(refusal.status, cause, caller, began);
        let body = json!({ "error": refusal.message }).to_string();
        let mut response = json_body(refusal.status, body);
        if refusal.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl Door {
    fn new(serving: &Serving, sessions: usize, token: Token) -> Self {
        // Hosts, origins and the size of bodies are checked before, in this order.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_cancellation_token(serving.cancellation.clone());
        let (serving, places) = (serving.clone(), Arc::new(Semaphore::new(sessions)));
        let handler = move || Ok(Handler::new(&serving, Some(Arc::clone(&places))));
        let sessions = Arc::new(Sessions::new());
        Self {
            access: Arc::new(token.access.clone()),
            token,
            mcp: StreamableHttpService::new(handler, Arc::clone(&sessions), config),
            sessions,
        }
    }
}

/// Registers a request of a session until it is answered. Refuses one whose id is in use, and a
/// handshake in the stateless era.
fn asked(
    headers: &HeaderMap,
    body: &[u8],
    sessions: &Sessions,
) -> Result<Option<Arc<Posted>>, Box<Unreadable>> {
    let connection = only(headers, &SESSION)
        .and_then(|id| str::from_utf8(id).ok())
        .and_then(|id| sessions.connection(id));
    // In the stateless era this header contains the method.
    let may_greet = only(headers, &METHOD).is_none_or(|method| method == INITIALIZE.as_bytes());
    if connection.is_none() && !may_greet {
        return Ok(None);
    }
    let Some((id, method)) = request_in(body) else { return Ok(None) };
    if method == INITIALIZE && greets_in_the_stateless_era(headers, body) {
        return Err(Unreadable::no_handshake(id).into());
    }
    let Some(connection) = connection else { return Ok(None) };
    match connection.post(&id, CancellationToken::new()) {
        Some(posted) => Ok(Some(Arc::new(posted))),
        None => Err(Unreadable::asked_already(id).into()),
    }
}

/// Whether `initialize` is sent with a version, in a header or in its metadata, that does not have
/// it.
fn greets_in_the_stateless_era(headers: &HeaderMap, body: &[u8]) -> bool {
    let above = only(headers, &PROTOCOL).and_then(|version| str::from_utf8(version).ok());
    above.is_some_and(has_no_sessions)
        || serde_json::from_slice(body).is_ok_and(|message| match message {
            ClientJsonRpcMessage::Request(request) => is_stateless(&request.request),
            _ => false,
        })
}

/// The complete body of a request. One with a too large declared length is not read.
async fn whole(body: Incoming) -> Result<Bytes, Refusal> {
    let too_large = || {
        let message = format!("a request body is limited to {MAX_BODY} bytes");
        Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message))
    };
    if body.size_hint().lower() > MAX_BODY as u64 {
        return too_large();
    }
    let body = Limited::new(body, MAX_BODY).collect();
    match tokio::time::timeout(BODY_WITHIN, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => too_large(),
        Ok(Err(_)) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the request body is incomplete")),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request body did not arrive \
            in time",
        )),
    }
}

fn json_body(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = text(status, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    response
}
