//! Who asks: on whose behalf requests are served, and how HTTP clients prove it.

use std::{fmt, net::SocketAddr, sync::Arc};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolcrib_core::SkillId;

use super::GatewayError;

/// The shortest token that is taken, in characters.
pub(super) const MIN_TOKEN_CHARS: usize = 16;

/// On whose behalf requests are served. The engine's identity, roles and policy follow from it: an
/// access that names nobody has no roles, so that a rule which denies something to a role does not
/// hold for it.
///
/// Neighbour: an [`Identity`](toolcrib_core::Identity) has a conversation too, which is the
/// session's id or, without sessions, the run's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The customer or organisation.
    pub tenant: Option<Arc<str>>,
    /// The person or service. Roles are looked up by it.
    pub principal: Option<Arc<str>>,
    /// What is known of the caller beside that, for roles that claims give; see
    /// [`TurnOptions::claims`](toolcrib_engine::TurnOptions::claims).
    pub claims: Map<String, Value>,
    /// Who acts; see [`Personality`](toolcrib_engine::Personality). The one called `default` if absent.
    pub personality: Option<Arc<str>>,
    /// Skills that are active from the start, the last of them as the active one. Each must be one that
    /// `read_skill` would activate for this access; see
    /// [`TurnOptions::skills`](toolcrib_engine::TurnOptions::skills).
    pub skills: Vec<SkillId>,
}

impl Access {
    /// Access that names nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the principal.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Names the tenant.
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

    /// Names who acts.
    #[must_use]
    pub fn personality(mut self, personality: impl Into<Arc<str>>) -> Self {
        self.personality = Some(personality.into());
        self
    }

    /// Activates a skill from the start.
    #[must_use]
    pub fn skill(mut self, skill: SkillId) -> Self {
        self.skills.push(skill);
        self
    }
}

/// Whom HTTP is served to: bearer tokens, and the hosts and origins that requests may name.
///
/// Every request needs a token, from this machine too. Only digests of tokens are kept.
#[derive(Clone, Default)]
pub struct HttpAccess {
    pub(super) tokens: Vec<Token>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
}

/// A token's digest, and whom it stands for.
#[derive(Clone)]
pub(super) struct Token {
    digest: [u8; 32],
    chars: usize,
    pub(super) access: Access,
}

impl HttpAccess {
    /// Access for nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in whoever sends `Authorization: Bearer TOKEN`, as this access. A token has at least 16
    /// characters, not counting white space around it, and no two are the same.
    #[must_use]
    pub fn token(mut self, token: impl AsRef<str>, access: Access) -> Self {
        let token = token.as_ref().trim();
        let chars = token.chars().count();
        self.tokens.push(Token { digest: digest(token.as_bytes()), chars, access });
        self
    }

    /// Lets requests name this host: `NAME` for any port of it, or `NAME:PORT`. Default: while none
    /// is added, the names of this machine's loopback, `localhost`, `127.0.0.1` and `[::1]`.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Lets pages of this origin, such as `https://tools.example`, send requests from a browser, and
    /// read the answers. Default: only pages of the endpoint itself may, whose origin is the host that
    /// the request names. Programs send no origin.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Whether the tokens are fit to be used.
    pub(super) fn check(&self) -> Result<(), GatewayError> {
        if self.tokens.is_empty() {
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
    /// Whether what a client sent is this token. Digests are compared, and to the end, so that
    /// the time it takes says nothing of the token.
    pub(super) fn is(&self, sent: &[u8; 32]) -> bool {
        let differ = self.digest.iter().zip(sent).fold(0, |differ, (a, b)| differ | (a ^ b));
        std::hint::black_box(differ) == 0
    }
}

pub(super) fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl fmt::Debug for HttpAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accesses: Vec<_> = self.tokens.iter().map(|token| &token.access).collect();
        f.debug_struct("HttpAccess")
            .field("tokens", &accesses)
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish()
    }
}

/// Who sent a request. Travels with it.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) access: Arc<Access>,
    /// From where, over HTTP.
    pub(super) peer: Option<SocketAddr>,
}
