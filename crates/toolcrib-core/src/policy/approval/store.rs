//! The port to a store of calls that wait for approval.

use std::sync::Arc;

use super::StoredArguments;
use crate::{json::digest::Digest, names::owner::SessionOwner, store_error::SessionStoreError};

/// A call that waits for a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct ParkedCall {
    /// The tenant and principal that the call acts for.
    pub owner: SessionOwner,
    /// The session of its run. Without one, the same call can be made again once it is approved.
    pub session: Option<Arc<str>>,
    /// The id of the call, in a session.
    pub call_id: Option<Arc<str>>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The tool's origin.
    pub origin: Arc<str>,
    /// The digest of the tool's definition.
    pub definition: Digest,
    /// The arguments; `None` once the store has deleted them.
    pub arguments: Option<StoredArguments>,
    /// The digest of all of the above. A decision is about this digest.
    pub binding: Digest,
    /// The label of the rule that asks.
    pub rule: Arc<str>,
    /// The reason of the rule.
    pub reason: Option<Arc<str>>,
    /// The end of its wait, in milliseconds since 1970. Later it cannot be approved.
    pub expires_ms: u64,
}

/// A parked call in a store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredApproval {
    /// The id: 12 hexadecimal digits.
    pub id: Arc<str>,
    /// The call.
    pub call: ParkedCall,
    /// The time at which it was parked, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its state. A store only keeps it: a [settlement](ApprovalState::Settled) counts if its seal
    /// is valid.
    pub state: ApprovalState,
}

/// The state of a parked call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalState {
    /// No decision yet.
    Open,
    /// A person decided, and the call has not been made again yet.
    Settled(Settlement),
    /// It is over. Its arguments are deleted.
    Closed {
        /// How, as one word: `used`, `denied`, `withdrawn`.
        how: Arc<str>,
        /// When, in milliseconds since 1970.
        at_ms: u64,
    },
}

/// A decision on a parked call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Whether the call may run.
    pub is_approved: bool,
    /// The reason of a denial, for the model.
    pub reason: Option<Arc<str>>,
    /// The time of the decision, in milliseconds since 1970.
    pub settled_ms: u64,
    /// The end of its validity, in milliseconds since 1970.
    pub until_ms: u64,
    /// The message authentication code over the decision, as hexadecimal digits.
    pub seal: Arc<str>,
}

/// A standing approval of calls to one tool by one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalGrant {
    /// The id: 12 hexadecimal digits.
    pub id: Arc<str>,
    /// The tenant and principal that the calls act for.
    pub owner: SessionOwner,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The tool's origin.
    pub origin: Arc<str>,
    /// The permitted arguments, as JSON.
    pub scope: Arc<str>,
    /// The time of the decision, in milliseconds since 1970.
    pub created_ms: u64,
    /// The end of its validity, in milliseconds since 1970.
    pub until_ms: u64,
    /// The message authentication code over all of the above, as hexadecimal digits.
    pub seal: Arc<str>,
}

/// A store of approvals that cannot be read or written, or does not have what was requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalStoreError {
    /// There is no parked call or grant of that id.
    #[error("there is no approval `{id}`; `toolcrib approvals` lists all")]
    Unknown {
        /// The id.
        id: Arc<str>,
    },
    /// The call is decided already, or over.
    #[error("the approval `{id}` is {state} already; `toolcrib approvals --all` shows it")]
    NotOpen {
        /// The id.
        id: Arc<str>,
        /// Its state, as one word.
        state: Arc<str>,
    },
    /// Too many calls wait.
    #[error(
        "{limit} calls wait for approval, and no more can be parked; settle some, see `toolcrib \
         approvals`"
    )]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] SessionStoreError),
}

/// Stores calls that wait for approval, decisions on them, and grants.
///
/// A store keeps what it receives and decides nothing: anybody who can write to it could change a
/// row, so a reader verifies the seal of a settlement and of a grant. All methods block. A write is
/// atomic, and has survived the death of this process when it returns. Removing a session removes
/// its approvals. `toolcrib_testing::stores` tests an implementation.
pub trait ApprovalStore: Send + Sync + 'static {
    /// Parks a call, and returns it. If a call of the same [binding](ParkedCall::binding) is open
    /// and has not expired, that one is returned.
    ///
    /// # Errors
    /// [`TooMany`](ApprovalStoreError::TooMany) if `limit` calls are open and not expired;
    /// [`SessionStoreError::Unknown`] if its session does not exist; or a failure of the store.
    fn park(&self, call: &ParkedCall, limit: usize) -> Result<StoredApproval, ApprovalStoreError>;

    /// The parked call of an id.
    ///
    /// # Errors
    /// [`Unknown`](ApprovalStoreError::Unknown), or a failure of the store.
    fn approval(&self, id: &str) -> Result<StoredApproval, ApprovalStoreError>;

    /// The parked calls, the oldest first. Closed ones only on request.
    ///
    /// # Errors
    /// A failure of the store.
    fn approvals(&self, with_closed: bool) -> Result<Vec<StoredApproval>, ApprovalStoreError>;

    /// Records the decision on an open call. A denial deletes its arguments. The call's session has work
    /// then, for [`SessionStore::claim`](crate::SessionStore::claim).
    ///
    /// # Errors
    /// [`NotOpen`](ApprovalStoreError::NotOpen), [`Unknown`](ApprovalStoreError::Unknown), or a
    /// failure of the store.
    fn settle(&self, id: &str, settlement: &Settlement) -> Result<(), ApprovalStoreError>;

    /// Closes a call that is open or settled, and deletes its arguments. Returns whether this call
    /// closed it: of several that close the same one, one gets `true`.
    ///
    /// # Errors
    /// [`Unknown`](ApprovalStoreError::Unknown), or a failure of the store.
    fn close(&self, id: &str, how: &str) -> Result<bool, ApprovalStoreError>;

    /// Adds a grant. Its id is new.
    ///
    /// # Errors
    /// A failure of the store.
    fn add_grant(&self, grant: &ApprovalGrant) -> Result<(), ApprovalStoreError>;

    /// All grants, the oldest first.
    ///
    /// # Errors
    /// A failure of the store.
    fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalStoreError>;

    /// Removes a grant; returns whether there was one.
    ///
    /// # Errors
    /// A failure of the store.
    fn remove_grant(&self, id: &str) -> Result<bool, ApprovalStoreError>;

    /// Removes what was over before a time, in milliseconds since 1970: closed calls, calls and
    /// decisions that had expired, grants. Returns their number.
    ///
    /// # Errors
    /// A failure of the store.
    fn prune_approvals(&self, before_ms: u64) -> Result<usize, ApprovalStoreError>;
}

impl ApprovalState {
    /// The state as one word: `open`, `approved`, `denied`, or how it was closed.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Open => "open",
            Self::Settled(settlement) if settlement.is_approved => "approved",
            Self::Settled(_) => "denied",
            Self::Closed { how, .. } => how,
        }
    }
}
