//! The user's tokens for MCP servers, in the user's configuration folder: one file for each server
//! and identity.

use std::{fs, io, os::unix::fs::OpenOptionsExt as _, path::PathBuf};

use rustix::fs::{FlockOperation, flock};
use toolcrib_capabilities::__internal::no_follow;
use toolcrib_mcp::oauth::{TokenLock, TokenStore};

use crate::private;

/// A longer record is not valid.
const MOST_BYTES: u64 = 256 * 1024;

/// `toolcrib/tokens` in `$XDG_CONFIG_HOME` or `~/.config`.
#[derive(Debug, Clone)]
pub(crate) struct UserTokens {
    /// `None` if the user has no configuration folder.
    folder: Option<PathBuf>,
}

impl UserTokens {
    pub(crate) fn of_user() -> Self {
        Self { folder: private::config_of_user().map(|config| config.join("tokens")) }
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            io::Error::other("neither XDG_CONFIG_HOME nor HOME is set to an absolute path")
        })?;
        Ok(folder.join(name))
    }

    /// The same, in a folder that exists.
    fn made(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path(name)?;
        match path.parent() {
            Some(folder) => private::make(folder).map_err(about(folder.to_owned()))?,
            None => return Err(io::Error::other("there is no folder for them")),
        }
        Ok(path)
    }
}

impl TokenStore for UserTokens {
    fn read(&self, key: &str) -> io::Result<Option<String>> {
        let Ok(path) = self.path(&format!("{key}.json")) else { return Ok(None) };
        private::secret(&path, MOST_BYTES, "log in").map_err(about(path))
    }

    fn write(&self, key: &str, record: Option<&str>) -> io::Result<()> {
        let path = self.made(&format!("{key}.json"))?;
        let written = match record {
            Some(record) => private::replace(&path, 0o600, record),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        };
        written.map_err(about(path))
    }

    fn try_lock(&self, key: &str) -> io::Result<Option<TokenLock>> {
        let path = self.made(&format!("{key}.lock"))?;
        let file = no_follow()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(about(path.clone()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(about(path)(error.into())),
        }
    }
}

fn about(path: PathBuf) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
