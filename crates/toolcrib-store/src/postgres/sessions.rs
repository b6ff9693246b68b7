//! Sessions: their rows, leases and retention.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{
    __internal::millis, ClaimedSession, FoundMessage, LeaseTimes, NewSession, SentPart,
    SessionHistory, SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionRetention,
    SessionSearch, SessionStore, SessionStoreError, StoreId, StoredRun, StoredSession, TracedEvent,
};

use super::{PostgresStore, now, params, signed, unsigned, unsynced};
use crate::session::{
    EMPTY_DIES_AFTER, ID_ATTEMPTS, KEPT_DAYS, check_name, new_id, new_token, owner_key,
};

/// Removes what belongs to sessions of `gone`.
macro_rules! with_all_of {
    ($gone:expr) => {
        concat!(
            "WITH gone AS (",
            $gone,
            "), records AS (
                DELETE FROM toolcrib.records WHERE session IN (SELECT id FROM gone)
            ), sent AS (
                DELETE FROM toolcrib.sent WHERE session IN (SELECT id FROM gone)
            ), approvals AS (
                DELETE FROM toolcrib.approvals WHERE session IN (SELECT id FROM gone)
            ), kv AS (
                DELETE FROM toolcrib.kv WHERE session IN (SELECT id FROM gone)
            )
            SELECT id, ",
            unsynced!(),
            " FROM gone"
        )
    };
}

/// The time for which a shared text stays that no row refers to: a write that is about to refer to it has
/// noted its use.
const KEPT_PARTS: Duration = Duration::from_hours(24);

impl PostgresStore {
    /// Why a session is not free: it is unknown or leased.
    fn not_free(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        let lease = "SELECT lease_until_ms FROM toolcrib.sessions WHERE id = $1 AND owner = $2";
        let rows = self.read(lease, params![id.to_owned(), owner_key(owner)])?;
        match rows.first() {
            None => Err(SessionStoreError::Unknown { session: id.into() }),
            Some(row) => {
                let until_ms = unsigned(row, 0);
                Err(SessionStoreError::InUse { session: id.into(), until_ms })
            }
        }
    }
}

