//! HTTP that only goes where it may.
//!
//! A tool's URL may come from a model, and so from whoever wrote what the model read. So every
//! request, and every redirect anew, is held to the same rules:
//!
//! - Only `http` and `https`, and no user or password in the URL.
//! - The host is one that the client may ask, where it is bound to some.
//! - Its name is resolved once, **every** address is judged, and one that is refused refuses the
//!   name; then an address that was judged is dialled. A name that answers differently the next
//!   time gains nothing.
//! - Only addresses of the public internet are dialled, unless
//!   [`allow_addresses`](HttpClientBuilder::allow_addresses) contains them with their port.
//!
//! # Redirects
//! Followed by the client, at most [`HttpRequest::max_redirects`] of them, each judged as above.
//! 301 and 302 make a `POST` a `GET`, and 303 makes everything but a `HEAD` one; 307 and 308 keep
//! method and body. From `https` to `http` none is followed, and none to a port that is not the one of
//! the request's own URL, unless [`allow_addresses`](HttpClientBuilder::allow_addresses) has the
//! address with that port; on the public internet `http` on 80 may become `https` on 443. To another origin (scheme, host and
//! port) only a `GET` or `HEAD` without a body is, and of its headers only `Accept`,
//! `Accept-Language` and `User-Agent` go along, and not those marked sensitive.
//!
//! # Limits
//! A body ends at [`HttpRequest::max_body_bytes`], counted as it arrives and again as it is
//! decoded; a longer one is an error, since half an answer reads like a whole one. The head of an
//! answer has [`MAX_HEAD_BYTES`] and [`MAX_HEADERS`] headers at most. `gzip` is asked for and
//! decoded; other encodings, and one on top of another, are refused.
//!
//! # Streams
//! [`HttpClient::send`] reads an answer whole, [`HttpClient::stream`] hands out its body as it
//! comes. Both are one exchange under the same rules and limits; a stream is not decoded, and asked
//! for without an encoding.
//!
//! # What is not there
//! No proxy and nothing else is taken from the environment, but for the certificate authorities
//! that the system trusts (where `SSL_CERT_FILE` and `SSL_CERT_DIR` say, if they do). No cookies.
//! HTTP/1.1 only.

mod address;
mod allowed;
mod body;
mod bounds;
mod client;
mod connect;
mod error;
mod exchange;
mod host;
mod message;
mod pool;
mod redirect;
mod resolve;
mod retry_after;
mod stream;
mod target;
mod tls;

pub use hyper::{
    HeaderMap, Method, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
};
pub use ipnet::IpNet;
pub use url::Url;

pub use self::{
    allowed::{AllowedAddress, InvalidAddress},
    client::{DEFAULT_CONNECT_TIMEOUT, HttpClient, HttpClientBuilder, is_set_by_client},
    connect::{MAX_HEAD_BYTES, MAX_HEADERS},
    error::{HttpError, HttpErrorKind},
    host::{HostPattern, InvalidHostPattern, may_reach},
    message::{
        DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS, DEFAULT_TIMEOUT, HttpRequest, HttpResponse,
    },
    resolve::{Resolve, SystemResolver},
    retry_after::retry_after,
    stream::HttpStream,
    target::{MAX_URL_BYTES, parse_url},
};
