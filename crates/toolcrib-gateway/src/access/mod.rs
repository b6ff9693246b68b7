//! Access: the identities for which requests are served, and the tokens of HTTP clients.

pub(crate) mod access_log;
pub(crate) mod authority;
pub(crate) mod endpoints;
pub(crate) mod limits;
pub(crate) mod log_health;
pub(crate) mod metrics;
pub(crate) mod oauth;
pub(crate) mod readiness;
pub(crate) mod replicas;
pub(crate) mod tls;

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use toolcrib_core::SkillId;
use toolcrib_engine::Reveal;

use self::{endpoints::Endpoints, limits::CallLimits, oauth::ResourceServer, tls::Tls};
use crate::{
    error::{GatewayError, MIN_TOKEN_CHARS},
    wire::events::expired,
};

/// The identity for which requests are served. The engine's identity, roles and policy follow from
/// it: an access without a principal has no roles, so a rule that denies something to a role does
/// not apply to it.
///
/// Neighbor: an [`Identity`](toolcrib_core::Identity) also has a conversation, which is the
/// session's id or, without sessions, the run's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The customer or organization.
    pub tenant: Option<Arc<str>>,
    /// The person or service. Roles are looked up by it.
    pub principal: Option<Arc<str>>,
    /// Further facts about the caller, for roles with claims; see
    /// [`TurnOptions::claims`](toolcrib_engine::TurnOptions::claims).
    pub claims: Map<String, Value>,
    /// The personality; see [`Personality`](toolcrib_engine::Personality). The one named `default`
    /// if absent.
    pub personality: Option<Arc<str>>,
    /// Skills that are active from the start; the last counts as activated last. Each must be one
    /// that `read_skill` would activate for this access; see
    /// [`TurnOptions::skills`](toolcrib_engine::TurnOptions::skills).
    pub skills: Vec<SkillId>,
    /// How the client calls deferred tools that it has found. [`Reveal::Append`] adds them to the
    /// list of its session and notifies it, which only helps clients that list again. Requests
    /// without a session use `call_tool` in any case. Default: the engine's choice.
    pub reveal: Option<Reveal>,
    /// Whether texts that a third party may have written are fenced.
    pub fence: Fence,
    /// The longest tool name that the client can use, in characters; longer names are cut and end in
    /// digits of a digest. For clients that add a prefix. At least
    /// [`Access::MIN_NAME_CHARS`]. Default: no limit beyond the 64 of model APIs.
    pub max_name_chars: Option<usize>,
    /// The limits of its calls over HTTP.
    pub limits: CallLimits,
}

/// Whether texts that a third party may have written are fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fence {
    /// They are, for the client's model.
    #[default]
    Model,
    /// They are not, for a program that parses them. They are still redacted and sanitized.
    Off,
}

impl Access {
    /// Access without a principal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the principal of the client.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Sets the tenant of the client.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Adds a claim; see [`claims`](Self::claims).
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.claims.insert(name.into(), value.into());
        self
    }

    /// Sets the personality of the client.
    #[must_use]
    pub fn personality(mut self, personality: impl Into<Arc<str>>) -> Self {
        self.personality = Some(personality.into());
        self
    }

    /// Sets how the client calls deferred tools that it has found.
    #[must_use]
    pub fn reveal(mut self, reveal: Reveal) -> Self {
        self.reveal = Some(reveal);
        self
    }

    /// Sets whether texts are fenced.
    #[must_use]
    pub fn fence(mut self, fence: Fence) -> Self {
        self.fence = fence;
        self
    }

    /// The least value of [`max_name_chars`](Self::max_name_chars).
    pub const MIN_NAME_CHARS: usize = 20;

    /// Sets the longest tool name that the client can use.
    #[must_use]
    pub fn max_name_chars(mut self, chars: usize) -> Self {
        self.max_name_chars = Some(chars.max(Self::MIN_NAME_CHARS));
        self
    }

    /// Sets the limits of its calls over HTTP.
    #[must_use]
    pub fn limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Activates a skill from the start.
    #[must_use]
    pub fn skill(mut self, skill: impl Into<SkillId>) -> Self {
        self.skills.push(skill.into());
        self
    }
}

/// Access over HTTP: bearer tokens, and the hosts and origins that requests may name.
///
/// Every request needs a token, also from this machine. Only digests of tokens are stored.
#[derive(Clone, Default)]
pub struct HttpAccess {
    pub(crate) tokens: Vec<Token>,
    pub(crate) oauth: Option<ResourceServer>,
    pub(crate) endpoints: Endpoints,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) tls: Option<Tls>,
}

