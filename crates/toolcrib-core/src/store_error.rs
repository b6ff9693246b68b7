//! The error of a store.

use std::{error::Error, sync::Arc};

/// A session that cannot be read or written. The text is for the operator; a model never reads it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionStoreError {
    /// The owner has no session of that id or name. Another owner may have one.
    #[error("there is no session `{session}`; `toolcrib sessions` lists all")]
    Unknown {
        /// The id or name.
        session: Arc<str>,
    },
    /// The owner has a session of that name.
    #[error("there is a session `{name}` already")]
    NameTaken {
        /// The name.
        name: Arc<str>,
    },
    /// The name is not valid.
    #[error(
        "`{}` is not a valid name of a session: use 1 to {} letters, digits, `-`, `_` and `.`, \
         beginning with a letter or digit, and not the form of an id (12 hexadecimal digits)",
        name.escape_debug(),
        MAX_SESSION_NAME
    )]
    InvalidName {
        /// The name.
        name: Arc<str>,
    },
    /// Another run writes to the session.
    #[error("another run is using the session `{session}`; wait until it ends, or stop it")]
    InUse {
        /// The session's id.
        session: Arc<str>,
        /// The end of its lease, in milliseconds since 1970. Each renewal moves it.
        until_ms: u64,
    },
    /// Too many messages of the session wait for their turn.
    #[error(
        "{limit} messages wait in the session `{session}`, and no more can be submitted; wait for one"
    )]
    TooManySubmitted {
        /// The session's id.
        session: Arc<str>,
        /// The limit.
        limit: usize,
    },
    /// The lease expired, and another run has taken the session over.
    #[error(
        "the session `{session}` was taken over by another run, because this one did not renew \
         its lease in time"
    )]
    LeaseLost {
        /// The session's id.
        session: Arc<str>,
    },
    /// The store has fewer writes than it has acknowledged: its server has crashed, or has been
    /// replaced by a copy.
    #[error(
        "the store has lost writes to the session `{session}`, such as by a crash of its server; \
         `toolcrib resume` continues from those that it has"
    )]
    WritesLost {
        /// The session's id.
        session: Arc<str>,
    },
    /// A record that does not fit the state of the session, such as a message without a turn.
    #[error("the session `{session}` cannot record {what}")]
    OutOfOrder {
        /// The session's id.
        session: Arc<str>,
        /// The record and the reason.
        what: &'static str,
    },
    /// The store may lose the intent of a call that may not be repeated, after it has acknowledged it.
    #[error(
        "{store} may lose what it acknowledges, since `fsync` is off: a call that may not be repeated is not \
         made; set fsync = on, or declare accept_loss = true in `[sessions]`"
    )]
    NotDurable {
        /// The store.
        store: String,
    },
    /// A newer program has written the store.
    #[error(
        "{store} was written by a newer Toolcrib (its format is {found}, this program reads up to \
         {known}); update Toolcrib, or use another state folder"
    )]
    NewerSchema {
        /// The store.
        store: String,
        /// Its format.
        found: i64,
        /// The newest format that this program can read.
        known: i64,
    },
    /// The store contains something else, or data that cannot be read.
    #[error("{store} is not a usable store of sessions: {problem}")]
    Damaged {
        /// The store.
        store: String,
        /// The problem.
        problem: String,
    },
    /// The store failed: the disk is full, the folder cannot be written, the server is gone.
    #[error("{store} cannot be {doing}: {source}")]
    Io {
        /// The store.
        store: String,
        /// The operation: `read`, `written`, `opened`.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// The maximum length of a session's name, in characters.
pub const MAX_SESSION_NAME: usize = 64;
