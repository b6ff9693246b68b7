//! The port to a store of sessions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;

use super::{
    FoundMessage, SessionHistory, SessionRecord, StoredRun, StoredSession, TracedEvent, TurnState,
};
use crate::{
    messages::sent_parts::SentPart,
    names::{identity::Identity, owner::SessionOwner},
    store_error::{MAX_SESSION_NAME, SessionStoreError},
};

/// The length of a session's id, in hexadecimal digits.
const ID_DIGITS: usize = 12;

/// Whether a text has the form of a session's id: 12 hexadecimal digits in lower case.
pub fn is_session_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text can be the name of a session: 1 to [`MAX_SESSION_NAME`] ASCII letters, digits,
/// `-`, `_` and `.`, beginning with a letter or digit, and not the [form of an id](is_session_id).
pub fn is_session_name(text: &str) -> bool {
    text.len() <= MAX_SESSION_NAME
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && !is_session_id(text)
}

/// Stores sessions: conversations with their turns, messages and calls.
///
/// Each session belongs to one [owner](SessionOwner), and is unknown to all others. At any time one
/// writer has its [lease](SessionLease); every process that shares the store sees the same lease.
/// A write is atomic, and has survived the death of this process when [`write`](Self::write)
/// returns. It survives the loss of power only if it contains the
/// [intent](SessionRecord::Intent) of a call that may not be repeated, or precedes such a write.
/// Times are of one clock: that of the machine if all processes are on it, else that of the store.
///
/// All methods block. The caller redacts secrets; a store keeps what it receives.
/// `toolcrib_testing::stores` tests an implementation.
pub trait SessionStore: Send + Sync + 'static {
    /// Creates a session without turns, and with a new id.
    ///
    /// # Errors
    /// [`NameTaken`](SessionStoreError::NameTaken), [`InvalidName`](SessionStoreError::InvalidName),
    /// or a failure of the store.
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError>;

    /// The owner's session of an id or a name.
    ///
    /// # Errors
    /// [`Unknown`](SessionStoreError::Unknown), or a failure of the store.
    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError>;

    /// The owner's sessions that have turns or submitted messages, the last used first, at most `limit`.
    ///
    /// # Errors
    /// A failure of the store.
    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError>;

    /// The contents of the owner's session of an id. Needs no lease.
    ///
    /// # Errors
    /// [`Unknown`](SessionStoreError::Unknown), or a failure of the store.
    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError>;

    /// The contents of the owner's session of an id that its next request needs. Needs no lease. The
    /// default [reads](Self::read) all.
    ///
    /// # Errors
    /// [`Unknown`](SessionStoreError::Unknown), or a failure of the store.
    fn history(&self, owner: &SessionOwner, id: &str) -> Result<SessionHistory, SessionStoreError> {
        self.read(owner, id).map(SessionHistory::from)
    }

    /// The turns of all of the owner's sessions, the last begun first, at most `limit`.
    ///
    /// # Errors
    /// A failure of the store.
    fn runs(&self, owner: &SessionOwner, limit: usize)
    -> Result<Vec<StoredRun>, SessionStoreError>;

    /// The events of a turn of the owner's session of an id, in the order in which they were
    /// written; none for a turn that does not exist.
    ///
    /// # Errors
    /// [`Unknown`](SessionStoreError::Unknown), or a failure of the store.
    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError>;

    /// The parts of requests of the owner's session of an id, as they were sent, in any order.
    ///
    /// # Errors
    /// [`Unknown`](SessionStoreError::Unknown), or a failure of the store.
    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError>;

    /// Searches what users and models have written in the owner's sessions; the best match first.
    ///
    /// # Errors
    /// A failure of the store.
    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError>;

    /// Leases the owner's session of an id for a time. Fails while another lease has not expired.
    ///
    /// # Errors
    /// [`InUse`](SessionStoreError::InUse), [`Unknown`](SessionStoreError::Unknown), or a failure
    /// of the store.
    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError>;

    /// The times of the leases of its sessions. Default: those of [`LeaseTimes::default`].
    fn lease_times(&self) -> LeaseTimes {
        LeaseTimes::default()
    }

    /// Extends a lease to a time from now. A lease that has expired, but was not taken over, is
    /// extended too. With no time, the lease expires at once, and a [claim](Self::claim) finds the session.
    /// Returns whether the running turn is to be [cancelled](Self::cancel).
    ///
    /// # Errors
    /// [`LeaseLost`](SessionStoreError::LeaseLost) also if the session was removed, or a failure of
    /// the store.
    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<bool, SessionStoreError>;

    /// Ends a lease. A lost lease is not an error.
    ///
    /// # Errors
    /// A failure of the store.
    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError>;

    /// Adds a message to those that the owner's session of an id is to run, each in a separate turn. Needs
    /// no lease. Survives the loss of power.
    ///
    /// # Errors
    /// [`TooManySubmitted`](SessionStoreError::TooManySubmitted) if [`MAX_SUBMITTED`] messages wait;
    /// [`Unknown`](SessionStoreError::Unknown), or a failure of the store.
    fn submit(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError>;

    /// Leases a session that has work, of one owner or of all, for a time; `None` if there is none. Of several
    /// that claim a session, one gets it. The session comes first whose work has waited longest: since its last
    /// write, or since the message that was submitted first.
    ///
    /// A session without a valid lease has work if
    /// - its last turn has ended, and a [submitted](Self::submit) message waits; or
    /// - its last turn has not ended, and the last lease has expired, instead of being released; or
    /// - its last turn has not ended, and after the last claim a call of it was
    ///   [settled](crate::ApprovalStore::settle), or it is to be [cancelled](Self::cancel).
    ///
    /// # Errors
    /// A failure of the store.
    fn claim(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError>;

    /// Removes the submitted messages of the owner's session of an id, and marks its turn, unless it has
    /// ended, as one to be cancelled. The process with the lease learns it from its next
    /// [renewal](Self::renew). Returns whether there was a message or a turn.
    ///
    /// # Errors
    /// [`Unknown`](SessionStoreError::Unknown), or a failure of the store.
    fn cancel(&self, owner: &SessionOwner, id: &str) -> Result<bool, SessionStoreError>;

    /// Writes records in order, all or none of them, and returns the number of the write: 1 for the
    /// first of the session, and one more for each later one, also where several threads write.
    ///
    /// `seen` is the highest number that the writer has received; 0 before its first write. A store
    /// with fewer writes has lost one that it had acknowledged, such as a server that crashed
    /// between two writes that did not have to survive the loss of power.
    ///
    /// # Errors
    /// [`LeaseLost`](SessionStoreError::LeaseLost), [`WritesLost`](SessionStoreError::WritesLost),
    /// [`OutOfOrder`](SessionStoreError::OutOfOrder), or a failure of the store.
    fn write(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError>;

    /// Checks that the intent of a call that may not be repeated survives the loss of power once its write is
    /// acknowledged. Otherwise such a call is refused, and the run goes on. Unlike all other methods, it does
    /// not block. Default: it survives.
    ///
    /// # Errors
    /// [`NotDurable`](SessionStoreError::NotDurable).
    fn check_durable(&self) -> Result<(), SessionStoreError> {
        Ok(())
    }

    /// The [id](crate::UsageStore::store_id) of the store of usage to which a write can add
    /// [usage](SessionRecord::Spent). Default: none, and usage is written apart.
    fn usage_store_id(&self) -> Option<StoreId> {
        None
    }

    /// Removes the owner's session of an id, with everything in it.
    ///
    /// # Errors
    /// [`InUse`](SessionStoreError::InUse), [`Unknown`](SessionStoreError::Unknown), or a failure
    /// of the store.
    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError>;

    /// Removes the sessions of all owners that exceed the retention, the least recently used first,
    /// and returns their number. A session with a lease or a submitted message stays.
    ///
    /// # Errors
    /// A failure of the store.
    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError>;
}

/// Says whether a store of sessions and a store of usage are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId(u64);

impl StoreId {
    /// An id that no other store of the process has.
    #[expect(clippy::new_without_default, reason = "two ids are never equal")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl From<&Identity> for SessionOwner {
    fn from(identity: &Identity) -> Self {
        Self { tenant: identity.tenant.clone(), principal: identity.principal.clone() }
    }
}

/// A session to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The owner.
    pub owner: SessionOwner,
    /// The name, unique for its owner. Default: none.
    pub name: Option<Arc<str>>,
    /// The id of the personality. All turns of a session have the same.
    pub personality: Arc<str>,
}

/// A search in the messages of an owner's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionSearch {
    /// Words of letters and digits, all of which a message must contain. None find nothing.
    pub words: Vec<Arc<str>>,
    /// The id or name of a session that is left out.
    pub without: Option<Arc<str>>,
    /// The most messages to return.
    pub limit: usize,
}

