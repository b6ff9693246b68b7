//! The HTTP client: its rules, and its request methods.

use std::{sync::Arc, time::Duration};

use hyper::{
    Method,
    header::{self, HeaderName, HeaderValue},
};
use tokio_util::sync::CancellationToken;
use toolcrib_core::NetworkRules;

use super::{
    allowed::AllowedAddress,
    body,
    bounds::Bounds,
    connect::Connector,
    error::HttpError,
    exchange::{BodyEncoding, Exchange},
    host::{HostPattern, HostRules, InvalidHostPatternError},
    message::{HttpRequest, HttpResponse},
    redirect::Hop,
    resolve::{Resolve, SystemResolver},
    shared::Shared,
    stream::{HttpStream, Limits},
};

/// The default timeout of opening a connection; it applies to the connection itself and again to
/// TLS.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The default `User-Agent`.
const USER_AGENT: &str = concat!("toolcrib/", env!("CARGO_PKG_VERSION"));

/// Headers of the connection, which the client sets. A second value would make a request ambiguous.
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

/// Whether only the client sets a header: those of the connection, `Host`, `Content-Length` and
/// `Accept-Encoding`. A request with such a header is refused.
pub fn is_set_by_client(name: &HeaderName) -> bool {
    OURS.contains(name)
}

/// Sends requests to permitted servers. A handle: clones share its rules and its connections, and
/// [`only`](Self::only) narrows it. It cannot be widened.
///
/// See the [module](super) for its rules. Needs a tokio runtime with I/O and time.
#[derive(Clone)]
pub struct HttpClient {
    shared: Arc<Shared>,
    hosts: HostRules,
}

impl HttpClient {
    /// A builder of a client for every host of the public internet, unless it is restricted.
    pub fn builder() -> HttpClientBuilder {
        HttpClientBuilder::default()
    }

    /// The same client, for these hosts only, of those that it may request. An empty list permits
    /// none.
    #[must_use]
    pub fn only(&self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        let mut narrowed = self.clone();
        narrowed.hosts.required.push(hosts.into_iter().collect());
        narrowed
    }

    /// The same client, but not for these hosts, redirects included.
    #[must_use]
    pub fn except(&self, hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        let mut narrowed = self.clone();
        narrowed.hosts.denied.push(hosts.into_iter().collect());
        narrowed
    }

