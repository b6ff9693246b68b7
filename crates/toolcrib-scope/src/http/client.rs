//! The client: a request, its redirects, its limits.

use std::{
    fmt,
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    header::{self, HeaderName, HeaderValue},
};
use ipnet::IpNet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    body,
    connect::{Connection, Connector},
    error::HttpError,
    host::HostPattern,
    message::{HttpRequest, HttpResponse},
    pool::Pool,
    redirect::Hop,
    resolve::{Resolve, SystemResolver},
    target::{self, Target},
};

/// How long it may take to open a connection, unless the client is built otherwise; once for the
/// connection itself and once for its encryption.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the client says of itself by default.
const USER_AGENT: &str = concat!("toolcrib/", env!("CARGO_PKG_VERSION"));

/// What is said about the connection, or for the client to work by. A second word on it would let
/// a request be read in two ways.
const OURS: [HeaderName; 12] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Whether a header is the client's to set: what is about the connection, `Host`,
/// `Content-Length` and `Accept-Encoding`. A request that has one is refused.
pub fn is_set_by_client(name: &HeaderName) -> bool {
    OURS.contains(name)
}

/// Asks servers, where it may. A handle: cloning shares its rules and its connections, and
/// [`only`](Self::only) narrows it. Nothing widens it.
///
/// See the [module](super) for what it refuses. Needs a tokio runtime with I/O and time.
#[derive(Clone)]
pub struct HttpClient {
    shared: Arc<Shared>,
    /// A host has to be in each of these lists.
    hosts: Vec<Arc<[HostPattern]>>,
}

struct Shared {
    connector: Connector,
    user_agent: HeaderValue,
    pool: Pool,
}

impl HttpClient {
    /// A client that asks every host of the public internet, unless it is built otherwise.
    pub fn builder() -> HttpClientBuilder {
        HttpClientBuilder::default()
    }

    /// The same client, for these hosts only, of those that it may ask. An empty list leaves none.
    #[must_use]
    pub fn only(&self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        let mut narrowed = self.clone();
        narrowed.hosts.push(hosts.into_iter().collect());
        narrowed
    }

    /// Sends a request, follows its redirects and reads the answer to its end. Dropping the future
    /// or firing `cancel` ends it at once and closes its connection.
    ///
    /// Nothing is sent twice but what [says so](HttpRequest::may_repeat), and that only if an idle
    /// connection breaks.
    ///
    /// # Errors
    /// [`HttpError`], which knows [whether a server may have got it](HttpError::may_have_reached_server).
    /// A status is none, whatever it says.
    pub async fn send(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
    ) -> Result<HttpResponse, HttpError> {
        let HttpRequest { max_redirects, max_body_bytes, timeout, .. } = request;
        let hop = Hop {
            target: Target::parse(&request.url)?,
            method: request.method,
            headers: request.headers,
            body: request.body,
            may_repeat: request.may_repeat,
        };
        check(&hop)?;
        let host = hop.target.host.clone();
        let sent = AtomicBool::new(false);
        let timed_out = async {
            match timeout {
                Some(after) => {
                    sleep(after).await;
                    after
                }
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                Err(HttpError::Cancelled { host, sent: sent.load(Ordering::Relaxed) })
            }
            after = timed_out => {
                Err(HttpError::TimedOut { host, after, sent: sent.load(Ordering::Relaxed) })
            }
            outcome = self.follow(hop, max_redirects, max_body_bytes, &sent) => outcome,
        }
    }

    async fn follow(
        &self,
        mut hop: Hop,
        max_redirects: usize,
        max_body_bytes: usize,
        sent: &AtomicBool,
    ) -> Result<HttpResponse, HttpError> {
        let mut left: Vec<(Method, Target)> = Vec::new();
        loop {
            let redirected = |error| match left.last() {
                Some((_, from)) => {
                    HttpError::Redirected { host: from.host.clone(), source: Box::new(error) }
                }
                None => error,
            };
            let next = match self.ask(&hop, max_body_bytes, sent).await.map_err(redirected)? {
                Outcome::Answer(response) => return Ok(response),
                Outcome::Redirect(next) => next,
            };
            let host = hop.target.host.clone();
            left.push((hop.method, hop.target));
            if left.iter().any(|(method, target)| *method == next.method && *target == next.target)
            {
                return Err(HttpError::RedirectLoop { host });
            }
            if left.len() > max_redirects {
                return Err(HttpError::TooManyRedirects { host, limit: max_redirects });
            }
            hop = next;
        }
    }

