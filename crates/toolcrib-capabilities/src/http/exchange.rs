//! Sends a request up to the response headers: redirects, and their connections.

use std::{
    future::poll_fn,
    io, mem,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Body as _, Bytes, Frame, Incoming},
    header::{self, HeaderMap, HeaderValue},
    http::response,
};
use tokio::time::timeout;

use super::{
    address::PortOrigin,
    connect::Connection,
    error::HttpError,
    host::HostRules,
    redirect::{self, Hop, RedirectPolicy},
    shared::Shared,
    target::Target,
};

/// The encoding that a request accepts.
#[derive(Clone, Copy)]
pub(super) enum BodyEncoding {
    Identity,
    Gzip,
}

impl BodyEncoding {
    /// The value of `Accept-Encoding`.
    pub(super) fn asked(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
        }
    }
}

/// One request with its redirects.
pub(super) struct Exchange<'a> {
    shared: &'a Shared,
    hosts: &'a HostRules,
    accepted: BodyEncoding,
    redirects: (RedirectPolicy, usize),
    idle_timeout: Option<Duration>,
    sent: AtomicBool,
}

/// A response other than a redirect, of which only the headers have been read.
pub(super) struct Answer {
    pub(super) head: response::Parts,
    /// The first chunk of the body, if it came with the headers.
    pub(super) ahead: Option<EarlyFrame>,
    pub(super) body: Incoming,
    pub(super) connection: Connection,
    pub(super) target: Arc<Target>,
    /// The host that redirected there.
    pub(super) redirected_by: Option<String>,
}

/// A chunk of a body that was read ahead.
pub(super) type EarlyFrame = Result<Frame<Bytes>, hyper::Error>;