    /// The same client, restricted by these rules.
    ///
    /// # Errors
    /// [`InvalidHostPatternError`] for an invalid host pattern: then no request may be sent.
    pub fn within(&self, rules: &NetworkRules) -> Result<Self, InvalidHostPatternError> {
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

    /// Sends a request, follows its redirects and reads the response to its end. Dropping the
    /// future or firing `cancel` ends it at once and closes its connection.
    ///
    /// A request is sent twice only if it [may be repeated](HttpRequest::may_repeat), and only if
    /// an idle connection breaks.
    ///
    /// # Errors
    /// [`HttpError`], with [whether a server may have got it](HttpError::may_have_reached_server)
    /// and [its kind](HttpError::kind). A status is never an error.
    pub async fn send(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
    ) -> Result<HttpResponse, HttpError> {
        let mut stream = self.open(request, cancel, BodyEncoding::Gzip).await?;
        stream.decode()?;
        body::collect(stream).await
    }

    /// Sends a request as [`send`](Self::send) does, and returns after the response headers, to
    /// read the body as it arrives.
    ///
    /// No encoding is requested, since an encoder may delay bytes that a reader waits for; `gzip` is
    /// decoded nevertheless. Another encoding is refused, unless the status is not one of success,
    /// which is then returned with an empty body. The request's timeouts and size limits apply until
    /// the stream has ended, and so does `cancel`. If a response may take longer than
    /// [`DEFAULT_TIMEOUT`](super::DEFAULT_TIMEOUT), set [`timeout`](HttpRequest::timeout), and
    /// [`idle_timeout`](HttpRequest::idle_timeout) to detect a silent server.
    ///
    /// # Errors
    /// Those of `send`, up to the response headers; the others come from the stream.
    pub async fn stream(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
    ) -> Result<HttpStream, HttpError> {
        let mut stream = self.open(request, cancel, BodyEncoding::Identity).await?;
        match stream.decode() {
            Err(_) if !stream.status().is_success() => stream.skip_body(),
            decoded => decoded?,
        }
        Ok(stream)
    }

    /// Whether the rules permit the host of a target; its addresses are checked when it is dialed.
    #[cfg(feature = "process")]
    pub(super) fn admit(&self, target: &super::target::Target) -> Result<(), HttpError> {
        self.hosts.admit(target)
    }

    #[cfg(feature = "process")]
    pub(super) fn connector(&self) -> &Connector {
        &self.shared.connector
    }

    async fn open(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        accepted: BodyEncoding,
    ) -> Result<HttpStream, HttpError> {
        let HttpRequest { max_body_bytes, timeout, idle_timeout, .. } = request;
        let redirects = (request.redirect_policy, request.max_redirects);
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
        let exchange = Exchange::new(&self.shared, &self.hosts, accepted, redirects, idle_timeout);
        let answer = tokio::select! {
            biased;
            over = bounds.over() => return Err(bounds.error(&over, exchange.was_sent())),
            answer = exchange.follow(first) => answer?,
        };
        let limits = Limits { bounds, idle_timeout, max_body_bytes };
        HttpStream::new(answer, limits, Arc::clone(&self.shared))
    }
}

toolcrib_core::__internal::debug_fields!(
    HttpClient,
    client,
    hosts = client.hosts.required,
    denied = client.hosts.denied,
    allow_addresses = client.shared.connector.allowed,
    ..
);

/// Builder of an [`HttpClient`], with its restrictions. Clones share the loaded certificate
/// authorities, so build several clients with separate rules from clones of one builder.
#[derive(Clone)]
#[must_use = "a builder sends no requests; end it with `build`"]
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
    /// Addresses outside the public internet that may be dialed; none by default. An entry with a
    /// port, public or not, may also be dialed on it after a redirect.
    ///
    /// A cloud metadata service (169.254.169.254 and the like) is only permitted by an entry for
    /// exactly that address, with all bits, not by a network that contains it.
    pub fn allow_addresses(mut self, addresses: impl IntoIterator<Item = AllowedAddress>) -> Self {
        self.connector.allowed = addresses.into_iter().collect();
        self
    }

    /// The permitted hosts, redirects included; `None`, all of them, by default.
    pub fn allowed_hosts(mut self, hosts: Option<Vec<HostPattern>>) -> Self {
        self.hosts = hosts.into_iter().map(Arc::from).collect();
        self
    }

    /// The `User-Agent` of requests without one; `toolcrib/` and its version by default.
    pub fn user_agent(mut self, user_agent: HeaderValue) -> Self {
        self.user_agent = user_agent;
        self
    }

    /// The timeout of opening a connection, over all addresses of a host, and again of TLS;
    /// [`DEFAULT_CONNECT_TIMEOUT`] by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connector.connect_timeout = timeout;
        self
    }

    /// The name resolver; [`SystemResolver`] by default.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.connector.resolver = Arc::new(resolver);
        self
    }

    /// Trusts the certificate authorities in a PEM text, in addition to those of the system and to
    /// earlier ones.
    ///
    /// # Errors
    /// [`HttpError::Roots`] if it contains none, or an unreadable one.
    pub fn trust(mut self, pem: &[u8]) -> Result<Self, HttpError> {
        Arc::make_mut(&mut self.connector.tls).trust(pem)?;
        Ok(self)
    }

    /// Builds the client, without connecting.
    pub fn build(self) -> HttpClient {
        let Self { connector, user_agent, hosts } = self;
        let hosts = HostRules { required: hosts, denied: Vec::new() };
        HttpClient { shared: Arc::new(Shared::new(connector, user_agent)), hosts }
    }
}

toolcrib_core::__internal::debug_fields!(
    HttpClientBuilder,
    builder,
    hosts = builder.hosts,
    allow_addresses = builder.connector.allowed,
    tls = builder.connector.tls,
    ..
);

fn check(hop: &Hop) -> Result<(), HttpError> {
    if matches!(hop.method, Method::CONNECT | Method::TRACE) {
        return Err(HttpError::Request {
            problem: format!("method `{}` is not supported", hop.method),
        });
    }
    match hop.headers.keys().find(|name| is_set_by_client(name)) {
        Some(name) => Err(HttpError::Request {
            problem: format!("the header `{name}` is set by the client; remove it"),
        }),
        None => Ok(()),
    }
}