    /// Asks once, and reads the answer unless it only says where to ask next.
    async fn ask(
        &self,
        hop: &Hop,
        max_body_bytes: usize,
        sent: &AtomicBool,
    ) -> Result<Outcome, HttpError> {
        let target = &hop.target;
        let (answer, connection) = self.exchange(hop, sent).await?;
        let (mut parts, incoming) = answer.into_parts();
        if let Some(next) = hop.next(parts.status, &parts.headers)? {
            return Ok(Outcome::Redirect(next));
        }
        let body = body::read(&target.host, &mut parts.headers, incoming, max_body_bytes).await?;
        self.shared.pool.put(target, connection);
        Ok(Outcome::Answer(HttpResponse {
            status: parts.status,
            headers: parts.headers,
            body,
            final_url: target.url.clone(),
        }))
    }

    /// Sends a request over an idle connection or a new one, and reads the head of the answer.
    async fn exchange(
        &self,
        hop: &Hop,
        sent: &AtomicBool,
    ) -> Result<(Response<Incoming>, Connection), HttpError> {
        let target = &hop.target;
        self.admit(target)?;
        let request = self.request(hop)?;
        while let Some(mut idle) = self.shared.pool.take(target) {
            if idle.sender.ready().await.is_err() {
                continue;
            }
            match attempt(&mut idle, request.clone(), sent).await {
                Ok(answer) => return Ok((answer, idle)),
                Err(Failed::NotSent(_)) => {}
                Err(Failed::Sent(error)) if hop.may_repeat && !error.is_parse() => break,
                Err(Failed::Sent(error)) => return Err(broken(target, error)),
            }
        }
        let mut fresh = self.shared.connector.connect(target).await?;
        match attempt(&mut fresh, request, sent).await {
            Ok(answer) => Ok((answer, fresh)),
            Err(Failed::Sent(error)) => Err(broken(target, error)),
            Err(Failed::NotSent(error)) => Err(HttpError::Connect {
                host: target.host.clone(),
                source: io::Error::other(error),
            }),
        }
    }

    fn admit(&self, target: &Target) -> Result<(), HttpError> {
        let host = target.url.host();
        let admitted = |list: &Arc<[HostPattern]>| {
            host.as_ref().is_some_and(|host| list.iter().any(|pattern| pattern.admits(host)))
        };
        if self.hosts.iter().all(admitted) {
            Ok(())
        } else {
            Err(HttpError::HostNotAllowed { host: target.host.clone() })
        }
    }

    fn request(&self, hop: &Hop) -> Result<Request<Full<Bytes>>, HttpError> {
        let unusable = |error: hyper::http::Error| target::invalid(error.to_string());
        let mut request = Request::builder()
            .method(hop.method.clone())
            .uri(hop.target.path_and_query())
            .header(header::HOST, hop.target.authority())
            .header(header::ACCEPT_ENCODING, "gzip")
            .body(Full::new(hop.body.clone().unwrap_or_default()))
            .map_err(unusable)?;
        let headers = request.headers_mut();
        headers.extend(hop.headers.clone());
        headers.entry(header::USER_AGENT).or_insert_with(|| self.shared.user_agent.clone());
        Ok(request)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("hosts", &self.hosts)
            .field("allow_addresses", &self.shared.connector.allowed)
            .finish_non_exhaustive()
    }
}

/// Builds an [`HttpClient`]. Cloning it shares the certificate authorities that it has read, so
/// several clients with rules of their own are best built from clones of one builder.
#[derive(Clone)]
#[must_use = "a builder asks nobody; end it with `build`"]
pub struct HttpClientBuilder {
    connector: Connector,
    user_agent: HeaderValue,
    hosts: Vec<Arc<[HostPattern]>>,
}

