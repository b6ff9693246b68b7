//! Tokens by which a gateway over HTTP knows who asks.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::OFlags;
use toolcrib_core::Secret;
use uuid::Uuid;

/// A token that a project declares, `[[serve.token]]`. Its value is a secret of the project.
#[derive(Debug, Clone)]
pub struct ServeToken {
    pub(crate) secret: Arc<str>,
    pub(crate) origin: Arc<str>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) personality: Option<Arc<str>>,
}

impl ServeToken {
    /// The secret that holds it.
    pub fn secret(&self) -> &Arc<str> {
        &self.secret
    }

    /// Where it is declared.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// As whom its bearer acts; nobody if absent.
    pub fn principal(&self) -> Option<&Arc<str>> {
        self.principal.as_ref()
    }

    /// Within which tenant its bearer acts.
    pub fn tenant(&self) -> Option<&Arc<str>> {
        self.tenant.as_ref()
    }

    /// Under which personality its bearer acts; the default one if absent.
    pub fn personality(&self) -> Option<&Arc<str>> {
        self.personality.as_ref()
    }
}

/// The token of a gateway whose project declares none: made once and kept in the state folder, in a
/// file that only its owner can read.
#[derive(Debug)]
#[non_exhaustive]
pub struct TokenFile {
    /// Where it is kept.
    pub path: PathBuf,
    /// The token.
    pub token: Secret,
}

/// A token that cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Its file cannot be made or read.
    #[error("the token of `serve` cannot be kept in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others than its owner can read or change the file.
    #[error(
        "{} can be read or changed by others: remove it, so that a new token is made, or, if nobody \
         has read it, `chmod 600` it",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// There is no token in the file.
    #[error("{} holds no token; remove it, so that a new one is made", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
}

/// The name of the file in the state folder.
const FILE: &str = "serve-token";

/// A longer file is no token.
const MOST_BYTES: u64 = 4096;

/// The token in a state folder, which is there; made if it is missing.
pub(crate) fn token_file(state: &Path) -> Result<TokenFile, TokenError> {
    let path = state.join(FILE);
    let fail = |source| TokenError::Io { path: path.clone(), source };
    if !path.try_exists().map_err(fail)? {
        make(&path).map_err(fail)?;
    }
    // Before it is opened: to open a pipe waits for whoever writes into it.
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

/// Makes a token. It is put in place whole, and never in that of another process's.
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
