//! The served paths, and the checks of a request before its message is read: host, origin, token
//! and path.

use std::{
    collections::HashMap,
    future::pending,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, ORIGIN, WWW_AUTHENTICATE},
    request::Parts,
};
use hyper::body::Incoming;
use parking_lot::{Mutex, RwLock};
use percent_encoding::percent_decode_str;
use serde_json::json;
use toolcrib_core::{
    __internal::{millis, shortened},
    CancellationToken, Digest, SkillId,
};

use super::{
    forward::{FORWARDED, prove},
    pages,
    post::Post,
    sealed::{SealedSessions, SessionRequest},
    sessions::{MAX_SESSIONS, Sessions},
};
use crate::{
    access::{
        Access, Caller, HttpAccess, Token,
        access_log::AccessEntry,
        authority::{Hosts, Origins},
        digest,
        endpoints::{Endpoint, Endpoints, MCP},
        limits::Limiter,
        metrics,
        oauth::{RightsDigest, Verifier},
        readiness::readiness,
        tls::Tls,
    },
    client::{context::ServeContext, state::ServedAddress},
    error::GatewayError,
    wire::{
        events::{Body, EventId},
        headers::{self, EVENTS},
        reply::{self, Refusal},
    },
};

/// The minimum of open sessions per token, however many tokens there are.
const LEAST_SESSIONS: usize = 16;

/// The limit of verified identities with sessions.
const MAX_IDENTITIES: usize = 1024;

const SKILL: &str = "/mcp/skill/";
/// Whether the process responds.
pub(crate) const HEALTH: &str = "/healthz";
/// Whether its servers are usable.
const READY: &str = "/readyz";
/// Counts of requests and calls.
const METRICS: &str = "/metrics";

/// The served paths and their access.
pub(crate) struct Routes {
    serving: ServeContext,
    hosts: Hosts,
    origins: Origins,
    doors: RwLock<Arc<[Arc<Door>]>>,
    endpoints: RwLock<Endpoints>,
    tls: RwLock<Option<Tls>>,
    /// Verifies the tokens of an authorization server.
    verifier: Option<Verifier>,
    /// The sessions of their identities.
    verified: Mutex<HashMap<RightsDigest, Arc<Door>>>,
    /// Fires when no new request is accepted any more.
    pub(crate) draining: CancellationToken,
}

/// The access of one declared token, or of one verified identity.
pub(crate) struct Door {
    /// `None` for a verified identity.
    token: Option<Token>,
    access: Arc<Access>,
    pub(crate) sessions: Arc<Sessions>,
    limiter: Limiter,
    ended: CancellationToken,
}

impl Routes {
    /// Whether a call waits for its client.
    pub(crate) fn wait_for_clients(&self) -> bool {
        let waits = |door: &Arc<Door>| door.sessions.wait_for_clients();
        !self.serving.gateway.waiting.is_empty()
            || self.doors.read().iter().any(waits)
            || self.verified.lock().values().any(waits)
    }

    pub(crate) fn new(serving: &ServeContext, access: HttpAccess) -> Result<Self, GatewayError> {
        let verifier = access.oauth.clone().map(Verifier::new).transpose();
        Ok(Self {
            verifier: verifier.map_err(GatewayError::OAuth)?,
            hosts: Hosts::new(&access.hosts)?,
            origins: Origins::new(&access.origins)?,
            doors: RwLock::new(doors(serving, &access, &[])),
            tls: RwLock::new(access.tls),
            endpoints: RwLock::new(access.endpoints),
            draining: CancellationToken::new(),
            verified: Mutex::default(),
            serving: serving.clone(),
        })
    }

    pub(crate) fn tls(&self) -> Option<Tls> {
        self.tls.read().clone()
    }