impl<'a> Exchange<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        hosts: &'a HostRules,
        accepted: BodyEncoding,
        redirects: (RedirectPolicy, usize),
        idle_timeout: Option<Duration>,
    ) -> Self {
        Self { shared, hosts, accepted, redirects, idle_timeout, sent: AtomicBool::new(false) }
    }

    /// Whether a server may have received it by now.
    pub(super) fn was_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) async fn follow(&self, mut hop: Hop) -> Result<Answer, HttpError> {
        let mut left: Vec<Hop> = Vec::new();
        loop {
            self.complete(&mut hop);
            let (answer, connection) =
                self.ask(&mut hop).await.map_err(|error| redirected(&left, error))?;
            let (head, mut body) = answer.into_parts();
            let Some(next) = self.next_hop(&hop, &head, &left)? else {
                let ahead = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
                    Poll::Ready(piece) => Poll::Ready(piece),
                    Poll::Pending => Poll::Ready(None),
                });
                let ahead = ahead.await;
                let redirected_by = left.last().map(|from| from.target.host.clone());
                let target = hop.target;
                return Ok(Answer { head, ahead, body, connection, target, redirected_by });
            };
            left.push(mem::replace(&mut hop, next));
        }
    }

    /// The request to the target of a redirect, after those that `left` contains; `None` if the
    /// response is not a redirect.
    fn next_hop(
        &self,
        hop: &Hop,
        head: &response::Parts,
        left: &[Hop],
    ) -> Result<Option<Hop>, HttpError> {
        let (policy, limit) = self.redirects;
        if policy == RedirectPolicy::SameOrigin {
            return hop.repeated(head.status, head.headers.get(header::LOCATION), left, limit);
        }
        let Some(location) = redirect::location(head.status, &head.headers) else {
            return Ok(None);
        };
        let host = || hop.target.host.clone();
        // Checked before the target: with a limit of 0 the target does not matter.
        if left.len() >= limit {
            return Err(HttpError::TooManyRedirects { host: host(), limit });
        }
        let next = hop.next(head.status, location).map_err(|error| redirected(left, error))?;
        let is_next =
            |earlier: &Hop| earlier.method == next.method && earlier.target == next.target;
        if left.iter().chain([hop]).any(is_next) {
            return Err(HttpError::RedirectLoop { host: host() });
        }
        Ok(Some(next))
    }

    /// Sends a request over an idle connection or a new one, and reads the response headers.
    async fn ask(&self, hop: &mut Hop) -> Result<(Response<Incoming>, Connection), HttpError> {
        self.hosts.admit(&hop.target)?;
        // A redirect repeats the headers.
        let headers = match self.redirects.1 {
            0 => mem::take(&mut hop.headers),
            _ => hop.headers.clone(),
        };
        let mut request = request(hop, headers);
        let (target, shared) = (&hop.target, self.shared);
        // A repeatable request may have been executed although no response came.
        let mut broke = None;
        let way = hop.way();
        // An idle connection was checked for the port of another request's own URL.
        let take = || if way.own_port == target.port { shared.pool.take(target) } else { None };
        while let Some(mut idle) = take() {
            if idle.sender.ready().await.is_err() {
                continue;
            }
            let copy = hop.may_repeat.then(|| request.clone());
            match (self.attempt(&mut idle, request, target).await?, copy) {
                (Ok(answer), _) => return Ok((answer, idle)),
                (Err(AttemptError::NotSent(unsent, _)), _) => request = *unsent,
                (Err(AttemptError::Sent(error)), Some(copy)) if !error.is_parse() => {
                    broke = Some(broken(target, error));
                    request = copy;
                    break;
                }
                (Err(AttemptError::Sent(error)), _) => return Err(broken(target, error)),
            }
        }
        // Boxed: large, and seldom needed.
        let asked_anew = Box::pin(self.ask_anew(request, target, way)).await;
        asked_anew.map_err(|error| match broke {
            Some(broke) if !error.may_have_reached_server() => broke,
            _ => error,
        })
    }

    /// Sends a request over a new connection, and reads the response headers.
    async fn ask_anew(
        &self,
        request: Request<Full<Bytes>>,
        target: &Target,
        way: PortOrigin,
    ) -> Result<(Response<Incoming>, Connection), HttpError> {
        let mut fresh = self.shared.connector.connect(target, way).await?;
        match self.attempt(&mut fresh, request, target).await? {
            Ok(answer) => Ok((answer, fresh)),
            Err(AttemptError::Sent(error)) => Err(broken(target, error)),
            Err(AttemptError::NotSent(_, error)) => Err(HttpError::Connect {
                host: target.host.clone(),
                port: target.port,
                source: io::Error::other(error),
            }),
        }
    }

    /// Sets the headers of the client.
    fn complete(&self, hop: &mut Hop) {
        let headers = &mut hop.headers;
        headers.insert(header::HOST, hop.target.authority.clone());
        let encoding = HeaderValue::from_static(self.accepted.asked());
        headers.insert(header::ACCEPT_ENCODING, encoding);
        let user_agent = || self.shared.user_agent.clone();
        headers.entry(header::USER_AGENT).or_insert_with(user_agent);
    }

    /// Sends a request over an open connection. The outer error means: no response.
    async fn attempt(
        &self,
        connection: &mut Connection,
        request: Request<Full<Bytes>>,
        target: &Target,
    ) -> Result<Result<Response<Incoming>, AttemptError>, HttpError> {
        // Set before the write, so that a cancelled wait sees it in any case.
        let sent_before = self.sent.swap(true, Ordering::Relaxed);
        let answered = connection.sender.try_send_request(request);
        let answered = match self.idle_timeout {
            Some(after) => timeout(after, answered)
                .await
                .map_err(|_| HttpError::IdleTimedOut { host: target.host.clone(), after })?,
            None => answered.await,
        };
        Ok(answered.map_err(|mut error| {
            if let Some(unsent) = error.take_message() {
                self.sent.store(sent_before, Ordering::Relaxed);
                AttemptError::NotSent(Box::new(unsent), error.into_error())
            } else {
                AttemptError::Sent(error.into_error())
            }
        }))
    }
}

/// The error of a request after those that `left` contains, for the caller.
fn redirected(left: &[Hop], error: HttpError) -> HttpError {
    match left.last() {
        Some(from) => {
            HttpError::Redirected { host: from.target.host.clone(), source: Box::new(error) }
        }
        None => error,
    }
}

fn request(hop: &Hop, headers: HeaderMap) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(hop.body.clone().unwrap_or_default()));
    *request.method_mut() = hop.method.clone();
    *request.uri_mut() = hop.target.path_and_query.clone();
    *request.headers_mut() = headers;
    request
}

/// A request without a response.
enum AttemptError {
    /// Nothing of it was written; the request is returned.
    NotSent(Box<Request<Full<Bytes>>>, hyper::Error),
    /// Part of it may have been written.
    Sent(hyper::Error),
}

fn broken(target: &Target, error: hyper::Error) -> HttpError {
    HttpError::Exchange { host: target.host.clone(), source: Box::new(error) }
}
