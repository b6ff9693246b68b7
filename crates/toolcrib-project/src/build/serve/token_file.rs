//! The generated token of a gateway without declared ones.

use std::{
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use toolcrib_capabilities::__internal::{create_private, no_follow};
use toolcrib_core::Secret;
use uuid::Uuid;

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
    let file = no_follow().read(true).open(&path).map_err(fail)?;
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
    create_private(path, token)
}