    pub(crate) async fn answer(
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
        if request.method() == Method::GET
            && self.hosts.allow(request.uri(), request.headers())
            && let Some(answer) = self.answer_operator(&request, peer)
        {
            return answer;
        }
        if let Some(verifier) = &self.verifier
            && request.method() == Method::GET
            && let Some(metadata) = verifier.metadata(request.uri().path(), &self.endpoints.read())
            && self.hosts.allow(request.uri(), request.headers())
        {
            return reply::json(StatusCode::OK, metadata);
        }
        let (parts, body) = request.into_parts();
        let mut caller = Caller {
            access: Arc::default(),
            peer: Some(peer),
            expires: None,
            endpoint: None,
            is_declared: false,
        };
        let answer = match self.admit(&parts, &mut caller).await {
            Err(refusal) => Err(refusal),
            Ok(_) if self.draining.is_cancelled() && !parts.headers.contains_key(FORWARDED) => {
                let message = "the gateway is being stopped; send the request to another one";
                let header = (CONNECTION, HeaderValue::from_static("close"));
                let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).header(header);
                Err(refusal.retry_after(Duration::from_secs(1)))
            }
            Ok(door) => match parts.method {
                Method::POST => {
                    let (serving, caller) = (&self.serving, caller.clone());
                    let (sessions, limiter) = (&*door.sessions, &door.limiter);
                    let (headers, path) = (&parts.headers, parts.uri.path());
                    Post { serving, caller, sessions, limiter, headers, path }.answer(body).await
                }
                Method::GET => self.listen(&door, &parts.headers, &caller).await,
                Method::DELETE => self.end(&door, &parts.headers, &caller).await,
                _ => Err(not_allowed("POST, GET, DELETE")),
            },
        };
        answer.unwrap_or_else(|refusal| self.refuse(refusal, &caller, began))
    }

    /// The response for the operator and for probes, if the path is theirs. Facts about servers and
    /// calls are only for this machine, and for clients with a token.
    fn answer_operator(
        &self,
        request: &Request<Incoming>,
        peer: SocketAddr,
    ) -> Option<Response<Body>> {
        let is_known =
            || peer.ip().to_canonical().is_loopback() || self.declared(request.headers()).is_some();
        let gateway = || self.serving.current.shared();
        Some(match request.uri().path() {
            HEALTH => {
                let mut answer = reply::whole(StatusCode::OK, "ok\n");
                let replicas = gateway().config.replicas.clone();
                prove(replicas.as_ref(), request.headers(), answer.headers_mut());
                answer
            }
            READY if self.draining.is_cancelled() => {
                let answer = r#"{"status":"stopping"}"#;
                reply::json(StatusCode::SERVICE_UNAVAILABLE, answer)
            }
            READY => self.ready(is_known()),
            METRICS if is_known() => {
                let gateway = gateway();
                let declared: usize =
                    self.doors.read().iter().map(|door| door.sessions.len()).sum();
                let verified: usize =
                    self.verified.lock().values().map(|door| door.sessions.len()).sum();
                let sessions = declared + verified;
                let metrics = &self.serving.current.shared().metrics;
                let mut text = metrics.text(
                    &gateway.config.servers,
                    sessions,
                    self.serving.current.requests.len(),
                );
                let unsaved = gateway.callers.unsaved.load(Ordering::Relaxed);
                metrics::losses(&mut text, &gateway.config.logs, unsaved);
                metrics::config(&mut text, gateway.config.digest.as_ref());
                let mut answer = reply::whole(StatusCode::OK, text);
                let kind = HeaderValue::from_static(metrics::TEXT);
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer
            }
            _ => return None,
        })
    }

    /// Whether servers are usable, and calls may be made.
    fn ready(&self, is_known: bool) -> Response<Body> {
        let gateway = self.serving.current.shared();
        let (mut status, mut answer) =
            readiness(&gateway.config.servers, gateway.config.readiness, is_known);
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("withheld".to_owned(), gateway.metrics.withheld_count().into());
        }
        if let (Some(fields), Some(digest)) = (answer.as_object_mut(), gateway.config.digest) {
            fields.insert("config".to_owned(), metrics::shown(&digest).into());
        }
        if !gateway.is_recording() {
            status = StatusCode::SERVICE_UNAVAILABLE;
            if let Some(fields) = answer.as_object_mut() {
                fields.insert("status".to_owned(), "unavailable".into());
                fields.insert("audit".to_owned(), "failing".into());
            }
        }
        reply::json(status, answer.to_string())
    }

    /// Finds the access of a request, and its sender.
    async fn admit(&self, parts: &Parts, caller: &mut Caller) -> Result<Arc<Door>, Refusal> {
        if !self.hosts.allow(&parts.uri, &parts.headers) {
            let message = "this host is not served here; the operator can allow host names";
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        if !self.origins.allow(&parts.headers) {
            let message = "pages of this origin may not send requests; the operator can allow \
                origins";
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        let path = parts.uri.path();
        let endpoint = self.endpoints.read().at(path);
        let door = self.door(&parts.headers, caller, endpoint.as_ref()).await?;
        match endpoint {
            Some(endpoint) => {
                caller.access = at_endpoint(&endpoint, &caller.access)?;
                caller.endpoint = Some(endpoint.name);
            }
            None if path == MCP => {}
            None => match path.strip_prefix(SKILL) {
                Some(skill) => caller.access = self.with_skill(&caller.access, skill)?,
                None => {
                    let path = shortened(path);
                    let message = format!(
                        "not found: `{path}` is not an endpoint of this gateway; the one that each \
                         gateway has is `{MCP}`"
                    );
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
        self.serving
            .current
            .shared()
            .check(&access)
            .map_err(|error| refused(error.caller_text()).cause(error.to_string()))?;
        Ok(Arc::new(access))
    }

    /// Finds the sessions of a request's token, and sets its access.
    async fn door(
        &self,
        headers: &HeaderMap,
        caller: &mut Caller,
        endpoint: Option<&Endpoint>,
    ) -> Result<Arc<Door>, Refusal> {
        if let Some(door) = self.declared(headers) {
            caller.access = Arc::clone(&door.access);
            caller.is_declared = true;
            return Ok(door);
        }
        let Some(verifier) = &self.verifier else {
            let message = "a valid token is needed: `Authorization: Bearer TOKEN`";
            let challenge = (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, message).header(challenge));
        };
        let verifier = verifier.at(endpoint);
        let token = bearer(headers).ok_or_else(|| verifier.unauthorized(None))?;
        let gateway = self.serving.current.shared();
        let verified = Box::pin(verifier.access(token, &gateway.config.engine)).await;
        let (rights, access, expires) = verified?;
        caller.expires = expires;
        let door = self.verified(rights, access)?;
        caller.access = Arc::clone(&door.access);
        Ok(door)
    }

    /// The access of a declared token. All tokens are compared, so that the duration reveals
    /// nothing.
    fn declared(&self, headers: &HeaderMap) -> Option<Arc<Door>> {
        let sent = digest(bearer(headers)?.as_bytes());
        let doors = Arc::clone(&self.doors.read());
        let is = |door: &Door| door.token.as_ref().is_some_and(|token| token.is(&sent));
        doors.iter().fold(None, |found, door| if is(door) { Some(door) } else { found }).cloned()
    }

    /// The sessions of a verified identity. At the limit, identities without open sessions are
    /// dropped.
    fn verified(&self, rights: RightsDigest, access: Access) -> Result<Arc<Door>, Refusal> {
        let mut verified = self.verified.lock();
        if let Some(door) = verified.get(&rights) {
            return Ok(Arc::clone(door));
        }
        if verified.len() >= MAX_IDENTITIES {
            verified.retain(|_, door| {
                let is_used = Arc::strong_count(door) > 1 || door.sessions.len() > 0;
                if !is_used {
                    door.ended.cancel();
                }
                is_used
            });
        }
        if verified.len() >= MAX_IDENTITIES {
            let message = "too many users have sessions; try again later";
            let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message);
            return Err(refusal.retry_after(Duration::from_secs(60)));
        }
        let door = Arc::new(Door::new(&self.serving, LEAST_SESSIONS, None, access, Some(&rights)));
        verified.insert(rights, Arc::clone(&door));
        Ok(door)
    }

    /// GET: the stream of a session's notifications, or one to which its client comes back. It ends
    /// when the token of the request is refused: the client comes back with its next one.
    async fn listen(
        &self,
        door: &Door,
        headers: &HeaderMap,
        caller: &Caller,
    ) -> Result<Response<Body>, Refusal> {
        if !headers::accepts(headers, &[EVENTS]) {
            let message = "the response is a stream: send `Accept: text/event-stream`";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message));
        }
        let serving = self.serving.fresh();
        let session = in_session(&serving, door, headers, caller)?.find().await?;
        let expires = caller.expires;
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        Ok(reply::events(match last {
            None => session.common.body_until(expires),
            // A stream that has ended is an empty one: a browser would retry an error for ever.
            Some(last) => last
                .parse::<EventId>()
                .ok()
                .and_then(|last| session.resume(&last, expires))
                .unwrap_or_default(),
        }))
    }

    /// DELETE: ends a session.
    async fn end(
        &self,
        door: &Door,
        headers: &HeaderMap,
        caller: &Caller,
    ) -> Result<Response<Body>, Refusal> {
        in_session(&self.serving.fresh(), door, headers, caller)?.end().await?;
        Ok(reply::whole(StatusCode::ACCEPTED, ""))
    }

    /// Logs and writes a refusal.
    fn refuse(&self, refusal: Refusal, caller: &Caller, began: Instant) -> Response<Body> {
        let mut entry = AccessEntry::new("http", Some(caller));
        entry.status = Some(refusal.status().as_u16());
        entry.error = Some(refusal.for_operator().into());
        entry.duration_ms = millis(began.elapsed());
        self.serving.current.shared().log(entry);
        refusal.response()
    }
}

