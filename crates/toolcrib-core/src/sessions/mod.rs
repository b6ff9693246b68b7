//! Sessions: conversations that outlive the process.

mod error;
mod record;
mod store;
pub(crate) mod usage;
pub(crate) mod violations;

pub use self::{
    error::SessionStoreError,
    record::{
        CallIntent, CallOutcome, FoundMessage, SessionHistory, SessionRecord, StoredCall,
        StoredMessage, StoredRun, StoredSession, StoredTurn, TracedEvent, TurnState,
    },
    store::{
        MAX_SESSION_NAME, NewSession, SessionInfo, SessionLease, SessionOwner, SessionRetention,
        SessionSearch, SessionStore, StoreId, is_session_id, is_session_name,
    },
    usage::{BudgetUse, StoredUsage, UsageStore},
    violations::StoreViolations,
};
pub use crate::{
    kv::{KvArea, KvError, KvLimits, KvScope, KvStore, KvWrite},
    messages::{UsageEntry, UsageSource},
};
