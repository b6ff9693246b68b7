//! A session is a conversation that outlives the process. This module has the port [`SessionStore`]
//! and its types; the feature `sessions` adds stores, and `agent::Session`, which runs use.

#[doc(inline)]
pub use toolcrib_core::{
    CallIntent, CallOutcome, MAX_SESSION_NAME, NewSession, SessionInfo, SessionLease, SessionOwner,
    SessionRecord, SessionRetention, SessionStore, SessionStoreError, StoredCall, StoredMessage,
    StoredSession, StoredTurn, TurnState, is_session_id, is_session_name,
};
#[cfg(feature = "sessions")]
#[doc(inline)]
pub use toolcrib_store::*;