/// A session without its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The id: 12 hexadecimal digits.
    pub id: Arc<str>,
    /// The name, if it has one.
    pub name: Option<Arc<str>>,
    /// The owner.
    pub owner: SessionOwner,
    /// The id of the personality.
    pub personality: Arc<str>,
    /// The time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time of the last write, in milliseconds since 1970.
    pub used_ms: u64,
    /// The number of turns.
    pub turns: u32,
    /// The first words of its first message; empty without turns.
    pub title: Arc<str>,
    /// The state of the last turn; `None` without turns.
    pub last_turn: Option<TurnState>,
    /// The size of its messages, arguments and events, in bytes.
    pub bytes: u64,
    /// The number of [submitted](SessionStore::submit) messages that wait for their turn.
    pub submitted: u32,
}

impl SessionInfo {
    /// A session without turns.
    pub fn new(id: Arc<str>, new: &NewSession, now_ms: u64) -> Self {
        Self {
            id,
            name: new.name.clone(),
            owner: new.owner.clone(),
            personality: Arc::clone(&new.personality),
            created_ms: now_ms,
            used_ms: now_ms,
            turns: 0,
            title: Arc::default(),
            last_turn: None,
            bytes: 0,
            submitted: 0,
        }
    }

    /// The conversation of the identity of its turns: its name, else its id.
    pub fn conversation(&self) -> &Arc<str> {
        self.name.as_ref().unwrap_or(&self.id)
    }
}

