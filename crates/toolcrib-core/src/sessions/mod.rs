//! Sessions: conversations that outlive the process.

mod record;
mod store;
pub(crate) mod usage;

pub use self::{
    record::{
        CallIntent, CallOutcome, FoundMessage, SessionHistory, SessionRecord, StoredCall,
        StoredMessage, StoredRun, StoredSession, StoredTurn, TracedEvent, TurnState,
    },
    store::{
        ClaimedSession, LeaseTimes, MAX_SUBMITTED, NewSession, SessionInfo, SessionLease,
        SessionRetention, SessionSearch, SessionStore, StoreId, SubmittedMessage, is_session_id,
        is_session_name,
    },
    usage::{BudgetUse, StoredUsage, UsageStore},
};
pub use crate::{
    kv::{KvArea, KvError, KvLimits, KvScope, KvStore, KvWrite, LimitStore, SharedLimit},
    messages::{UsageEntry, UsageSource},
    names::owner::SessionOwner,
    store_error::{MAX_SESSION_NAME, SessionStoreError},
};
