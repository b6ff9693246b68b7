//! The settings of a gateway, and the tokens that identify its clients.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use toolcrib_capabilities::http::AllowedAddress;
use toolcrib_engine::Reveal;

/// A token that a project declares, `[[serve.token]]`. Its value is a secret of the project.
#[derive(Debug, Clone)]
pub struct ServeToken {
    pub(crate) secret: Arc<str>,
    pub(crate) origin: Arc<str>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) personality: Option<Arc<str>>,
    pub(crate) reveal: Option<Reveal>,
    pub(crate) unfenced: bool,
    pub(crate) max_name_chars: Option<usize>,
    pub(crate) calls_per_minute: Option<NonZeroU32>,
    pub(crate) max_concurrent: Option<NonZeroU32>,
}

impl ServeToken {
    /// The secret that contains it.
    pub fn secret(&self) -> &Arc<str> {
        &self.secret
    }

    /// Where it is declared.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The principal of its bearer; none if absent.
    pub fn principal(&self) -> Option<&Arc<str>> {
        self.principal.as_ref()
    }

    /// The tenant of its bearer.
    pub fn tenant(&self) -> Option<&Arc<str>> {
        self.tenant.as_ref()
    }

    /// How its bearer calls deferred tools that it has found; the project's choice if absent.
    pub fn reveal(&self) -> Option<Reveal> {
        self.reveal
    }

    /// Whether texts of third parties are fenced for its bearer. Default: yes.
    pub fn is_fenced(&self) -> bool {
        !self.unfenced
    }

    /// The longest tool name that its bearer can use.
    pub fn max_name_chars(&self) -> Option<usize> {
        self.max_name_chars
    }

    /// The limit of its calls a minute; no limit if absent.
    pub fn calls_per_minute(&self) -> Option<NonZeroU32> {
        self.calls_per_minute
    }

    /// The limit of its calls at the same time; no limit if absent.
    pub fn max_concurrent(&self) -> Option<NonZeroU32> {
        self.max_concurrent
    }

    /// The personality of its bearer; the default one if absent.
    pub fn personality(&self) -> Option<&Arc<str>> {
        self.personality.as_ref()
    }
}

/// The settings of a gateway besides its tokens, `[serve]`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeSettings {
    /// The file of the audit log.
    pub audit: Option<PathBuf>,
    /// Whether calls are refused while the audit log cannot be written.
    pub audit_is_required: bool,
    /// Whether tools of a pinned server that are not in the record of pins are withheld until the user
    /// accepts them.
    pub asks_for_new_tools: bool,
    /// Whether one usable server is enough to be ready.
    pub ready_with_any: bool,
    /// How long requests in progress may take to end when the gateway is stopped.
    pub drain: Duration,
    /// The files of its certificate.
    pub tls: Option<TlsFiles>,
    /// The authorization server whose tokens it accepts.
    pub oauth: Option<ServeOAuth>,
    /// The endpoints beside `/mcp`.
    pub endpoints: Vec<ServeEndpoint>,
}

/// An endpoint `/mcp/NAME` with the menu of a personality, `[serve.endpoint.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeEndpoint {
    /// The end of its path.
    pub name: Arc<str>,
    /// The personality.
    pub personality: Arc<str>,
}

/// The authorization server whose tokens a gateway accepts, `[serve.oauth]`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOAuth {
    /// The URL of the endpoint as clients know it.
    pub resource: Arc<str>,
    /// The issuer of the tokens.
    pub issuer: Arc<str>,
    /// The audience of the tokens; the resource if absent.
    pub audience: Option<Arc<str>>,
    /// The address of the keys; that of the issuer's metadata if absent.
    pub jwks: Option<Arc<str>>,
    /// The accepted algorithms of signatures, such as `ES256`; all that can be verified if absent.
    pub algorithms: Option<Vec<&'static str>>,
    /// The scopes that every token must have.
    pub scopes: Vec<Arc<str>>,
    /// The claim with the principal; `sub` if absent.
    pub principal: Option<Arc<str>>,
    /// The claim with the tenant.
    pub tenant: Option<Arc<str>>,
    /// The personality of all callers; the default one if absent.
    pub personality: Option<Arc<str>>,
    /// The addresses beside the public internet from which keys may be fetched.
    pub allow_addresses: Vec<AllowedAddress>,
    /// How callers call deferred tools that they have found; the project's choice if absent.
    pub reveal: Option<Reveal>,
    /// Whether texts of third parties are not fenced.
    pub unfenced: bool,
}

/// A certificate with those of its issuers, and its private key, as files with PEM.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificates.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}
