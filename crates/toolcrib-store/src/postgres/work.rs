//! The work of sessions: submitted messages, open turns without a process, and cancellation.

use std::time::Duration;

use toolcrib_core::{
    __internal::millis, ClaimedSession, MAX_SUBMITTED, SessionLease, SessionOwner,
    SessionStoreError, SubmittedMessage,
};

use super::{PostgresStore, now, params, read::info, signed, text, unsigned, unsynced};
use crate::session::{new_token, owner_key, owner_of};

impl PostgresStore {
    pub(super) fn submit_message(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError> {
        // Synced: the process that submits does not wait for the run.
        let submit = concat!(
            "UPDATE toolcrib.sessions SET submitted = submitted || $3::bytea,
                used_ms = CASE WHEN submitted = '{}' AND NOT is_running THEN ",
            now!(),
            " ELSE used_ms END
            WHERE id = $1 AND owner = $2 AND cardinality(submitted) < $4 RETURNING id"
        );
        let most = i32::try_from(MAX_SUBMITTED).unwrap_or(i32::MAX);
        let message = message.as_bytes().to_vec();
        let values = params![id.to_owned(), owner_key(owner), message, most];
        if self.written(submit, values)?.is_empty() {
            let session = self.info(owner, id)?.id;
            return Err(SessionStoreError::TooManySubmitted { session, limit: MAX_SUBMITTED });
        }
        Ok(())
    }

    pub(super) fn claim_session(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError> {
        let claim = concat!(
            "WITH free AS (
                SELECT id AS free FROM toolcrib.sessions
                WHERE (is_running OR submitted <> '{}')
                    AND CASE WHEN is_running THEN is_due OR lease IS NOT NULL ELSE true END
                    AND (lease IS NULL OR lease_until_ms <= ",
            now!(),
            ") AND owner = coalesce($1, owner)
                ORDER BY used_ms LIMIT 1 FOR UPDATE SKIP LOCKED
            ), claimed AS (
                UPDATE toolcrib.sessions SET lease = $2, lease_until_ms = ",
            now!(),
            " + $3, is_due = false FROM free WHERE id = free RETURNING *
            )
            SELECT ",
            info!(),
            ", owner, taken + 1, submitted[1], is_running AND turns = cancelled_turn, ",
            unsynced!(),
            " FROM claimed"
        );
        let token = new_token();
        let values = params![owner.map(owner_key), token.to_string(), signed(millis(time))];
        let rows = self.written(claim, values)?;
        let Some(row) = rows.first() else { return Ok(None) };
        let owner = owner_of(row.get(11)).map_err(|error| self.database.frozen(&error))?;
        let info = self.info_of(row, &owner)?;
        let is_running: bool = row.get(8);
        Ok(Some(ClaimedSession {
            lease: SessionLease { session: info.id.clone(), token },
            info,
            submitted: (!is_running)
                .then(|| SubmittedMessage { number: unsigned(row, 12), text: text(row, 13) }),
            is_cancelled: row.get(14),
        }))
    }

    pub(super) fn cancel_work(
        &self,
        owner: &SessionOwner,
        id: &str,
    ) -> Result<bool, SessionStoreError> {
        // Synced: a person does not cancel twice.
        let cancel = "WITH found AS (
                SELECT id AS found, is_running OR submitted <> '{}' AS has_work
                FROM toolcrib.sessions WHERE id = $1 AND owner = $2 FOR UPDATE
            ), cancelled AS (
                UPDATE toolcrib.sessions SET is_due = is_due OR is_running,
                    cancelled_turn = CASE WHEN is_running THEN turns ELSE cancelled_turn END,
                    taken = taken + cardinality(submitted), submitted = '{}'
                FROM found WHERE id = found
            )
            SELECT has_work FROM found";
        let rows = self.written(cancel, params![id.to_owned(), owner_key(owner)])?;
        let found = rows.first().map(|row| row.get(0));
        found.ok_or_else(|| SessionStoreError::Unknown { session: id.into() })
    }
}
