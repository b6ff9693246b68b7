//! A session is a conversation that outlives the process. This module has the port [`SessionStore`]
//! and its types; the feature `sessions` adds stores, and `agent::Session`, which runs use.

#[doc(inline)]
pub use toolcrib_core::{
    BudgetUse, CallIntent, CallOutcome, FoundMessage, KvArea, KvError, KvLimits, KvScope, KvStore,
    KvWrite, MAX_SESSION_NAME, NewSession, SessionHistory, SessionInfo, SessionLease, SessionOwner,
    SessionRecord, SessionRetention, SessionSearch, SessionStore, SessionStoreError, StoreId,
    StoredCall, StoredMessage, StoredRun, StoredSession, StoredTurn, StoredUsage, TracedEvent,
    TurnState, UsageEntry, UsageSource, UsageStore, is_session_id, is_session_name,
};
#[cfg(feature = "sessions")]
#[doc(inline)]
pub use toolcrib_store::*;
