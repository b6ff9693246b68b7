//! Redirects of a request.

use std::sync::Arc;

use hyper::{
    HeaderMap, Method, StatusCode,
    body::Bytes,
    header::{self, HeaderValue},
};
use toolcrib_core::__internal::beginning;

use super::{address::PortOrigin, error::HttpError, message::shown, target::Target};

/// How much of a target an error shows.
const SHOWN_CHARS: usize = 300;

/// Which redirects of a request are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectPolicy {
    /// Those that a browser follows, within the rules of the [module](super).
    #[default]
    Usual,
    /// Only 307 and 308 to the same scheme, host and port: the request is repeated there with its
    /// method, headers and body. Every other status of redirection but 304 is an error that names
    /// its target, also one without a target.
    SameOrigin,
}

/// Headers that may be sent to an origin that the caller did not name.
const GO_ALONG: [header::HeaderName; 3] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];

/// The next request.
#[derive(Clone)]
pub(crate) struct Hop {
    pub(crate) target: Arc<Target>,
    /// The request's own URL, after a redirect.
    pub(crate) redirected_from: Option<Arc<Target>>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
    pub(crate) may_repeat: bool,
}

impl Hop {
    /// How it got its port.
    pub(crate) fn way(&self) -> PortOrigin {
        let target = &self.target;
        let own = self.redirected_from.as_ref().unwrap_or(target);
        let is_upgrade = (own.port, target.port, target.https) == (80, 443, true);
        PortOrigin { own_port: own.port, is_usual: own.port == target.port || is_upgrade }
    }

    /// Whether it is a read-only request without a body.
    fn only_asks(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD) && self.body.is_none()
    }

    /// The next request after a response with this status and [`location`].
    pub(crate) fn next(
        &self,
        status: StatusCode,
        location: &HeaderValue,
    ) -> Result<Self, HttpError> {
        let host = || self.target.host.clone();
        let location = str::from_utf8(location.as_bytes())
            .map_err(|_| HttpError::RedirectUnreadable { host: host() })?;
        let target = self
            .target
            .join(location)
            .map_err(|error| HttpError::Redirected { host: host(), source: Box::new(error) })?;
        if self.target.https && !target.https {
            return Err(HttpError::RedirectDowngrade { host: host() });
        }
        let first = self.redirected_from.as_ref().unwrap_or(&self.target);
        let mut next = Self {
            target: Arc::new(target),
            redirected_from: Some(Arc::clone(first)),
            ..self.clone()
        };
        if becomes_get(status, &self.method) {
            next.method = Method::GET;
            next.body = None;
            for about_body in [
                header::CONTENT_TYPE,
                header::CONTENT_ENCODING,
                header::CONTENT_LANGUAGE,
                header::CONTENT_LOCATION,
            ] {
                next.headers.remove(about_body);
            }
        }
        if !next.target.same_origin(&self.target) {
            if !next.only_asks() {
                return Err(HttpError::RedirectElsewhere {
                    host: host(),
                    to: next.target.host.clone(),
                });
            }
            next.headers = GO_ALONG
                .into_iter()
                .filter_map(|name| Some((name.clone(), self.headers.get(name)?.clone())))
                .filter(|(_, value)| !value.is_sensitive())
                .collect();
        }
        Ok(next)
    }

    /// The next request with [`RedirectPolicy::SameOrigin`], after those that `left` contains; `None`
    /// if the response is not a redirect.
    pub(crate) fn repeated(
        &self,
        status: StatusCode,
        location: Option<&HeaderValue>,
        left: &[Self],
        limit: usize,
    ) -> Result<Option<Self>, HttpError> {
        if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let url = location.and_then(|location| str::from_utf8(location.as_bytes()).ok());
        let url = url.and_then(|location| self.target.url.join(location).ok());
        let to = url.as_ref().and_then(shown).map(|url| beginning(&url, SHOWN_CHARS));
        let target = url.and_then(|url| Target::of(url).ok());
        let refused = |why| {
            let host = self.target.host.clone();
            Err(HttpError::RedirectRefused { host, status: status.as_u16(), to, why })
        };
        let Some(target) = target else {
            return refused("it has a user, or another scheme than http and https");
        };
        if !target.same_origin(&self.target) {
            return refused("its scheme, host or port is another");
        }
        if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
            return refused("only 307 and 308 repeat a request unchanged");
        }
        if left.len() >= limit {
            return refused("it is one redirect more than the limit");
        }
        if left.iter().chain([self]).any(|earlier| *earlier.target == target) {
            return refused("it is a circle");
        }
        let first = self.redirected_from.as_ref().unwrap_or(&self.target);
        let redirected_from = Some(Arc::clone(first));
        Ok(Some(Self { target: Arc::new(target), redirected_from, ..self.clone() }))
    }
}

/// The target of a redirect; `None` for other responses.
pub(crate) fn location(status: StatusCode, answered: &HeaderMap) -> Option<&HeaderValue> {
    let redirects = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    answered.get(header::LOCATION).filter(|_| redirects)
}

fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        _ => false,
    }
}