/// The times of the leases of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// The time of a lease. A killed process keeps its sessions for this time. Default: 15 seconds.
    pub lease: Duration,
    /// The time between two renewals, several of which a slow machine may miss. Default: 2 seconds.
    pub renew_every: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew_every: Duration::from_secs(2) }
    }
}

/// The right to write to a session until a time, which [`SessionStore::renew`] extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLease {
    /// The session's id.
    pub session: Arc<str>,
    /// The lease's own id, unique for each lease.
    pub token: Arc<str>,
}

/// The number of submitted messages that a session can have.
pub const MAX_SUBMITTED: usize = 100;

/// A session that [`SessionStore::claim`] has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedSession {
    /// The session.
    pub info: SessionInfo,
    /// The lease.
    pub lease: SessionLease,
    /// The message that its next turn runs; `None` if its last turn is to be resumed.
    pub submitted: Option<SubmittedMessage>,
    /// Whether the turn is to be cancelled.
    pub is_cancelled: bool,
}

/// A message that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedMessage {
    /// Its number in the session, from 1.
    pub number: u64,
    /// Its text.
    pub text: Arc<str>,
}

/// The sessions that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRetention {
    /// The time since the last write after which a session is removed.
    pub keep_for: Duration,
    /// The total [size](SessionInfo::bytes) of all sessions. A session is removed if it exceeds this
    /// together with all that were used after it.
    pub max_bytes: u64,
}
