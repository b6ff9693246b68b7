use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// The reason why a request failed. Messages name the host and never the rest of a URL, a header or
/// a body, which may contain secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL is invalid or not supported.
    #[error("the URL cannot be used: {problem}")]
    Url {
        /// The problem.
        problem: String,
    },
    /// The request sets a property that only the client may set.
    #[error("the request cannot be sent: {problem}")]
    Request {
        /// The problem.
        problem: String,
    },
    /// The client is restricted to other hosts.
    #[error("`{host}` is not among the permitted hosts; add it to them, or request another")]
    HostNotAllowed {
        /// The host.
        host: String,
    },
    /// Its name has no address.
    #[error("the name `{host}` cannot be resolved: {source}; check its spelling")]
    Resolve {
        /// The host.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// One of its addresses is not permitted, so none is dialed.
    #[error(
        "`{host}` leads to {address}, which is {why}; if this is intended, allow that address for \
         this client"
    )]
    AddressRefused {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
        /// The kind of address; completes *which is*.
        why: &'static str,
    },
    /// The host leads to an address that this client may dial, but not on this port: it is not the
    /// allowed port, or a redirect leads there and it is not that of the request's own URL.
    #[error(
        "`{host}` may not be reached on port {} of {}; if this is intended, allow {address} for \
         this client",
        address.port(), address.ip()
    )]
    PortRefused {
        /// The host.
        host: String,
        /// The address, with the port.
        address: SocketAddr,
    },
    /// None of its addresses accepts a connection.
    #[error(
        "no connection to `{host}` on port {port}: {source}; check host and port, and that the server \
         runs"
    )]
    Connect {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The error of the last address.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error(
        "no secure connection to `{host}`: {source}; check that its certificate is valid for that \
         name and from an authority that is trusted here"
    )]
    Tls {
        /// The host.
        host: String,
        /// The problem.
        source: io::Error,
    },
    /// No certificate authorities are available.
    #[error("no certificate authority can be trusted: {problem}; install the system's, or add one")]
    Roots {
        /// The problem.
        problem: String,
    },
    /// The connection ended, or its data was not valid HTTP or had too large headers, before the
    /// response was complete.
    #[error("the connection to `{host}` failed before its response was complete: {source}")]
    Exchange {
        /// The host.
        host: String,
        /// The problem.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The body is larger than [`HttpRequest::max_body_bytes`](super::HttpRequest::max_body_bytes).
    #[error(
        "the response body of `{host}` is larger than {limit} bytes; request less at a time, or \
         allow more"
    )]
    BodyTooLarge {
        /// The host.
        host: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The encoding of the body was not requested.
    #[error("`{host}` encodes its response as `{encoding}`; {accepted}")]
    Encoding {
        /// The host.
        host: String,
        /// The encodings that it names, shortened.
        encoding: String,
        /// The accepted encodings, after the semicolon.
        accepted: &'static str,
    },
    /// The body does not match its encoding.
    #[error("the response of `{host}` is declared as gzip, but is not valid gzip: {source}")]
    Decode {
        /// The host.
        host: String,
        /// The problem.
        source: io::Error,
    },
    /// The redirect's target is not a valid URL.
    #[error("`{host}` redirects to an invalid URL")]
    RedirectUnreadable {
        /// The host that redirects.
        host: String,
    },
    /// It redirects from `https` to `http`, which others on the network path could read.
    #[error("`{host}` redirects from https to http, which is not followed; request the other URL")]
    RedirectDowngrade {
        /// The host that redirects.
        host: String,
    },
    /// It redirects a request that may change something, or has a body, to another origin.
    #[error(
        "`{host}` redirects a request that is more than a GET without a body to `{to}`, another \
         origin, which is not followed; if this is intended, request that origin"
    )]
    RedirectElsewhere {
        /// The host that redirects.
        host: String,
        /// The host that it redirects to.
        to: String,
    },
    /// It redirects to an earlier URL.
    #[error("`{host}` redirects in a circle; request the final URL")]
    RedirectLoop {
        /// The host that redirects.
        host: String,
    },
    /// It redirects more often than
    /// [`HttpRequest::max_redirects`](super::HttpRequest::max_redirects).
    #[error("`{host}` redirects once more than the limit of {limit}")]
    TooManyRedirects {
        /// The host that redirects.
        host: String,
        /// The limit.
        limit: usize,
    },
    /// It redirects, and [`RedirectPolicy::SameOrigin`](super::RedirectPolicy::SameOrigin) does not
    /// follow.
    #[error("`{host}` redirects (HTTP {status}){}", refused_target(to.as_deref(), why))]
    RedirectRefused {
        /// The host that redirects.
        host: String,
        /// The status.
        status: u16,
        /// The target up to its query, without user and password, shortened; `None` if there is no
        /// readable one.
        to: Option<String>,
        /// The reason, after a colon.
        why: &'static str,
    },
    /// A redirect was followed, and its target failed.
    #[error("`{host}` redirects, and then: {source}")]
    Redirected {
        /// The host that redirected.
        host: String,
        /// The error there.
        source: Box<HttpError>,
    },
    /// It took longer than [`HttpRequest::timeout`](super::HttpRequest::timeout).
    #[error("`{host}` did not respond completely within {after:?}")]
    TimedOut {
        /// The host of the request's own URL.
        host: String,
        /// The timeout.
        after: Duration,
        /// Whether the server may have received the request.
        sent: bool,
    },
    /// No byte arrived for [`HttpRequest::idle_timeout`](super::HttpRequest::idle_timeout).
    #[error(
        "`{host}` has sent nothing for {after:?}; check that it still works, or allow it longer \
         pauses"
    )]
    IdleTimedOut {
        /// The host.
        host: String,
        /// The idle timeout.
        after: Duration,
    },
    /// The caller cancelled it.
    #[error("the request to `{host}` was cancelled")]
    Cancelled {
        /// The host of the request's own URL.
        host: String,
        /// Whether the server may have received the request.
        sent: bool,
    },
}

