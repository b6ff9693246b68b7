//! Tokens that identify the clients of a gateway over HTTP.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    num::NonZeroU32,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::fs::OFlags;
use toolcrib_capabilities::http::AllowedAddress;
use toolcrib_core::Secret;
use toolcrib_engine::Reveal;
use uuid::Uuid;

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

/// The generated token of a gateway without declared ones: created once and stored in the state
/// folder, in a file that only its owner can read.
#[derive(Debug)]
#[non_exhaustive]
pub struct TokenFile {
    /// Its file.
    pub path: PathBuf,
    /// The token.
    pub token: Secret,
}

/// A token that cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Its file cannot be created or read.
    #[error("the token of `serve` cannot be stored in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Other users can read or change the file.
    #[error(
        "{} can be read or changed by other users: remove it and a new token is created, or, if \
         it was not read, `chmod 600` it",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The file contains no token.
    #[error("{} contains no token; remove it and a new one is created", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
}

/// The name of the file in the state folder.
const FILE: &str = "serve-token";

/// A longer file cannot be a token.
const MOST_BYTES: u64 = 4096;

/// The token in an existing state folder; created if it is missing.
pub(crate) fn token_file(state: &Path) -> Result<TokenFile, TokenError> {
    let path = state.join(FILE);
    let fail = |source| TokenError::Io { path: path.clone(), source };
    if !path.try_exists().map_err(fail)? {
        make(&path).map_err(fail)?;
    }
    // Checked before it is opened: opening a pipe waits for its writer.
    if !path.metadata().map_err(fail)?.is_file() {
        return Err(TokenError::NoToken { path });
    }
    let link = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(link).open(&path).map_err(fail)?;
    let found = file.metadata().map_err(fail)?;
    if found.permissions().mode() & 0o077 != 0 {
        return Err(TokenError::Open { path });
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(fail)?;
    let token = text.trim();
    if token.is_empty() || token.contains(|c: char| !c.is_ascii_graphic()) {
        return Err(TokenError::NoToken { path });
    }
    Ok(TokenFile { token: Secret::new(token.to_owned()), path })
}

/// Creates a token. The file is put in place whole, and never replaces that of another process.
fn make(path: &Path) -> io::Result<()> {
    // 244 bits from the system's source of randomness.
    let token = format!("{}{}\n", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let fresh = path.with_file_name(format!(".{FILE}-{}", Uuid::new_v4().simple()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(token.as_bytes()).and_then(|()| fs::hard_link(&fresh, path));
    let removed = fs::remove_file(&fresh);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => removed,
        Err(error) => Err(error),
        Ok(()) => removed,
    }
}
