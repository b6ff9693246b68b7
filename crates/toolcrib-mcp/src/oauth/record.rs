//! The stored form: tokens of one server and identity, and the client's registration.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::challenge::Challenge;

/// Tokens are renewed this long before they expire, and short-lived ones after three quarters of their
/// life.
const EARLY: Duration = Duration::from_secs(30);

#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// The URL of the server, which alone may receive the access token.
    pub(super) server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<ClientRegistration>,
    /// The last demand of the server that the tokens did not meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) challenge: Option<Challenge>,
}

/// Tokens, and the only places that may receive them.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// The seconds of its whole life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) life: Option<u64>,
    pub(super) scopes: Vec<String>,
    pub(super) issuer: String,
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client_id: String,
    pub(super) method: Method,
}

/// The registration of this client at one authorization server.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ClientRegistration {
    pub(super) issuer: String,
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    pub(super) method: Method,
    pub(super) redirect_uri: String,
}

/// How a client identifies itself to the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

impl Method {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Basic, Self::Post];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }
}

impl Tokens {
    /// Whether the access token is about to expire, or has expired.
    pub(super) fn is_over(&self) -> bool {
        let early = self.life.map_or(EARLY.as_secs(), |life| EARLY.as_secs().min(life / 4));
        self.expires_at.is_some_and(|end| end <= now().saturating_add(early))
    }

    /// The time until it expires.
    pub(super) fn lasts(&self) -> Option<Duration> {
        self.expires_at.map(|end| Duration::from_secs(end.saturating_sub(now())))
    }
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