/// The class of an [`HttpError`], to decide what to do next, independent of redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// This client does not send the request, because of its URL, its headers, its host or the
    /// host's address. A retry fails too.
    Refused,
    /// No connection: the name has no address, no address accepts the connection, or TLS
    /// failed.
    Unreachable,
    /// It exceeded one of its timeouts: to connect, idle, or in total.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
    /// The connection ended or carried invalid HTTP before the response was complete.
    Broken,
    /// The response is a redirect that is not followed.
    Redirect,
    /// The response is too large or has an unsupported encoding.
    Unfit,
}

impl HttpError {
    /// Its class, to decide what to do next; the variants have the details.
    pub fn kind(&self) -> HttpErrorKind {
        match self {
            Self::Url { .. }
            | Self::Request { .. }
            | Self::HostNotAllowed { .. }
            | Self::AddressRefused { .. }
            | Self::PortRefused { .. } => HttpErrorKind::Refused,
            Self::Resolve { source, .. }
            | Self::Connect { source, .. }
            | Self::Tls { source, .. }
                if source.kind() == io::ErrorKind::TimedOut =>
            {
                HttpErrorKind::TimedOut
            }
            Self::Resolve { .. } | Self::Connect { .. } | Self::Tls { .. } | Self::Roots { .. } => {
                HttpErrorKind::Unreachable
            }
            Self::TimedOut { .. } | Self::IdleTimedOut { .. } => HttpErrorKind::TimedOut,
            Self::Cancelled { .. } => HttpErrorKind::Cancelled,
            Self::Exchange { .. } => HttpErrorKind::Broken,
            Self::RedirectUnreadable { .. }
            | Self::RedirectDowngrade { .. }
            | Self::RedirectElsewhere { .. }
            | Self::RedirectLoop { .. }
            | Self::RedirectRefused { .. }
            | Self::TooManyRedirects { .. } => HttpErrorKind::Redirect,
            Self::Redirected { source, .. } => match source.kind() {
                // The redirect that this client does not follow.
                HttpErrorKind::Refused => HttpErrorKind::Redirect,
                other => other,
            },
            Self::BodyTooLarge { .. } | Self::Encoding { .. } | Self::Decode { .. } => {
                HttpErrorKind::Unfit
            }
        }
    }

    /// Whether a server may have received the request, and acted on it. `false` is certain.
    pub fn may_have_reached_server(&self) -> bool {
        match self {
            Self::Url { .. }
            | Self::Request { .. }
            | Self::HostNotAllowed { .. }
            | Self::Resolve { .. }
            | Self::AddressRefused { .. }
            | Self::PortRefused { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Roots { .. } => false,
            Self::Exchange { .. }
            | Self::BodyTooLarge { .. }
            | Self::Encoding { .. }
            | Self::Decode { .. }
            | Self::RedirectUnreadable { .. }
            | Self::RedirectDowngrade { .. }
            | Self::RedirectElsewhere { .. }
            | Self::RedirectLoop { .. }
            | Self::RedirectRefused { .. }
            | Self::TooManyRedirects { .. }
            | Self::Redirected { .. }
            | Self::IdleTimedOut { .. } => true,
            Self::TimedOut { sent, .. } | Self::Cancelled { sent, .. } => *sent,
        }
    }
}

fn refused_target(to: Option<&str>, why: &str) -> String {
    match to {
        Some(to) => format!(
            " to `{to}`, which is not followed: {why}; if that is the right URL, request it directly"
        ),
        None => ", and names no valid URL to request".to_owned(),
    }
}