impl Default for HttpClientBuilder {
    fn default() -> Self {
        Self {
            connector: Connector {
                resolver: Arc::new(SystemResolver),
                allowed: Vec::new(),
                connect_timeout: DEFAULT_CONNECT_TIMEOUT,
                tls: Arc::default(),
            },
            user_agent: HeaderValue::from_static(USER_AGENT),
            hosts: Vec::new(),
        }
    }
}

impl HttpClientBuilder {
    /// Nets that are dialled although they are not of the public internet; none unless set.
    ///
    /// A service that hands out a cloud machine's credentials (169.254.169.254 and its like) is
    /// only allowed by an entry of its own, with all bits, not by a net around it.
    pub fn allow_addresses(mut self, nets: impl IntoIterator<Item = IpNet>) -> Self {
        self.connector.allowed = nets.into_iter().collect();
        self
    }

    /// The hosts that may be asked, redirects included; `None`, all of them, unless set.
    pub fn allowed_hosts(mut self, hosts: Option<Vec<HostPattern>>) -> Self {
        self.hosts = hosts.into_iter().map(Arc::from).collect();
        self
    }

    /// What the client says of itself where a request does not; `toolcrib/` and its version unless
    /// set.
    pub fn user_agent(mut self, user_agent: HeaderValue) -> Self {
        self.user_agent = user_agent;
        self
    }

    /// How long it may take to open a connection, over all addresses of a host, and once more to
    /// secure it; [`DEFAULT_CONNECT_TIMEOUT`] unless set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connector.connect_timeout = timeout;
        self
    }

    /// Where addresses come from; [`SystemResolver`] unless set.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.connector.resolver = Arc::new(resolver);
        self
    }

    /// Trusts the certificate authorities in a PEM text, beside those of the system and those that
    /// were added before.
    ///
    /// # Errors
    /// [`HttpError::Roots`] when there is none in it, or one that cannot be read.
    pub fn trust(mut self, pem: &[u8]) -> Result<Self, HttpError> {
        Arc::make_mut(&mut self.connector.tls).trust(pem)?;
        Ok(self)
    }

    /// The client.
    pub fn build(self) -> HttpClient {
        let Self { connector, user_agent, hosts } = self;
        let shared = Shared { connector, user_agent, pool: Pool::default() };
        HttpClient { shared: Arc::new(shared), hosts }
    }
}

impl fmt::Debug for HttpClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClientBuilder")
            .field("hosts", &self.hosts)
            .field("allow_addresses", &self.connector.allowed)
            .field("tls", &self.connector.tls)
            .finish_non_exhaustive()
    }
}

/// What an answer is.
enum Outcome {
    Answer(HttpResponse),
    Redirect(Hop),
}

/// A request without an answer.
enum Failed {
    /// Nothing of it was written.
    NotSent(hyper::Error),
    /// Some of it may have been.
    Sent(hyper::Error),
}

async fn attempt(
    connection: &mut Connection,
    request: Request<Full<Bytes>>,
    sent: &AtomicBool,
) -> Result<Response<Incoming>, Failed> {
    // Before it is written, so that whoever ends the wait hears of it in every case.
    let sent_before = sent.swap(true, Ordering::Relaxed);
    connection.sender.try_send_request(request).await.map_err(|mut error| {
        if error.take_message().is_some() {
            sent.store(sent_before, Ordering::Relaxed);
            Failed::NotSent(error.into_error())
        } else {
            Failed::Sent(error.into_error())
        }
    })
}

fn broken(target: &Target, error: hyper::Error) -> HttpError {
    HttpError::Exchange { host: target.host.clone(), source: Box::new(error) }
}

fn check(hop: &Hop) -> Result<(), HttpError> {
    if matches!(hop.method, Method::CONNECT | Method::TRACE) {
        return Err(HttpError::Request { problem: format!("{} is not for asking", hop.method) });
    }
    match hop.headers.keys().find(|name| is_set_by_client(name)) {
        Some(name) => Err(HttpError::Request {
            problem: format!("the header `{name}` is set by the client alone; leave it out"),
        }),
        None => Ok(()),
    }
}
