//! What is asked and what is answered.

use std::{fmt, time::Duration};

use hyper::{HeaderMap, Method, StatusCode, body::Bytes, header::HeaderName};
use url::Url;

/// How many redirects are followed unless a request says otherwise.
pub const DEFAULT_MAX_REDIRECTS: usize = 5;

/// How many bytes the body of an answer has at most unless a request says otherwise: 10 MiB.
pub const DEFAULT_MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// How long a request takes at most unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// What is asked. Start from [`new`](Self::new) or [`get`](Self::get) and set fields. Its `Debug`
/// shows the names of headers, and no value, user, password, query or body.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// What to do; anything but `CONNECT` and `TRACE`.
    pub method: Method,
    /// Where, `http` or `https`, without user and password. It is read when it is sent.
    pub url: String,
    /// What goes along. A value that nobody should see is marked
    /// ([`set_sensitive`](hyper::header::HeaderValue::set_sensitive)). What [the client
    /// sets](super::is_set_by_client) may not stand here; `User-Agent` may.
    pub headers: HeaderMap,
    /// The body, if it has one; an empty one and none are not the same.
    pub body: Option<Bytes>,
    /// Whether it may reach a server twice: where an idle connection breaks as it is written to, it
    /// is then sent once more, on a new one. `true` for `GET` and `HEAD`, else `false`, unless set.
    pub may_repeat: bool,
    /// How many redirects are followed; one more is an error. [`DEFAULT_MAX_REDIRECTS`] unless set.
    pub max_redirects: usize,
    /// How many bytes the answer's body has at most, as it arrives and as it is decoded; a longer
    /// one is an error. [`DEFAULT_MAX_BODY_BYTES`] unless set.
    pub max_body_bytes: usize,
    /// How long it takes at most, from the name to the last byte and over all redirects; `None` is
    /// as long as nobody cancels it. The time that whoever reads a [stream](super::HttpStream)
    /// takes counts. [`DEFAULT_TIMEOUT`] unless set.
    pub timeout: Option<Duration>,
    /// How long nothing may come while it is waited for: before the head of an answer, from when
    /// its request is handed to an open connection, and between two pieces of its body. `None`, as
    /// long as [`timeout`](Self::timeout) lets it, unless set.
    pub idle_timeout: Option<Duration>,
}

impl HttpRequest {
    /// A request without headers and body; see the fields for the other defaults.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            may_repeat: matches!(method, Method::GET | Method::HEAD),
            method,
            url: url.into(),
            headers: HeaderMap::new(),
            body: None,
            max_redirects: DEFAULT_MAX_REDIRECTS,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            timeout: Some(DEFAULT_TIMEOUT),
            idle_timeout: None,
        }
    }

    /// A `GET`.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &shown(&self.url))
            .field("headers", &names)
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .finish_non_exhaustive()
    }
}

/// A URL up to its query, without user and password. Of what cannot be read nobody knows where they
/// stand.
fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) if url.origin().is_tuple() => {
            format!("{}{}", url.origin().ascii_serialization(), url.path())
        }
        _ => "(cannot be used)".to_owned(),
    }
}

/// What is answered, whatever its status: a 404 is an answer, not an [`HttpError`].
///
/// [`HttpError`]: super::HttpError
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpResponse {
    /// How it went.
    pub status: StatusCode,
    /// What came along. Where the body was decoded, `Content-Encoding` and `Content-Length`, which
    /// are not true of it any more, are gone.
    pub headers: HeaderMap,
    /// The body, decoded and whole.
    pub body: Bytes,
    /// Where the answer came from, after all redirects.
    pub final_url: Url,
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("host", &self.final_url.host_str())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
