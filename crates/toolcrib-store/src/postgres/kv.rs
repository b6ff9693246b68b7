//! Keys and values, and limits.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_core::{
    __internal::millis, KvArea, KvError, KvLimits, KvStore, KvWrite, LimitStore, SessionStoreError,
    SharedLimit,
};

use super::{PostgresStore, params, signed, text, unsigned, unsynced};
use crate::session::owner_key;

impl PostgresStore {
    /// The column of an area, and its session, if it has one; `None` for a conversation that is not a
    /// session of the store.
    fn area_of(
        &self,
        area: &KvArea,
    ) -> Result<Option<(String, Option<String>)>, SessionStoreError> {
        Ok(match area {
            KvArea::Tool { tenant, tool } => {
                Some((json!(["tool", tenant, tool]).to_string(), None))
            }
            KvArea::Principal { owner } => {
                Some((json!(["principal", owner.tenant, owner.principal]).to_string(), None))
            }
            KvArea::Conversation { owner, conversation } => {
                let area = json!(["conversation", owner.tenant, owner.principal, conversation]);
                Some((area.to_string(), None))
            }
            KvArea::Session { owner, conversation } => {
                let id = "SELECT id FROM toolcrib.sessions
                    WHERE owner = $1 AND (convert_to(id, 'UTF8') = $2 OR convert_to(name, 'UTF8') = $2)";
                let conversation = conversation.as_bytes().to_vec();
                let rows = self.read(id, params![owner_key(owner), conversation])?;
                let id = rows.first().map(|row| row.get::<_, String>(0));
                id.map(|id| (json!(["session", id]).to_string(), Some(id)))
            }
            _ => return Err(self.damaged("an area of an unknown kind")),
        })
    }
}

impl KvStore for PostgresStore {
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError> {
        let Some((column, _)) = self.area_of(area)? else {
            return Ok(self.database.unsaved.lock().value(area, key));
        };
        let value = "SELECT value FROM toolcrib.kv
            WHERE area = $1 AND key = $2 AND expires_ms > toolcrib.now_ms()";
        let rows = self.read(value, params![column, key.as_bytes().to_vec()])?;
        Ok(rows.first().map(|row| text(row, 0)))
    }

    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError> {
        let Some((column, _)) = self.area_of(area)? else {
            return Ok(self.database.unsaved.lock().keys(area, prefix));
        };
        let keys = "SELECT key FROM toolcrib.kv WHERE area = $1 AND expires_ms > toolcrib.now_ms()
            AND substring(key FROM 1 FOR length($2::bytea)) = $2 ORDER BY key";
        let rows = self.read(keys, params![column, prefix.as_bytes().to_vec()])?;
        Ok(rows.iter().map(|row| text(row, 0)).collect())
    }

    fn put(&self, area: &KvArea, write: KvWrite<'_>) -> Result<(), KvError> {
        KvLimits::check(write.key, write.value)?;
        let Some((column, session)) = self.area_of(area)? else {
            return self.database.unsaved.lock().write(area, &write);
        };
        let KvWrite { key, value, expected, lives_for } = write;
        let put = "SELECT toolcrib.put($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let unsynced =
            concat!("SELECT toolcrib.put($1, $2, $3, $4, $5, $6, $7, $8, $9), ", unsynced!());
        let put = if is_own(area) { put } else { unsynced };
        let bytes = |text: &str| text.as_bytes().to_vec();
        let values = params![
            column,
            session,
            bytes(key),
            value.map(bytes),
            expected.is_some(),
            expected.flatten().map(bytes),
            signed(millis(lives_for.min(KvLimits::TIME))),
            signed(KvLimits::KEYS as u64),
            signed(KvLimits::BYTES as u64),
        ];
        let rows = self.written(put, values)?;
        match rows.first().and_then(|row| row.get::<_, Option<&str>>(0)) {
            Some("changed") => Err(KvError::Changed),
            Some(_) => Err(KvError::Full),
            None => Ok(()),
        }
    }
}

/// Whether an area is Toolcrib's own: a name that no tool can have. Its values were acknowledged, such as the
/// end of a session, a halt, or a login, and survive a crash of the server.
fn is_own(area: &KvArea) -> bool {
    matches!(area, KvArea::Tool { tool, .. } if tool.starts_with("toolcrib:"))
}

impl LimitStore for PostgresStore {
    fn take(
        &self,
        bucket: &str,
        count: NonZeroU32,
        limit: SharedLimit,
    ) -> Result<Option<Duration>, SessionStoreError> {
        // The time is rounded to milliseconds, which all callers see alike. A bucket that is empty has no
        // row in `taken`.
        let take = concat!(
            "WITH clock AS MATERIALIZED (SELECT toolcrib.now_ms() * 1000 AS now), taken AS (
                INSERT INTO toolcrib.limits AS l (name, full_at_us)
                SELECT $1, now + $2 FROM clock
                ON CONFLICT (name) DO UPDATE
                    SET full_at_us = greatest(l.full_at_us, excluded.full_at_us - $2) + $2
                    WHERE l.full_at_us + $2 - (excluded.full_at_us - $2) <= $3
                RETURNING 1
            )
            SELECT (SELECT count(*) FROM taken),
                coalesce((SELECT full_at_us + $2 - now - $3 FROM toolcrib.limits, clock
                    WHERE name = $1), 0), ",
            unsynced!()
        );
        let (all, period) = limit.micros_of(count);
        let rows = self.written(take, params![bucket.as_bytes().to_vec(), all, period])?;
        let Some(row) = rows.first() else { return Err(self.damaged("a limit without a row")) };
        Ok(match unsigned(row, 0) {
            // The other row may be newer than what this statement reads of it.
            0 => Some(Duration::from_micros(unsigned(row, 1).max(1_000))),
            _ => None,
        })
    }
}
