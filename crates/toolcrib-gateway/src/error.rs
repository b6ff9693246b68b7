//! The errors of a gateway.

use toolcrib_engine::TurnError;

/// The minimum length of a token, in characters.
pub(super) const MIN_TOKEN_CHARS: usize = 16;

/// A gateway that cannot serve, or could not continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// An access presets something unknown, or a skill that it may not activate.
    #[error("an access cannot be served: {0}")]
    Access(#[source] TurnError),
    /// HTTP is never served without a token.
    #[error("HTTP needs a token: give clients at least one with `HttpAccess::token`")]
    NoToken,
    /// A token is too short and could be guessed.
    #[error(
        "token {position} has {chars} characters; use at least {min}, from a generator",
        min = MIN_TOKEN_CHARS
    )]
    TokenTooShort {
        /// Its position, from 1.
        position: usize,
        /// Its length, in characters.
        chars: usize,
    },
    /// Two equal tokens.
    #[error("tokens {first} and {second} are equal; the sender of a request would be ambiguous")]
    SameToken {
        /// The first, from 1.
        first: usize,
        /// The number of the second token.
        second: usize,
    },
    /// An invalid host.
    #[error(
        "`{0}` is not a valid host; write `NAME`, `NAME:PORT`, `[::1]` or `[::1]:PORT`, once for \
         each host: patterns with `*` are not supported"
    )]
    Host(String),
    /// An invalid origin.
    #[error(
        "`{0}` is not a valid origin; write `https://NAME` or `https://NAME:PORT`, once for each \
         origin: patterns with `*` are not supported"
    )]
    Origin(String),
    /// An invalid name of an endpoint.
    #[error(
        "`{0}` cannot be the name of an endpoint; use 1 to 64 of the characters a-z, A-Z, 0-9, `_` \
         and `-`, and not `skill`"
    )]
    Endpoint(String),
    /// The settings of OAuth are invalid.
    #[error("OAuth: {0}")]
    OAuth(String),
    /// The secret of [`Replicas`](crate::Replicas) could be guessed.
    #[error("the secret that the replicas share has less than 32 bytes; make it of random ones")]
    ShortSecret,
    /// The client's handshake is invalid.
    #[error("the client did not begin a connection: {0}")]
    Handshake(String),
    /// An invalid certificate or key.
    #[error("TLS cannot be used: {0}")]
    Tls(Box<str>),
    /// The listener failed permanently.
    #[error("no connections can be accepted")]
    Listener(#[source] std::io::Error),
}
