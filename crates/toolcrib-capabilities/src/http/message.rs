//! Requests and responses.

use std::time::Duration;

use hyper::{HeaderMap, Method, StatusCode, body::Bytes, header::HeaderName};
use url::Url;

use super::redirect::RedirectPolicy;

/// The default limit of redirects.
pub const DEFAULT_MAX_REDIRECTS: usize = 5;

/// The default size limit of a response body: 10 MiB.
pub const DEFAULT_MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// The default timeout of a request.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A request of an HTTP client. Start from [`new`](Self::new) or [`get`](Self::get) and set fields.
/// Its `Debug` shows the names of headers, and no value, user, password, query or body.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method; anything but `CONNECT` and `TRACE`.
    pub method: Method,
    /// The URL, `http` or `https`, without user and password. It is parsed when it is sent.
    pub url: String,
    /// The headers. Mark secret values with
    /// [`set_sensitive`](hyper::header::HeaderValue::set_sensitive). Headers that [the client
    /// sets](super::is_set_by_client) are refused; `User-Agent` is permitted.
    pub headers: HeaderMap,
    /// The body, if it has one; an empty one differs from none.
    pub body: Option<Bytes>,
    /// Whether it may reach a server twice: if an idle connection breaks during the write, it is
    /// sent once more, on a new one. `true` for `GET` and `HEAD`, else `false`, unless set.
    pub may_repeat: bool,
    /// The limit of redirects; one more is an error. [`DEFAULT_MAX_REDIRECTS`] unless set.
    pub max_redirects: usize,
    /// Which redirects are followed. [`RedirectPolicy::Usual`] unless set.
    pub redirect_policy: RedirectPolicy,
    /// The size limit of the response body, as it arrives and after decoding; a longer one is an
    /// error. [`DEFAULT_MAX_BODY_BYTES`] unless set.
    pub max_body_bytes: usize,
    /// The total timeout, from name resolution to the last byte and over all redirects; `None` is
    /// without limit. The time of a slow reader of a [stream](super::HttpStream) counts.
    /// [`DEFAULT_TIMEOUT`] unless set.
    pub timeout: Option<Duration>,
    /// The idle timeout: from the handover of the request to an open connection until the response
    /// headers, and between two chunks of the body. `None`, limited only by
    /// [`timeout`](Self::timeout), unless set.
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
            redirect_policy: RedirectPolicy::default(),
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            timeout: Some(DEFAULT_TIMEOUT),
            idle_timeout: None,
        }
    }

    /// A `GET` request without a body.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }

    /// The URL as [`shown`] shows it. An unparsable URL is not shown at all.
    fn shown_url(&self) -> String {
        let url = Url::parse(&self.url).ok();
        url.as_ref().and_then(shown).unwrap_or_else(|| "(cannot be used)".to_owned())
    }
}

toolcrib_core::__internal::debug_fields!(
    HttpRequest,
    request,
    method = request.method,
    url = request.shown_url(),
    headers = request.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
    body_bytes = request.body.as_ref().map(Bytes::len),
    ..
);

/// A URL up to its query, without user and password; `None` if it has no host.
pub(super) fn shown(url: &Url) -> Option<String> {
    let origin = url.origin();
    origin.is_tuple().then(|| format!("{}{}", origin.ascii_serialization(), url.path()))
}

/// A response of any status: a 404 is a response, not an [`HttpError`].
///
/// [`HttpError`]: super::HttpError
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers. After decoding, `Content-Encoding` and `Content-Length` are removed, because
    /// they are no longer true.
    pub headers: HeaderMap,
    /// The complete body, decoded.
    pub body: Bytes,
    /// The URL of the response, after all redirects.
    pub final_url: Url,
}

toolcrib_core::__internal::debug_fields!(
    HttpResponse,
    response,
    status = response.status,
    host = response.final_url.host_str(),
    body_bytes = response.body.len(),
    ..
);