impl SessionStore for PostgresStore {
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError> {
        check_name(new)?;
        // A taken id has no row, and neither has a taken name.
        let insert = concat!(
            "WITH new AS (
                INSERT INTO toolcrib.sessions (id, owner, name, personality, created_ms, used_ms)
                SELECT $1, $2, $3, $4, now, now FROM (SELECT ",
            now!(),
            " AS now) AS clock ON CONFLICT DO NOTHING RETURNING created_ms
            )
            SELECT created_ms, ",
            unsynced!(),
            " FROM new"
        );
        let is_taken = "SELECT 1 FROM toolcrib.sessions WHERE owner = $1 AND name = $2";
        for _ in 0..ID_ATTEMPTS {
            let (id, owner) = (new_id(), owner_key(&new.owner));
            let name = new.name.as_deref().map(str::to_owned);
            let personality = new.personality.as_bytes().to_vec();
            let values = params![id.to_string(), owner.clone(), name.clone(), personality];
            if let Some(row) = self.written(insert, values)?.first() {
                return Ok(SessionInfo::new(id, new, unsigned(row, 0)));
            }
            if let Some(name) = name
                && !self.read(is_taken, params![owner, name.clone()])?.is_empty()
            {
                return Err(SessionStoreError::NameTaken { name: name.into() });
            }
        }
        Err(self.damaged("no unused id was found"))
    }

    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError> {
        self.info(owner, session)
    }

    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        self.listed(owner, limit)
    }

    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError> {
        self.session(owner, id)
    }

    fn history(&self, owner: &SessionOwner, id: &str) -> Result<SessionHistory, SessionStoreError> {
        self.history_of(owner, id)
    }

    fn runs(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        self.runs_of(owner, limit)
    }

    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        self.events_of(owner, id, turn)
    }

    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError> {
        let sent = "SELECT key, body FROM toolcrib.sessions
            LEFT JOIN toolcrib.sent ON session = id LEFT JOIN toolcrib.parts ON digest = part
            WHERE id = $1 AND owner = $2";
        let rows = self.read(sent, params![id.to_owned(), owner_key(owner)])?;
        if rows.is_empty() {
            return Err(SessionStoreError::Unknown { session: id.into() });
        }
        let parts = rows.iter().filter_map(|row| {
            let (key, body): (Option<&str>, Option<&[u8]>) = (row.get(0), row.get(1));
            let (key, body) = key.zip(body)?;
            let key = key.parse().map_err(|_| self.damaged("a key that is not a digest"));
            Some(key.map(|key| SentPart { key, json: String::from_utf8_lossy(body).into() }))
        });
        parts.collect()
    }

    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        self.found(owner, search)
    }

    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError> {
        let take = concat!(
            "WITH taken AS (
                UPDATE toolcrib.sessions SET lease = $3, lease_until_ms = ",
            now!(),
            " + $4 WHERE id = $1 AND owner = $2 AND (lease IS NULL OR lease_until_ms <= ",
            now!(),
            ") RETURNING id)
            SELECT id, ",
            unsynced!(),
            " FROM taken"
        );
        let token = new_token();
        let (id_text, owner_text) = (id.to_owned(), owner_key(owner));
        let values = params![id_text, owner_text, token.to_string(), signed(millis(time))];
        match self.written(take, values)?.is_empty() {
            true => self.not_free(owner, id).map(|()| SessionLease { session: id.into(), token }),
            false => Ok(SessionLease { session: id.into(), token }),
        }
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<bool, SessionStoreError> {
        let renew = concat!(
            "WITH renewed AS (
                UPDATE toolcrib.sessions SET lease_until_ms = ",
            now!(),
            " + $3 WHERE id = $1 AND lease = $2
                RETURNING is_running AND turns = cancelled_turn AS is_cancelled)
            SELECT is_cancelled, ",
            unsynced!(),
            " FROM renewed"
        );
        let (id, token) = (lease.session.to_string(), lease.token.to_string());
        match self.written(renew, params![id, token, signed(millis(time))])?.first() {
            None => Err(SessionStoreError::LeaseLost { session: Arc::clone(&lease.session) }),
            Some(row) => Ok(row.get(0)),
        }
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        let release = concat!(
            "WITH released AS (
                UPDATE toolcrib.sessions SET lease = NULL, lease_until_ms = 0
                WHERE id = $1 AND lease = $2 RETURNING id)
            SELECT id, ",
            unsynced!(),
            " FROM released"
        );
        let (id, token) = (lease.session.to_string(), lease.token.to_string());
        self.written(release, params![id, token]).map(drop)
    }

    fn lease_times(&self) -> LeaseTimes {
        self.lease_times
    }

    fn submit(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError> {
        self.submit_message(owner, id, message)
    }

    fn claim(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError> {
        self.claim_session(owner, time)
    }

    fn cancel(&self, owner: &SessionOwner, id: &str) -> Result<bool, SessionStoreError> {
        self.cancel_work(owner, id)
    }

    fn write(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError> {
        self.write_records(lease, seen, records)
    }

    fn check_durable(&self) -> Result<(), SessionStoreError> {
        match self.may_lose && !self.accepts_loss {
            true => Err(SessionStoreError::NotDurable { store: self.database.shown.clone() }),
            false => Ok(()),
        }
    }

    fn usage_store_id(&self) -> Option<StoreId> {
        Some(self.database.id)
    }

    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        let remove = with_all_of!(concat!(
            "DELETE FROM toolcrib.sessions WHERE id = $1 AND owner = $2
                AND (lease IS NULL OR lease_until_ms <= ",
            now!(),
            ") RETURNING id"
        ));
        match self.written(remove, params![id.to_owned(), owner_key(owner)])?.is_empty() {
            true => self.not_free(owner, id),
            false => Ok(()),
        }
    }

    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError> {
        // The running total counts from the last used session to the first.
        let sessions = with_all_of!(concat!(
            "DELETE FROM toolcrib.sessions WHERE (lease IS NULL OR lease_until_ms <= ",
            now!(),
            ") AND (used_ms < ",
            now!(),
            " - $1 OR used_ms < ",
            now!(),
            " - $2 AND turns = 0 AND name IS NULL OR id IN (SELECT id FROM
                (SELECT id, sum(bytes) OVER (ORDER BY used_ms DESC, id DESC) AS total
                    FROM toolcrib.sessions) AS totals WHERE total > $3::bigint))
                AND submitted = '{}' RETURNING id"
        ));
        let others = concat!(
            "WITH kv AS (DELETE FROM toolcrib.kv WHERE expires_ms <= toolcrib.now_ms()),
            limits AS (
                DELETE FROM toolcrib.limits WHERE full_at_us < toolcrib.now_ms() * 1000 - 60000000
            ), usage AS (
                DELETE FROM toolcrib.usage WHERE day < toolcrib.now_ms() / 86400000 - $1
            ), parts AS (
                DELETE FROM toolcrib.parts WHERE used_ms < toolcrib.now_ms() - $2
                    AND NOT EXISTS (SELECT FROM toolcrib.sent WHERE part = digest)
                    AND NOT EXISTS (SELECT FROM toolcrib.usage
                        WHERE kind = 'offered' AND name = convert_to(digest, 'UTF8'))
            ) SELECT ",
            unsynced!()
        );
        let ages = [retention.keep_for, EMPTY_DIES_AFTER].map(|time| signed(millis(time)));
        let values = params![ages[0], ages[1], signed(retention.max_bytes)];
        let removed = self.written(sessions, values)?.len();
        self.written(others, params![signed(KEPT_DAYS), signed(millis(KEPT_PARTS))])?;
        Ok(removed)
    }
}
