//! The client: what it may ask, and the ways to ask.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::{
    Method,
    header::{self, HeaderName, HeaderValue},
};
use tokio_util::sync::CancellationToken;
use toolcrib_core::NetworkRules;

use super::{
    allowed::AllowedAddress,
    body::{self, Accepted},
    bounds::Bounds,
    connect::Connector,
    error::HttpError,
    exchange::Exchange,
    host::{HostPattern, InvalidHostPattern},
    message::{HttpRequest, HttpResponse},
    pool::Pool,
    redirect::Hop,
    resolve::{Resolve, SystemResolver},
    stream::{HttpStream, Limits},
    target::Target,
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
    pub(super) shared: Arc<Shared>,
    /// A host has to be in each of these lists.
    hosts: Vec<Arc<[HostPattern]>>,
    /// A host must not be in any of these.
    denied: Vec<Arc<[HostPattern]>>,
}

/// What a client has in common with those that were narrowed from it.
pub(super) struct Shared {
    pub(super) connector: Connector,
    pub(super) user_agent: HeaderValue,
    pub(super) pool: Pool,
    /// Where the last request went: most clients ask one URL over and over.
    last: Mutex<Option<(String, Arc<Target>)>>,
}

impl Shared {
    fn target(&self, url: &str) -> Result<Arc<Target>, HttpError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, target)) = last.as_ref().filter(|(known, _)| known == url) {
            return Ok(Arc::clone(target));
        }
        let target = Arc::new(Target::parse(url)?);
        *last = Some((url.to_owned(), Arc::clone(&target)));
        Ok(target)
    }
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

    /// The same client, but not for these hosts, redirects included.
    #[must_use]
    pub fn except(&self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        let mut narrowed = self.clone();
        narrowed.denied.push(hosts.into_iter().collect());
        narrowed
    }

    /// The same client, as far as these rules let it.
    ///
    /// # Errors
    /// [`InvalidHostPattern`] for a rule that names no host: then nothing may be asked.
    pub fn within(&self, rules: &NetworkRules) -> Result<Self, InvalidHostPattern> {
        let patterns = |texts: &[Arc<str>]| -> Result<Vec<HostPattern>, _> {
            texts.iter().map(|text| text.parse()).collect()
        };
        let mut narrowed = self.clone();
        if let Some(allow) = &rules.allow {
            narrowed = narrowed.only(patterns(allow)?);
        }
        if !rules.deny.is_empty() {
            narrowed = narrowed.except(patterns(&rules.deny)?);
        }
        Ok(narrowed)
    }

    /// Sends a request, follows its redirects and reads the answer to its end. Dropping the future
    /// or firing `cancel` ends it at once and closes its connection.
    ///
    /// Nothing is sent twice but what [says so](HttpRequest::may_repeat), and that only if an idle
    /// connection breaks.
    ///
    /// # Errors
    /// [`HttpError`], which knows [whether a server may have got it](HttpError::may_have_reached_server)
    /// and [of which kind it is](HttpError::kind). A status is none, whatever it says.
    pub async fn send(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
    ) -> Result<HttpResponse, HttpError> {
        body::collect(self.open(request, cancel, Accepted::Gzip).await?).await
    }

    /// Sends a request as [`send`](Self::send) does, and returns as soon as the head of the answer
    /// is there, for whoever wants to read its body as it comes.
    ///
    /// The body is asked for as it is: one that is encoded is refused, unless the status is not one
    /// of success, which then counts and stands before an empty body. What the request says of time
    /// and size holds until the stream has ended, and so does `cancel`. Where an answer may
    /// take longer than [`DEFAULT_TIMEOUT`](super::DEFAULT_TIMEOUT), set
    /// [`timeout`](HttpRequest::timeout), and [`idle_timeout`](HttpRequest::idle_timeout) to notice
    /// a server that has fallen silent.
    ///
    /// # Errors
    /// Those of `send`, up to the head of the answer; the others come from the stream.
    pub async fn stream(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
    ) -> Result<HttpStream, HttpError> {
        let mut stream = self.open(request, cancel, Accepted::Identity).await?;
        match body::refuse_encoded(&stream) {
            Err(_) if !stream.status().is_success() => stream.skip_body(),
            checked => checked?,
        }
        Ok(stream)
    }

    async fn open(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        accepted: Accepted,
    ) -> Result<HttpStream, HttpError> {
        let HttpRequest { max_redirects, max_body_bytes, timeout, idle_timeout, .. } = request;
        let first = Hop {
            target: self.shared.target(&request.url)?,
            redirected_from: None,
            method: request.method,
            headers: request.headers,
            body: request.body,
            may_repeat: request.may_repeat,
        };
        check(&first)?;
        let bounds = Bounds::new(first.target.host.clone(), cancel.clone(), timeout);
        let exchange = Exchange::new(self, accepted, max_redirects, idle_timeout);
        let answer = tokio::select! {
            biased;
            over = bounds.over() => return Err(bounds.error(&over, exchange.was_sent())),
            answer = exchange.follow(first) => answer?,
        };
        let limits = Limits { bounds, idle_timeout, max_body_bytes };
        HttpStream::new(answer, limits, Arc::clone(&self.shared))
    }

    pub(super) fn admit(&self, target: &Target) -> Result<(), HttpError> {
        let host = target.url.host();
        let is_in = |list: &Arc<[HostPattern]>| {
            host.as_ref().is_some_and(|host| list.iter().any(|pattern| pattern.admits(host)))
        };
        if self.hosts.iter().all(is_in) && !self.denied.iter().any(is_in) {
            Ok(())
        } else {
            Err(HttpError::HostNotAllowed { host: target.host.clone() })
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("hosts", &self.hosts)
            .field("denied", &self.denied)
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
    /// Addresses that are dialled although they are not of the public internet; none unless set. One
    /// with a port, public or not, may also be dialled on it where a redirect leads there.
    ///
    /// A service that hands out a cloud machine's credentials (169.254.169.254 and its like) is
    /// only allowed by an entry of its own, with all bits, not by a net around it.
    pub fn allow_addresses(mut self, addresses: impl IntoIterator<Item = AllowedAddress>) -> Self {
        self.connector.allowed = addresses.into_iter().collect();
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
        let shared =
            Shared { connector, user_agent, pool: Pool::default(), last: Mutex::default() };
        HttpClient { shared: Arc::new(shared), hosts, denied: Vec::new() }
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
