//! An HTTP client with restrictions on its targets.
//!
//! A tool's URL may come from a model, and so from the author of any text that the model read. So
//! every request, and every redirect again, must follow the same rules:
//!
//! - Only `http` and `https`, and no user or password in the URL.
//! - The host is one of the client's permitted hosts, if it is restricted.
//! - Its name is resolved once, and **every** address is checked; one refused address refuses the
//!   name. Then a checked address is dialed. A name that resolves differently the next time gains
//!   nothing.
//! - Only addresses of the public internet are dialed, unless
//!   [`allow_addresses`](HttpClientBuilder::allow_addresses) contains them with their port.
//!
//! # Redirects
//! Followed by the client, at most [`HttpRequest::max_redirects`] of them, each checked as above.
//! 301 and 302 make a `POST` a `GET`, and 303 makes everything but a `HEAD` one; 307 and 308 keep
//! method and body. A redirect from `https` to `http` is not followed, nor one to a port that is
//! not the one of the request's own URL, unless
//! [`allow_addresses`](HttpClientBuilder::allow_addresses) has the address with that port; on the
//! public internet `http` on 80 may become `https` on 443. To another origin (scheme, host and
//! port) only a `GET` or `HEAD` without a body is followed, with only the headers `Accept`,
//! `Accept-Language` and `User-Agent`, and not those marked sensitive.
//! [`RedirectPolicy::SameOrigin`] follows fewer.
//!
//! # Limits
//! A body is limited to [`HttpRequest::max_body_bytes`], counted as it arrives and again as it is
//! decoded; a longer one is an error, since a truncated response looks like a complete one.
//! Response headers are limited to [`MAX_HEAD_BYTES`] and [`MAX_HEADERS`]. `gzip` is requested and
//! decoded; other encodings, and several on top of each other, are refused.
//!
//! # Streams
//! [`HttpClient::send`] reads a complete response, [`HttpClient::stream`] returns its body as it
//! arrives. Both are one exchange under the same rules and limits; a stream is requested without an
//! encoding, and decoded as it arrives if it has one.
//!
//! # What is not there
//! No proxy and nothing else is taken from the environment, except for the certificate authorities
//! that the system trusts (from `SSL_CERT_FILE` and `SSL_CERT_DIR`, if set). No cookies. HTTP/1.1
//! only.

mod address;
mod allowed;
mod body;
mod bounds;
mod client;
mod connect;
#[cfg(feature = "process")]
mod egress;
mod error;
mod exchange;
mod host;
mod message;
mod pool;
mod redirect;
mod resolve;
mod retry_after;
mod shared;
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

#[cfg(feature = "process")]
pub use self::egress::EgressProxy;
pub use self::{
    allowed::{AllowedAddress, InvalidAddressError},
    client::{DEFAULT_CONNECT_TIMEOUT, HttpClient, HttpClientBuilder, is_set_by_client},
    connect::{MAX_HEAD_BYTES, MAX_HEADERS},
    error::{HttpError, HttpErrorKind},
    host::{HostPattern, InvalidHostPatternError, may_reach},
    message::{
        DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS, DEFAULT_TIMEOUT, HttpRequest, HttpResponse,
    },
    redirect::RedirectPolicy,
    resolve::{Resolve, SystemResolver},
    retry_after::retry_after,
    stream::HttpStream,
    target::{MAX_URL_BYTES, parse_url},
};
