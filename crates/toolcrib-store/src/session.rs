//! The rules that all stores share.

use std::{sync::Arc, time::Duration};

use serde_json::json;
pub(crate) use toolcrib_core::__internal::now_ms;
use toolcrib_core::{
    __internal::millis, NewSession, SessionOwner, SessionStoreError, is_session_name,
};
use uuid::Uuid;

use crate::frozen::FrozenError;

/// The number of ids that are tried for a new session. They have 48 random bits, so a second is
/// rare, and more would mean a broken generator.
pub(crate) const ID_ATTEMPTS: u32 = 8;

/// The time after which a session without a name and without turns is removed: its run failed
/// before it began.
pub(crate) const EMPTY_DIES_AFTER: Duration = Duration::from_hours(1);

/// The number of days after which sums of usage are removed.
pub(crate) const KEPT_DAYS: u64 = 400;

/// The owner as a column: SQL's `NULL` would not equal itself.
pub(crate) fn owner_key(owner: &SessionOwner) -> String {
    json!([owner.tenant, owner.principal]).to_string()
}

/// The owner of a column.
pub(crate) fn owner_of(key: &str) -> Result<SessionOwner, FrozenError> {
    let (tenant, principal) = serde_json::from_str(key)?;
    Ok(SessionOwner { tenant, principal })
}

/// A new id of a session.
pub(crate) fn new_id() -> Arc<str> {
    Uuid::new_v4().simple().to_string().chars().take(12).collect::<String>().into()
}

/// A new id of a lease.
pub(crate) fn new_token() -> Arc<str> {
    Uuid::new_v4().simple().to_string().into()
}

/// The present day, as the number of days since 1970 in UTC.
pub(crate) fn today() -> u64 {
    now_ms() / 86_400_000
}

/// The end of a lease for a time from now.
pub(crate) fn lease_end(time: Duration) -> u64 {
    now_ms().saturating_add(millis(time))
}

pub(crate) fn check_name(new: &NewSession) -> Result<(), SessionStoreError> {
    match &new.name {
        Some(name) if !is_session_name(name) => {
            Err(SessionStoreError::InvalidName { name: Arc::clone(name) })
        }
        _ => Ok(()),
    }
}

/// A record that does not fit the state of the session.
pub(crate) fn out_of_order(session: &Arc<str>, what: &'static str) -> SessionStoreError {
    SessionStoreError::OutOfOrder { session: Arc::clone(session), what }
}

pub(crate) const BEGAN_TWICE: &str = "the beginning of a turn before the end of the last one";
pub(crate) const NOT_SUBMITTED: &str = "the turn of a message that is not the next one that waits";
pub(crate) const OUTSIDE_TURN: &str = "a message, a call or an end outside of a turn";
