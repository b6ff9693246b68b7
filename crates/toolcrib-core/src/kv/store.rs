//! Key-value: the port to a store of small texts that tools keep from one call to the next.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{names::owner::SessionOwner, store_error::SessionStoreError};

/// The calls that share keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KvScope {
    /// All calls of the tool, of every principal of the tenant. The keys of a plugin's tool are not
    /// those of another plugin's tool with the same name.
    Tool,
    /// All tools in one session. The keys end with the session; those of a conversation that is not a
    /// session of the store end with the process at the latest, or two days after their last change if several
    /// processes continue it.
    Session,
    /// All tools, in all sessions of the principal.
    Principal,
}

impl KvScope {
    /// The scope as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Session => "session",
            Self::Principal => "principal",
        }
    }
}

/// One set of keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvArea {
    /// Of a tool.
    Tool {
        /// The tenant, if there is one.
        tenant: Option<Arc<str>>,
        /// The tool's name, with its plugin.
        tool: Arc<str>,
    },
    /// Of a session.
    Session {
        /// The owner of the session.
        owner: SessionOwner,
        /// The name or the id of the session.
        conversation: Arc<str>,
    },
    /// Of a conversation that several processes continue without a session of the store, as replicas of a
    /// gateway do.
    Conversation {
        /// The owner of the conversation.
        owner: SessionOwner,
        /// The id of the conversation.
        conversation: Arc<str>,
    },
    /// Of a principal.
    Principal {
        /// The principal.
        owner: SessionOwner,
    },
}

/// The limits of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvLimits;

impl KvLimits {
    /// The longest key, in bytes.
    pub const KEY_BYTES: usize = 256;
    /// The longest value, in bytes.
    pub const VALUE_BYTES: usize = 64 * 1024;
    /// The most keys of an area.
    pub const KEYS: usize = 1_000;
    /// The most bytes of the keys and values of an area.
    pub const BYTES: usize = 1024 * 1024;
    /// The longest time for which a value is kept after it was written.
    pub const TIME: Duration = Duration::from_hours(366 * 24);
    /// The same for a [conversation](KvArea::Conversation), whose end no process may see.
    pub const CONVERSATION: Duration = Duration::from_hours(48);

    /// Checks a key and a value.
    ///
    /// # Errors
    /// [`KvError::Key`], [`KvError::Value`].
    pub fn check(key: &str, value: Option<&str>) -> Result<(), KvError> {
        if key.is_empty() || key.len() > Self::KEY_BYTES {
            return Err(KvError::Key);
        }
        match value {
            Some(value) if value.len() > Self::VALUE_BYTES => Err(KvError::Value),
            _ => Ok(()),
        }
    }
}

/// A change of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvWrite<'a> {
    /// The key.
    pub key: &'a str,
    /// The new value; `None` removes it.
    pub value: Option<&'a str>,
    /// The value that the key must have now, if the write depends on it; an inner `None` means that
    /// it has none.
    pub expected: Option<Option<&'a str>>,
    /// How long the value is kept, at most [`KvLimits::TIME`].
    pub lives_for: Duration,
}

/// Why a key cannot be read or written. The text is for the operator and for the author of a tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// The key is empty or too long.
    #[error("a key has 1 to {} bytes", KvLimits::KEY_BYTES)]
    Key,
    /// The value is too long.
    #[error("a value has at most {} bytes", KvLimits::VALUE_BYTES)]
    Value,
    /// The area has no room.
    #[error(
        "these keys have no room: at most {} keys and {} bytes; remove some",
        KvLimits::KEYS,
        KvLimits::BYTES
    )]
    Full,
    /// The key does not have the expected value.
    #[error("the value has changed meanwhile")]
    Changed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] SessionStoreError),
}

/// Stores keys and values. A value that has expired does not exist. All methods block, and are
/// atomic, also between processes that share the store. The caller redacts secrets.
/// `toolcrib_testing::stores` tests an implementation.
pub trait KvStore: Send + Sync + 'static {
    /// The value of a key.
    ///
    /// # Errors
    /// A failure of the store.
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError>;

    /// The keys that begin with a text, sorted.
    ///
    /// # Errors
    /// A failure of the store.
    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError>;

    /// Writes or removes one key.
    ///
    /// # Errors
    /// [`KvError`]; nothing has changed then.
    fn put(&self, area: &KvArea, write: KvWrite<'_>) -> Result<(), KvError>;
}
