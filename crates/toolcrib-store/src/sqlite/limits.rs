//! Limits: a row per bucket, with the time at which it is full.

use std::{
    num::NonZeroU32,
    time::{Duration, SystemTime},
};

use rusqlite::{OptionalExtension as _, Transaction, params};
use toolcrib_core::{LimitStore, SessionStoreError, SharedLimit};

use super::{SqliteStore, write::Durability};

impl LimitStore for SqliteStore {
    fn take(
        &self,
        bucket: &str,
        count: NonZeroU32,
        limit: SharedLimit,
    ) -> Result<Option<Duration>, SessionStoreError> {
        let (all, period) = limit.micros_of(count);
        // Nothing is written when the bucket is empty.
        let take = "INSERT INTO limits (name, full_at_us) VALUES (?1, ?2 + ?3)
            ON CONFLICT (name) DO UPDATE SET full_at_us = max(full_at_us, ?2) + ?3
            WHERE max(full_at_us, ?2) + ?3 - ?2 <= ?4 RETURNING 1";
        let wait = "SELECT max(full_at_us, ?2) + ?3 - ?2 - ?4 FROM limits WHERE name = ?1";
        self.writing(Durability::Process, |transaction| {
            let row = params![bucket, now_us(), all, period];
            let taken = transaction.prepare_cached(take)?.query_row(row, |_| Ok(())).optional()?;
            if taken.is_some() {
                return Ok(None);
            }
            let wait: i64 = transaction.query_row(wait, row, |row| row.get(0))?;
            Ok(Some(Duration::from_micros(u64::try_from(wait).unwrap_or_default())))
        })
    }
}

/// Removes the buckets that are full.
pub(super) fn prune(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM limits WHERE full_at_us <= ?1", [now_us()]).map(drop)
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX / 4)
}