/// A token's digest, and its access.
#[derive(Clone)]
pub(crate) struct Token {
    digest: [u8; 32],
    chars: usize,
    pub(crate) access: Access,
}

impl HttpAccess {
    /// Access for no client yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts `Authorization: Bearer TOKEN`, as this access. A token has at least 16 characters,
    /// not counting surrounding whitespace, and no two are equal.
    #[must_use]
    pub fn token(mut self, token: impl AsRef<str>, access: Access) -> Self {
        let token = token.as_ref().trim();
        let chars = token.chars().count();
        self.tokens.push(Token { digest: digest(token.as_bytes()), chars, access });
        self
    }

    /// Accepts the access tokens of an authorization server too, and publishes the metadata that
    /// clients need to get one.
    #[must_use]
    pub fn oauth(mut self, server: ResourceServer) -> Self {
        self.oauth = Some(server);
        self
    }

    /// Serves `/mcp/NAME` too, with the menu of this personality, for callers without a personality;
    /// those with another one get 403. A name has 1 to 64 of the characters `a-z`, `A-Z`,
    /// `0-9`, `_` and `-`, and is not `skill`; the same name again replaces the personality. What the
    /// personality does not admit cannot be used there in any way. Default: only `/mcp`.
    #[must_use]
    pub fn endpoint(mut self, name: impl Into<Arc<str>>, personality: impl Into<Arc<str>>) -> Self {
        self.endpoints.add(name.into(), personality.into());
        self
    }

    /// Accepts requests that name this host: `NAME` for any port of it, or `NAME:PORT`. Default:
    /// while none is added, the names of this machine's loopback, `localhost`, `127.0.0.1` and
    /// `[::1]`.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Allows web pages of this origin, such as `https://tools.example`, to send requests from a
    /// browser, and to read the responses. Default: only pages of the endpoint itself, whose origin
    /// is the host that the request names. Programs send no origin.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Serves HTTPS only, with this certificate. Default: plain HTTP.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Whether the tokens and the names of endpoints are valid.
    pub(crate) fn check(&self) -> Result<(), GatewayError> {
        self.endpoints.check_names()?;
        if self.tokens.is_empty() && self.oauth.is_none() {
            return Err(GatewayError::NoToken);
        }
        for (at, token) in self.tokens.iter().enumerate() {
            let position = at + 1;
            if token.chars < MIN_TOKEN_CHARS {
                return Err(GatewayError::TokenTooShort { position, chars: token.chars });
            }
            let before = self.tokens.iter().take(at);
            if let Some(first) = before.into_iter().position(|other| other.digest == token.digest) {
                return Err(GatewayError::SameToken { first: first + 1, second: position });
            }
        }
        Ok(())
    }
}

impl Token {
    /// Its digest as a text, which does not reveal it.
    pub(crate) fn name(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.digest)
    }

    /// Whether it is the same token with the same access.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest && self.access == other.access
    }

    /// Whether a client sent this token. Digests are compared in constant time, so that the
    /// duration reveals nothing.
    pub(crate) fn is(&self, sent: &[u8; 32]) -> bool {
        let differ = self.digest.iter().zip(sent).fold(0, |differ, (a, b)| differ | (a ^ b));
        std::hint::black_box(differ) == 0
    }
}

pub(crate) fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

toolcrib_core::__internal::debug_fields!(
    HttpAccess,
    access,
    tokens = access.tokens.iter().map(|token| &token.access).collect::<Vec<_>>(),
    oauth = access.oauth,
    endpoints = access.endpoints,
    hosts = access.hosts,
    origins = access.origins
);

/// The sender of a request. Attached to it.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) access: Arc<Access>,
    /// The peer address, over HTTP.
    pub(crate) peer: Option<SocketAddr>,
    /// The moment from which its token is refused. Declared tokens have none.
    pub(crate) expires: Option<Instant>,
    /// The endpoint of its request, unless that is `/mcp`.
    pub(crate) endpoint: Option<Arc<str>>,
    /// Whether the operator has declared its identity, and not an authorization server.
    pub(crate) is_declared: bool,
}

impl Caller {
    /// Done when its token is refused: a stream that it opened ends then.
    pub(crate) async fn expired(&self) {
        expired(self.expires).await;
    }
}
