//! Requests over HTTP: each is one POST, and the task that sends it reads its response.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{ErrorCode, ProtocolVersion};
use tokio::{
    sync::SetOnce,
    time::{Instant, timeout},
};
use toolcrib_capabilities::http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpRequest, HttpStream, Method,
    RedirectPolicy, StatusCode, header,
};
use toolcrib_core::Secret;

use super::{
    super::{
        exchange::Exchange,
        intake::Carrier,
        message::Request,
        result::Refusal,
        transport::{SendError, Transport, Wiring},
    },
    failure::HttpFailure,
    names::{MarkedArguments, encoded},
    response::{ErrorResponse, Head, JSON, head, not_of_the_protocol, read},
};
use crate::{
    connection::types::RemoteTool,
    oauth::{Access, Challenge},
};

/// The size limit of a JSON response: 16 MiB. It is kept in memory whole.
const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;

/// The limit of redirects of one request.
const MAX_REDIRECTS: usize = 3;

/// The timeout of a notification and of a reply: that of a pipe.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// The time without a response after which a session is probed before a call, and the timeout of
/// the probe.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_WITHIN: Duration = Duration::from_secs(2);
/// A probe. No request uses its id.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"toolcrib-probe","method":"ping"}"#;
const PING_ID: &str = "toolcrib-probe";

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const JSON_AND_EVENTS: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");

/// Sends and reads for one connection.
pub(super) struct Client {
    pub(super) http: HttpClient,
    url: Arc<str>,
    headers: HeaderMap,
    /// The tokens of the connection's identity.
    access: Option<Arc<Access>>,
    pub(super) wiring: Wiring,
    /// The time of the server's last response.
    heard: Mutex<Instant>,
    /// The session that the response to `initialize` named.
    pub(super) session: OnceLock<HeaderValue>,
    /// The headers of each request after a handshake with `initialize`.
    pub(super) after_handshake: SetOnce<HeaderMap>,
}

impl Transport for Client {
    fn send(self: Arc<Self>, exchange: Arc<Exchange>) -> BoxFuture<'static, Result<(), SendError>> {
        Box::pin(async move { self.request(&exchange).await.map_err(SendError::from) })
    }

    fn post(self: Arc<Self>, message: Vec<u8>) -> BoxFuture<'static, Result<(), SendError>> {
        Box::pin(async move {
            let posting = self.post_message(message);
            let posted = timeout(POST_TIMEOUT, posting).await.unwrap_or(Err(HttpFailure::Silent));
            posted.map_err(SendError::from)
        })
    }

    fn initialized(&self, version: &ProtocolVersion) {
        let mut headers = self.headers.clone();
        if let Ok(version) = HeaderValue::from_str(version.as_str()) {
            headers.insert(PROTOCOL_VERSION, version);
        }
        if let Some(session) = self.session.get() {
            headers.insert(SESSION_ID, session.clone());
        }
        let _ = self.after_handshake.set(headers);
    }

    fn cancels_by_closing(&self, exchange: &Exchange) -> bool {
        exchange.introduction.is_some()
    }

    fn listed(&self, tools: &mut [RemoteTool]) {
        tools.iter_mut().for_each(MarkedArguments::find);
    }
}

impl Client {
    pub(super) fn new(
        http: HttpClient,
        url: Arc<str>,
        headers: HeaderMap,
        access: Option<Arc<Access>>,
        wiring: Wiring,
    ) -> Self {
        Self {
            http,
            url,
            headers,
            access,
            wiring,
            heard: Mutex::new(Instant::now()),
            session: OnceLock::new(),
            after_handshake: SetOnce::new(),
        }
    }

    /// Sends a request, and reads its response.
    async fn request(self: &Arc<Self>, exchange: &Exchange) -> Result<(), HttpFailure> {
        // Boxed: few calls need it.
        if matches!(exchange.request, Request::CallTool { .. }) && self.is_silent() {
            Box::pin(self.probe_session()).await?;
        }
        let json = exchange.to_json().map_err(|error| HttpFailure::Unusable(error.to_string()))?;
        let answer = self.exchange(json, self.with_headers_of(exchange), Some(exchange)).await?;
        let intake = &self.wiring.intake;
        match head(answer) {
            // The response comes on another stream.
            Head::Accepted => Ok(()),
            Head::Json(answer) => {
                let body = Bytes::from(read(answer, MAX_JSON_BYTES).await?);
                let taken = intake.take(body.clone(), Carrier::Body(exchange.id), self).await;
                if let Err(reason) = taken {
                    self.wiring.ending.end(reason);
                }
                if exchange.is_settled() {
                    return Ok(());
                }
                let preview = intake.preview(&body);
                let problem = format!("its response belongs to no request: {preview}");
                Err(HttpFailure::Unusable(problem))
            }
            // Boxed: large, and not needed for JSON responses.
            Head::Events(answer) => Box::pin(self.follow(answer, exchange)).await,
            Head::Refusal(answer) => {
                let mut refused = ErrorResponse::read(answer, intake).await;
                if let Some(expired) = Box::pin(self.lost_session(&refused, exchange)).await {
                    return Err(expired);
                }
                let refusal =
                    refused.refusal.take().or_else(|| of_an_older_era(&refused.failure, exchange));
                match refusal {
                    Some(refusal) => {
                        exchange.settle(Err(refusal.into()));
                        Ok(())
                    }
                    None if exchange.request.is_greeting() => Err(refused.of_greeting()),
                    None => Err(refused.failure),
                }
            }
            Head::Other(answer) => Err(HttpFailure::Unusable(not_of_the_protocol(&answer, intake))),
        }
    }

