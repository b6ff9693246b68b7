//! The tokens for MCP servers that the replicas of a gateway share: sealed, in the store of the project.

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use toolcrib_capabilities::__internal::SealingKey;
use toolcrib_core::{Digest, KvArea, KvError, KvLimits, KvWrite, Store};
use toolcrib_mcp::oauth::{OAuth, TokenLock, TokenStore};
use uuid::Uuid;

use super::{secrets::ProjectSecrets, sessions::Sessions, tokens::UserTokens};
use crate::file::ProjectFile;

/// The area of a record begins with this, which no tool can be called.
const AREA: &str = "toolcrib:login";

const RECORD: &str = "record";
const LOCK: &str = "lock";

/// How long a lock is one of a process that may have died: longer than a renewal takes.
const LEASE: Duration = Duration::from_secs(90);

/// Where the tokens of a project are: in files of the user; or, if several machines share its store and a key,
/// in that store.
#[derive(Clone)]
pub(crate) struct TokenPlace(Option<SharedTokens>);

#[derive(Clone)]
struct SharedTokens {
    /// The key, and the digest of its secret; `None` if that is not available: then no token is.
    key: Option<(SealingKey, Digest)>,
    /// Set once the project is opened.
    sessions: Arc<Mutex<Option<Sessions>>>,
}

impl TokenPlace {
    /// `has_url` says that the options name a database.
    pub(crate) fn of(file: &ProjectFile, has_url: bool, secrets: &ProjectSecrets) -> Self {
        let is_shared = has_url || file.sessions.secret().is_some();
        let shared = file.approvals.shared.as_ref().filter(|_| is_shared);
        Self(shared.map(|(key, _)| {
            let secret = secrets.get(&key.value).ok();
            let key = secret.and_then(|secret| {
                let digest = Digest::of(format!("{AREA} {}", secret.expose()));
                Some((SealingKey::of(secret.expose())?, digest))
            });
            SharedTokens { key, sessions: Arc::default() }
        }))
    }

    /// The store of the opened project.
    pub(crate) fn is_in(&self, sessions: &Sessions) {
        if let Some(shared) = &self.0 {
            *shared.sessions.lock() = Some(sessions.clone());
        }
    }

    /// Logins with these tokens.
    pub(crate) fn oauth(&self) -> OAuth {
        match &self.0 {
            Some(shared) => OAuth::new(shared.clone()),
            None => OAuth::new(UserTokens::of_user()),
        }
    }
}

impl SharedTokens {
    fn key(&self) -> io::Result<&(SealingKey, Digest)> {
        let missing = "the secret that `[approvals] key` names is not available, or is too short";
        self.key.as_ref().ok_or_else(|| io::Error::other(missing))
    }

    fn store(&self) -> io::Result<Arc<dyn Store>> {
        let sessions = self.sessions.lock().clone();
        let sessions = sessions.ok_or_else(|| io::Error::other("the project is not open"))?;
        sessions.open().map_err(io::Error::other)
    }

    /// The area of a record. Projects with other secrets have other ones, also in the same database.
    fn area(&self, name: &str) -> io::Result<KvArea> {
        let (_, secret) = self.key()?;
        Ok(KvArea::Tool { tenant: None, tool: format!("{AREA}/{secret}/{name}").into() })
    }

    fn put(&self, name: &str, write: KvWrite<'_>) -> io::Result<bool> {
        match self.store()?.put(&self.area(name)?, write) {
            Ok(()) => Ok(true),
            Err(KvError::Changed) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl TokenStore for SharedTokens {
    fn read(&self, key: &str) -> io::Result<Option<String>> {
        let (sealing, _) = self.key()?;
        let sealed = self.store()?.value(&self.area(key)?, RECORD).map_err(io::Error::other)?;
        let Some(sealed) = sealed else { return Ok(None) };
        let foreign = "another key sealed it, or it was changed; log out, and in again";
        let opened = sealing.open(&purpose(key), &sealed);
        opened.map(Some).ok_or_else(|| io::Error::other(foreign))
    }

    fn write(&self, key: &str, record: Option<&str>) -> io::Result<()> {
        let sealed = match record {
            Some(record) => {
                let (sealing, _) = self.key()?;
                let sealed = sealing.seal(&purpose(key), record);
                Some(sealed.ok_or_else(|| io::Error::other("the system has no randomness"))?)
            }
            None => None,
        };
        let (value, lives_for) = (sealed.as_deref(), KvLimits::TIME);
        self.put(key, KvWrite { key: RECORD, value, expected: None, lives_for }).map(drop)
    }

    fn try_lock(&self, key: &str) -> io::Result<Option<TokenLock>> {
        let owner = Uuid::new_v4().to_string();
        let (value, expected) = (Some(&*owner), Some(None));
        let free = self.put(key, KvWrite { key: LOCK, value, expected, lives_for: LEASE })?;
        let lock = || Lease { tokens: self.clone(), key: key.to_owned(), owner };
        Ok(free.then(|| Box::new(lock()) as TokenLock))
    }
}

/// The lock of a record, which ends by itself if this process does.
struct Lease {
    tokens: SharedTokens,
    key: String,
    owner: String,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let expected = Some(Some(&*self.owner));
        let write = KvWrite { key: LOCK, value: None, expected, lives_for: Duration::ZERO };
        // Without the store it expires.
        let _ = self.tokens.put(&self.key, write);
    }
}

/// The purpose of a record's seal: who can write the database cannot give a login to another caller.
fn purpose(name: &str) -> String {
    format!("login {name}")
}
