//! Cross-origin resource sharing (CORS): the headers that a browser needs before it lets a web page
//! of an allowed origin send a request and read the response. A token is sent by the page itself,
//! never by the browser, so credentials are not allowed.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

const ASKS_FOR_LOCAL: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOWS_LOCAL: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The headers of clients of both eras.
const HEADERS: &str = "authorization, content-type, accept, last-event-id, mcp-session-id, \
     mcp-protocol-version, mcp-method, mcp-name";

/// The prefix of headers of single arguments, which tools choose.
const ARGUMENT: &str = "mcp-param-";

/// The size limit of the requested list of headers, in bytes.
const MAX_HEADERS: usize = 4096;

/// Whether it is a browser's preflight request.
pub(crate) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response to a preflight, without the origin. It is the same at every path and for every
/// token.
pub(crate) fn preflight<B: Default>(asked: &HeaderMap) -> Response<B> {
    let mut answer = Response::new(B::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    let methods = HeaderValue::from_static("POST, GET, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed = HeaderValue::try_from(allowed_headers(asked));
    let allowed = allowed.unwrap_or_else(|_| HeaderValue::from_static(HEADERS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if asked.contains_key(ASKS_FOR_LOCAL) {
        headers.insert(ALLOWS_LOCAL, HeaderValue::from_static("true"));
    }
    answer
}

/// Lets a page of this origin read a response.
pub(crate) fn let_read(answer: &mut HeaderMap, origin: HeaderValue) {
    let exposed = HeaderValue::from_static("mcp-session-id, www-authenticate");
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    answer.append(VARY, HeaderValue::from_static("origin"));
}

fn allowed_headers(asked: &HeaderMap) -> String {
    let mut allowed = HEADERS.to_owned();
    let asked = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|names| names.to_str().ok());
    let asked = asked.filter(|names| names.len() <= MAX_HEADERS).unwrap_or_default();
    for name in asked.split(',').map(|name| name.trim().to_ascii_lowercase()) {
        if name.starts_with(ARGUMENT) {
            allowed.push_str(", ");
            allowed.push_str(&name);
        }
    }
    allowed
}