impl ServedAddress for Routes {
    fn replace(&self, access: &HttpAccess) {
        let mut all = self.doors.write();
        let before = Arc::clone(&all);
        *all = doors(&self.serving, access, &before);
        for door in before.iter().filter(|door| !all.iter().any(|one| Arc::ptr_eq(one, door))) {
            door.ended.cancel();
            door.sessions.end();
        }
        drop(all);
        self.endpoints.write().clone_from(&access.endpoints);
        // Without a certificate, an HTTPS address does not become one of HTTP.
        if let Some(tls) = &access.tls {
            *self.tls.write() = Some(tls.clone());
        }
    }
}

/// The doors of an access. One whose token is the same as before keeps its sessions.
fn doors(serving: &ServeContext, access: &HttpAccess, before: &[Arc<Door>]) -> Arc<[Arc<Door>]> {
    let share = (MAX_SESSIONS / access.tokens.len().max(1)).max(LEAST_SESSIONS);
    let door = |token: &Token| {
        let is_same = |door: &&Arc<Door>| door.token.as_ref().is_some_and(|one| one.is_same(token));
        before.iter().find(is_same).cloned().unwrap_or_else(|| {
            Arc::new(Door::new(serving, share, Some(token.clone()), token.access.clone(), None))
        })
    };
    access.tokens.iter().map(door).collect()
}