    /// Sends a message without a response, whatever the body of the answer contains.
    async fn post_message(&self, message: Vec<u8>) -> Result<(), HttpFailure> {
        let request = self.after_handshake(Method::POST);
        match head(self.exchange(message, request, None).await?) {
            Head::Refusal(answer) => {
                let refused = ErrorResponse::read(answer, &self.wiring.intake).await;
                Err(match refused.failure {
                    HttpFailure::Status { status: 404, .. } if self.has_session() => {
                        self.session_expired(404)
                    }
                    failure => failure,
                })
            }
            _ => Ok(()),
        }
    }

    /// A request after the handshake, in its session, if any.
    pub(super) fn after_handshake(&self, method: Method) -> HttpRequest {
        let headers = self.after_handshake.get().unwrap_or(&self.headers);
        let mut request = HttpRequest::new(method, &*self.url);
        request.headers = headers.clone();
        request.redirect_policy = RedirectPolicy::SameOrigin;
        request.max_redirects = MAX_REDIRECTS;
        request.max_body_bytes = usize::MAX;
        // The waiting task has its own timeout.
        request.timeout = None;
        request
    }

    /// The request of an exchange, without its body.
    fn with_headers_of(&self, exchange: &Exchange) -> HttpRequest {
        let mut request = self.after_handshake(Method::POST);
        let Some(introduction) = &exchange.introduction else { return request };
        // Copies values of the body into headers, for intermediaries that do not read it.
        let mut insert = |name, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                request.headers.insert(name, value);
            }
        };
        insert(PROTOCOL_VERSION, introduction.version.as_str());
        insert(METHOD, exchange.request.method());
        if let Request::CallTool { tool, arguments, marked, .. } = &exchange.request {
            insert(NAME, &encoded(tool));
            request.headers.extend(marked.headers(arguments));
        } else if let Some(target) = exchange.request.target() {
            insert(NAME, &encoded(target));
        }
        request
    }

    /// Sends a message, and reads the response headers.
    async fn exchange(
        &self,
        json: Vec<u8>,
        mut request: HttpRequest,
        exchange: Option<&Exchange>,
    ) -> Result<HttpStream, HttpFailure> {
        request.body = Some(Bytes::from(json));
        request.headers.insert(header::ACCEPT, JSON_AND_EVENTS);
        request.headers.insert(header::CONTENT_TYPE, JSON);
        if exchange.is_some_and(|exchange| !exchange.begin()) {
            return Err(HttpFailure::Withdrawn);
        }
        let is_greeting = exchange.is_some_and(|exchange| exchange.request.is_greeting());
        let Wiring { intake, ending } = &self.wiring;
        let answer = self.open(request).await.map_err(|failure| {
            if failure.is_before_sending()
                && let Some(exchange) = exchange
            {
                exchange.revert();
            }
            // While other requests wait, their responses show whether the server is still alive.
            let is_alone = !is_greeting && !intake.has_other_requests();
            if matches!(failure, HttpFailure::Http(HttpError::Connect { .. })) && is_alone {
                ending.end(failure.to_string());
            }
            failure
        })?;
        *self.heard.lock() = Instant::now();
        if let Some(session) = answer.headers().get(SESSION_ID)
            && exchange.is_some_and(|it| matches!(it.request, Request::Initialize(_)))
        {
            let _ = self.session.set(session.clone());
        }
        Ok(answer)
    }

    /// Sends a request with the token of the identity, if there is one. A request that is refused
    /// for its token was not executed: it is sent once more if there is another token.
    pub(super) async fn open(&self, request: HttpRequest) -> Result<HttpStream, HttpFailure> {
        match &self.access {
            None => Ok(self.http.stream(request, self.wiring.ending.token()).await?),
            // Boxed: few servers need it.
            Some(access) => Box::pin(self.open_with(access, request)).await,
        }
    }

    async fn open_with(
        &self,
        access: &Arc<Access>,
        mut request: HttpRequest,
    ) -> Result<HttpStream, HttpFailure> {
        let mut token = access.token().await.map_err(HttpFailure::NoToken)?;
        let mut is_again = false;
        loop {
            if let Some(token) = &token {
                request.headers.insert(header::AUTHORIZATION, bearer(token)?);
            }
            let ending = self.wiring.ending.token();
            let answer = self.http.stream(request.clone(), ending).await?;
            let challenge = Challenge::of(answer.headers());
            let is_refused = match answer.status() {
                StatusCode::UNAUTHORIZED => true,
                StatusCode::FORBIDDEN => challenge.is_insufficient_scope(),
                _ => false,
            };
            if !is_refused {
                return Ok(answer);
            }
            drop(answer);
            let other = match is_again {
                true => None,
                false => access
                    .refused(token.as_ref(), &challenge)
                    .await
                    .map_err(HttpFailure::Unauthorized)?,
            };
            if other.is_none() {
                return Err(HttpFailure::Unauthorized(
                    access.demand(token.as_ref(), challenge).await,
                ));
            }
            (token, is_again) = (other, true);
        }
    }

    /// Adds the token to a last request, if there is one.
    pub(super) async fn authorize(&self, request: &mut HttpRequest) {
        if let Some(access) = &self.access
            && let Ok(Some(token)) = access.token().await
            && let Ok(value) = bearer(&token)
        {
            request.headers.insert(header::AUTHORIZATION, value);
        }
    }

    pub(super) fn has_session(&self) -> bool {
        self.after_handshake.get().is_some_and(|headers| headers.contains_key(SESSION_ID))
    }

    /// The server no longer knows the session. Other requests in it learn that from their own responses.
    pub(super) fn session_expired(&self, status: u16) -> HttpFailure {
        let expired = HttpFailure::SessionExpired { status };
        self.wiring.ending.retire(expired.to_string());
        expired
    }

    /// Whether a request was refused because the server no longer knows its session. A response to the
    /// request itself is an answer. A 404 is the protocol's sign that nothing was executed. A 400 is the
    /// sign of many servers, and of other faults: it counts if a ping is refused too.
    async fn lost_session(
        &self,
        refused: &ErrorResponse,
        exchange: &Exchange,
    ) -> Option<HttpFailure> {
        let HttpFailure::Status { status, .. } = refused.failure else { return None };
        if !self.has_session() || refused.id == Some(exchange.id.into()) {
            return None;
        }
        match status {
            404 => {
                exchange.revert();
                Some(self.session_expired(status))
            }
            400 if refused.id.is_none() && self.refuses_ping().await => {
                Some(self.session_expired(status))
            }
            _ => None,
        }
    }

    /// Whether the server has not responded for long.
    fn is_silent(&self) -> bool {
        let heard = *self.heard.lock();
        heard.elapsed() > PROBE_AFTER
    }

    /// Probes whether the server still knows the session: a call that meets an expired one may count
    /// as made.
    async fn probe_session(&self) -> Result<(), HttpFailure> {
        match self.has_session() && self.refuses_ping().await {
            true => Err(self.session_expired(404)),
            false => Ok(()),
        }
    }

    /// Whether the server refuses a ping in the session without answering it. Any other response, or a
    /// timeout, means nothing.
    pub(super) async fn refuses_ping(&self) -> bool {
        let request = self.after_handshake(Method::POST);
        let probing = async {
            let answer = self.exchange(PING.to_vec(), request, None).await.ok()?;
            let Head::Refusal(answer) = head(answer) else { return None };
            let refused = ErrorResponse::read(answer, &self.wiring.intake).await;
            let HttpFailure::Status { status, .. } = refused.failure else { return None };
            Some(match status {
                404 => refused.id.is_none_or(|id| id != PING_ID),
                400 => refused.id.is_none(),
                _ => false,
            })
        };
        matches!(timeout(PROBE_WITHIN, probing).await, Ok(Some(true)))
    }
}

fn bearer(token: &Secret) -> Result<HeaderValue, HttpFailure> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
    let mut value =
        value.map_err(|_| HttpFailure::Unusable("its token cannot be sent".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Servers with sessions refuse any request outside of one, `server/discover` too, many without
/// words of the protocol.
fn of_an_older_era(failure: &HttpFailure, exchange: &Exchange) -> Option<Refusal> {
    let is_discovery = matches!(exchange.request, Request::Discover {});
    (is_discovery && failure.is_of_request()).then(|| Refusal {
        code: ErrorCode::INVALID_REQUEST.0,
        message: failure.to_string(),
        data: None,
    })
}
