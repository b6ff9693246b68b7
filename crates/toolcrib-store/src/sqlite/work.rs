//! The work of sessions: submitted messages, open turns without a process, and cancellation.

use std::{sync::Arc, time::Duration};

use rusqlite::{OptionalExtension as _, Transaction, params};
use toolcrib_core::{
    ClaimedSession, MAX_SUBMITTED, SessionLease, SessionOwner, SessionStoreError, SubmittedMessage,
    TurnState,
};

use super::{Failure, read, unknown, unsigned::UnsignedInt};
use crate::session::{lease_end, new_token, now_ms, owner_key, owner_of};

/// Whether the last turn of a session has not ended.
macro_rules! is_running {
    () => {
        "EXISTS (SELECT 1 FROM turns
            WHERE session = id AND number = sessions.turns AND ended_ms IS NULL)"
    };
}
pub(super) use is_running;

/// Whether the running turn of a session is to be cancelled.
pub(super) fn is_cancelled(transaction: &Transaction<'_>, id: &str) -> Result<bool, Failure> {
    let is_cancelled = concat!(
        "SELECT cancelled_turn = turns AND ",
        is_running!(),
        " FROM sessions WHERE id = ?1"
    );
    Ok(transaction.prepare_cached(is_cancelled)?.query_row([id], |row| row.get(0))?)
}

pub(super) fn submit(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
    message: &str,
) -> Result<(), Failure> {
    let waiting = "SELECT json_array_length(submitted) FROM sessions WHERE id = ?1 AND owner = ?2";
    let waiting = transaction.query_row(waiting, params![id, owner_key(owner)], |row| row.get(0));
    let waiting: u32 = waiting.optional()?.ok_or_else(|| unknown(id))?;
    if waiting as usize >= MAX_SUBMITTED {
        let limit = MAX_SUBMITTED;
        return Err(SessionStoreError::TooManySubmitted { session: id.into(), limit }.into());
    }
    // As JSON, since a text of SQL ends at a NUL.
    let message = serde_json::Value::from(message).to_string();
    let submit = concat!(
        "UPDATE sessions SET submitted = json_insert(submitted, '$[#]', json(?2)),
            used_ms = CASE WHEN submitted = '[]' AND NOT ",
        is_running!(),
        " THEN ?3 ELSE used_ms END WHERE id = ?1"
    );
    transaction.execute(submit, params![id, message, UnsignedInt(now_ms())])?;
    Ok(())
}

pub(super) fn claim(
    transaction: &Transaction<'_>,
    owner: Option<&SessionOwner>,
    time: Duration,
) -> Result<Option<ClaimedSession>, Failure> {
    let free = concat!(
        "SELECT id, owner, taken + 1, submitted FROM sessions
            WHERE id IN (SELECT id FROM sessions WHERE submitted <> '[]'
                UNION SELECT session FROM turns WHERE ended_ms IS NULL)
            AND CASE WHEN ",
        is_running!(),
        " THEN is_due OR lease IS NOT NULL ELSE submitted <> '[]' END
            AND (lease IS NULL OR lease_until_ms <= ?1) AND owner = coalesce(?2, owner)
            ORDER BY used_ms LIMIT 1"
    );
    let free = transaction
        .prepare_cached(free)?
        .query_row(params![UnsignedInt(now_ms()), owner.map(owner_key)], |row| {
            let (id, owner): (Arc<str>, String) = (row.get(0)?, row.get(1)?);
            Ok((id, owner, row.get::<_, UnsignedInt>(2)?.0, row.get::<_, String>(3)?))
        })
        .optional()?;
    let Some((id, owner, number, submitted)) = free else { return Ok(None) };
    let token = new_token();
    let take = "UPDATE sessions SET lease = ?2, lease_until_ms = ?3, is_due = 0 WHERE id = ?1";
    transaction.execute(take, params![id, token, UnsignedInt(lease_end(time))])?;
    let info = read::info(transaction, &owner_of(&owner)?, &id)?;
    let submitted = match info.last_turn {
        Some(TurnState::Running) => None,
        _ => {
            let waiting: Vec<Arc<str>> =
                serde_json::from_str(&submitted).map_err(crate::frozen::FrozenError::from)?;
            waiting.into_iter().next().map(|text| SubmittedMessage { number, text })
        }
    };
    let is_cancelled = is_cancelled(transaction, &id)?;
    let lease = SessionLease { session: id, token };
    Ok(Some(ClaimedSession { info, lease, submitted, is_cancelled }))
}

pub(super) fn cancel(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
) -> Result<bool, Failure> {
    let found = concat!(
        "SELECT ",
        is_running!(),
        ", submitted <> '[]' FROM sessions WHERE id = ?1 AND owner = ?2"
    );
    let found = transaction.query_row(found, params![id, owner_key(owner)], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?))
    });
    let (is_running, has_messages) = found.optional()?.ok_or_else(|| unknown(id))?;
    let cancel = "UPDATE sessions SET is_due = is_due OR ?2,
        cancelled_turn = CASE WHEN ?2 THEN turns ELSE cancelled_turn END,
        taken = taken + json_array_length(submitted), submitted = '[]' WHERE id = ?1";
    transaction.execute(cancel, params![id, is_running])?;
    Ok(is_running || has_messages)
}