impl Door {
    /// `rights` are the digest of a verified identity.
    fn new(
        serving: &ServeContext,
        most: usize,
        token: Option<Token>,
        access: Access,
        rights: Option<&RightsDigest>,
    ) -> Self {
        let replicas = serving.gateway.config.replicas.as_ref();
        let rights = rights_of(token.as_ref(), rights);
        let sealed = replicas.map(|replicas| SealedSessions::new(replicas, Arc::clone(&rights)));
        let sessions = Arc::new(Sessions::new(most, sealed));
        let ended = serving.cancellation.child_token();
        let (idle, closing, serves) = (Arc::clone(&sessions), ended.clone(), serving.clone());
        serving.running.spawn(async move {
            let follow = async {
                match &idle.sealed {
                    Some(_) => idle.follow(&serves).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = idle.end_idle() => {}
                () = follow => {}
                () = closing.cancelled() => {}
            }
        });
        let bucket = replicas.map(|replicas| (replicas, format!("gateway/{rights}").into()));
        let limiter = Limiter::new(access.limits, bucket);
        Self { access: Arc::new(access), token, sessions, limiter, ended }
    }
}

/// A request without a message, which names a session.
fn in_session<'a>(
    serving: &'a ServeContext,
    door: &'a Door,
    headers: &'a HeaderMap,
    caller: &'a Caller,
) -> Result<SessionRequest<'a>, Refusal> {
    if !headers::has_sessions(headers).map_err(|error| Refusal::of(None, error))? {
        return Err(not_allowed("POST"));
    }
    Ok(SessionRequest {
        serving,
        caller,
        sessions: &door.sessions,
        headers,
        id: None,
        counts: false,
    })
}

/// The digest of a token or of a verified identity, and of what it may do, which is the same at each replica.
fn rights_of(token: Option<&Token>, verified: Option<&RightsDigest>) -> Arc<str> {
    let of_token = token.map(|token| {
        let Access { tenant, principal, personality, .. } = &token.access;
        json!([token.name(), tenant, principal, personality])
    });
    Digest::of_json(&json!([of_token, verified.map(RightsDigest::name)])).to_string().into()
}

/// The access of a caller at an endpoint.
fn at_endpoint(endpoint: &Endpoint, of_caller: &Access) -> Result<Arc<Access>, Refusal> {
    endpoint.access(of_caller).map_err(|own| {
        let message = "this token has the menu of another endpoint, and may not use this one";
        let cause = format!(
            "the endpoint `{}` has another personality than the token, `{own}`",
            endpoint.name
        );
        Refusal::new(StatusCode::FORBIDDEN, message).cause(cause)
    })
}

/// The token of a request with exactly one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let (Some(sent), None) = (sent.next(), sent.next()) else {
        return None;
    };
    let (scheme, token) = sent.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn not_allowed(allowed: &'static str) -> Refusal {
    let message = format!("this method is not served here; the allowed ones are: {allowed}");
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message)
        .header((ALLOW, HeaderValue::from_static(allowed)))
}
