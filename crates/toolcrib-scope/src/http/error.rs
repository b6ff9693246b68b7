use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// A request that came to nothing. Texts name the host and never the rest of a URL, a header or a
/// body, which may hold what nobody should see.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL can be asked by nobody here.
    #[error("the URL cannot be used: {problem}")]
    Url {
        /// What is wrong with it.
        problem: String,
    },
    /// The request would say something about itself that is the client's to say.
    #[error("the request cannot be sent: {problem}")]
    Request {
        /// What is wrong with it.
        problem: String,
    },
    /// The client is bound to other hosts.
    #[error("`{host}` is not among the hosts that may be asked; add it to them, or ask another")]
    HostNotAllowed {
        /// The host.
        host: String,
    },
    /// Its name has no address.
    #[error("the name `{host}` cannot be resolved: {source}; check how it is written")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// One of its addresses is not to be dialled, and so none is.
    #[error(
        "`{host}` leads to {address}, which is {why}; if it is meant, allow that address for this \
         client"
    )]
    AddressRefused {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
        /// What it is, as it is read after *which is*.
        why: &'static str,
    },
    /// The host leads to an address that this client may dial, but not on this port: it is another
    /// than the allowed one, or a redirect leads there and it is not that of the request's own URL.
    #[error(
        "`{host}` is not reached on port {} of {}; if it is meant, allow {address} for this client",
        address.port(), address.ip()
    )]
    PortRefused {
        /// The host.
        host: String,
        /// The address, with the port.
        address: SocketAddr,
    },
    /// None of its addresses takes a connection.
    #[error("no connection to `{host}`: {source}; check host and port, and that the server runs")]
    Connect {
        /// The host.
        host: String,
        /// What the last address that was tried says.
        source: io::Error,
    },
    /// It does not prove to be that host.
    #[error(
        "no secure connection to `{host}`: {source}; check that its certificate is valid for that \
         name and from an authority that is trusted here"
    )]
    Tls {
        /// The host.
        host: String,
        /// What is wrong.
        source: io::Error,
    },
    /// There is no authority by which a certificate could be checked.
    #[error("no certificate authority can be trusted: {problem}; install the system's, or add one")]
    Roots {
        /// What is wrong.
        problem: String,
    },
    /// The connection ended, or something came over it that is no HTTP or has a head that is too
    /// large, before the answer was whole.
    #[error("the connection to `{host}` failed before its answer was whole: {source}")]
    Exchange {
        /// The host.
        host: String,
        /// What is wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The body is larger than the request takes; see [`HttpRequest::max_body_bytes`](super::HttpRequest::max_body_bytes).
    #[error(
        "the body of the answer of `{host}` is larger than {limit} bytes; ask for less at a time, \
         or allow more"
    )]
    BodyTooLarge {
        /// The host.
        host: String,
        /// How many bytes were allowed.
        limit: usize,
    },
    /// The body is encoded in a way that was not asked for.
    #[error("`{host}` encodes its answer as `{encoding}`; {accepted}")]
    Encoding {
        /// The host.
        host: String,
        /// The encodings that it names, shortened.
        encoding: String,
        /// What is taken, as it is read after the semicolon.
        accepted: &'static str,
    },
    /// The body is not what its encoding says.
    #[error("the answer of `{host}` says that it is gzip, and is none: {source}")]
    Decode {
        /// The host.
        host: String,
        /// What is wrong.
        source: io::Error,
    },
    /// It redirects to what is no URL.
    #[error("`{host}` redirects to what cannot be read as a URL")]
    RedirectUnreadable {
        /// The host that redirects.
        host: String,
    },
    /// It redirects from `https` to `http`, where everybody on the way could read along.
    #[error("`{host}` redirects from https to http, which is not followed; ask for the other URL")]
    RedirectDowngrade {
        /// The host that redirects.
        host: String,
    },
    /// It would have a request that may change something, or its body, sent to another origin.
    #[error(
        "`{host}` redirects a request that is more than a GET without a body to `{to}`, another \
         origin, which is not followed; ask there, if that is meant"
    )]
    RedirectElsewhere {
        /// The host that redirects.
        host: String,
        /// The host that it redirects to.
        to: String,
    },
    /// It redirects to what was asked before.
    #[error("`{host}` redirects in a circle; ask for the URL where it should end")]
    RedirectLoop {
        /// The host that redirects.
        host: String,
    },
    /// It redirects once more than the request follows; see [`HttpRequest::max_redirects`](super::HttpRequest::max_redirects).
    #[error("`{host}` redirects once more than the {limit} times that are followed")]
    TooManyRedirects {
        /// The host that redirects.
        host: String,
        /// How often it is followed.
        limit: usize,
    },
    /// It was asked, answered with a redirect, and what that led to failed.
    #[error("`{host}` redirects, and then: {source}")]
    Redirected {
        /// The host that redirected.
        host: String,
        /// What failed there.
        source: Box<HttpError>,
    },
    /// It took longer than [`HttpRequest::timeout`](super::HttpRequest::timeout).
    #[error("`{host}` did not answer in full within {after:?}")]
    TimedOut {
        /// The host of the request's own URL.
        host: String,
        /// How long was waited.
        after: Duration,
        /// Whether the server may have got the request by then.
        sent: bool,
    },
    /// Nothing came for [`HttpRequest::idle_timeout`](super::HttpRequest::idle_timeout).
    #[error(
        "`{host}` has sent nothing for {after:?}; check that it still works, or allow it longer \
         pauses"
    )]
    IdleTimedOut {
        /// The host.
        host: String,
        /// How long nothing came.
        after: Duration,
    },
    /// The caller cancelled it.
    #[error("the request to `{host}` was cancelled")]
    Cancelled {
        /// The host of the request's own URL.
        host: String,
        /// Whether the server may have got the request by then.
        sent: bool,
    },
}

/// What an [`HttpError`] means for whoever wants to go on, wherever in a chain of redirects it
/// happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// The request is not sent by this client: its URL, what it says about itself, its host or the
    /// address behind it. The next time it will not be either.
    Refused,
    /// There is no connection: the name has no address, nobody takes the connection, or it cannot
    /// be secured.
    Unreachable,
    /// It took longer than one of its times, to connect, without a byte or in all.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
    /// There was a connection, and it ended or carried something that is no HTTP before the answer
    /// was whole.
    Broken,
    /// The answer is a redirect that is not followed.
    Redirect,
    /// There is an answer, and it is too large or encoded in a way that is not decoded.
    Unfit,
}

impl HttpError {
    /// What it means for whoever wants to go on; the variants say what exactly happened.
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
            | Self::TooManyRedirects { .. } => HttpErrorKind::Redirect,
            Self::Redirected { source, .. } => match source.kind() {
                // It is the redirect that this client does not follow.
                HttpErrorKind::Refused => HttpErrorKind::Redirect,
                other => other,
            },
            Self::BodyTooLarge { .. } | Self::Encoding { .. } | Self::Decode { .. } => {
                HttpErrorKind::Unfit
            }
        }
    }

    /// Whether a server may have got the request, and done what it asks for. `false` is certain:
    /// then nobody did.
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
            | Self::TooManyRedirects { .. }
            | Self::Redirected { .. }
            | Self::IdleTimedOut { .. } => true,
            Self::TimedOut { sent, .. } | Self::Cancelled { sent, .. } => *sent,
        }
    }
}
