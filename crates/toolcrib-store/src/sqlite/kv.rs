//! Keys and values.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, Transaction, params};
use serde_json::json;
use toolcrib_core::{
    __internal::millis, KvArea, KvError, KvLimits, KvStore, KvWrite, SessionStoreError,
};

use super::{Failure, IN_MEMORY, SqliteStore, unsigned::UnsignedInt, write::Durability};
use crate::session::{now_ms, owner_key};

/// The column of an area, and its session, if it has one.
type Area = (String, Option<Arc<str>>);

/// `None` for a conversation that is not a session of the store, and in memory for areas that belong to
/// no session: there their number needs a limit.
fn area_of(
    store: &SqliteStore,
    transaction: &Transaction<'_>,
    area: &KvArea,
) -> Result<Option<Area>, Failure> {
    Ok(match area {
        KvArea::Tool { .. } | KvArea::Principal { .. } | KvArea::Conversation { .. }
            if store.path().as_os_str() == IN_MEMORY =>
        {
            None
        }
        KvArea::Tool { tenant, tool } => Some((json!(["tool", tenant, tool]).to_string(), None)),
        KvArea::Principal { owner } => {
            Some((json!(["principal", owner.tenant, owner.principal]).to_string(), None))
        }
        KvArea::Conversation { owner, conversation } => {
            let area = json!(["conversation", owner.tenant, owner.principal, conversation]);
            Some((area.to_string(), None))
        }
        KvArea::Session { owner, conversation } => {
            let id = "SELECT id FROM sessions WHERE owner = ?1 AND (id = ?2 OR name = ?2)";
            let row = params![owner_key(owner), conversation];
            let id: Option<Arc<str>> =
                transaction.query_row(id, row, |row| row.get(0)).optional()?;
            id.map(|id| (json!(["session", id]).to_string(), Some(id)))
        }
        _ => return Err(Failure::Content("an area of an unknown kind".to_owned())),
    })
}

fn present(
    transaction: &Transaction<'_>,
    area: &str,
    key: &str,
) -> Result<Option<Arc<str>>, Failure> {
    let value = "SELECT value FROM kv WHERE area = ?1 AND key = ?2 AND expires_ms > ?3";
    let row = params![area, key, UnsignedInt(now_ms())];
    Ok(transaction.query_row(value, row, |row| row.get(0)).optional()?)
}

fn write(
    transaction: &Transaction<'_>,
    (area, session): &Area,
    write: &KvWrite<'_>,
) -> Result<Result<(), KvError>, Failure> {
    let KvWrite { key, value, expected, lives_for } = *write;
    let now = now_ms();
    if let Some(expected) = expected
        && present(transaction, area, key)?.as_deref() != expected
    {
        return Ok(Err(KvError::Changed));
    }
    let expired = "DELETE FROM kv WHERE area = ?1 AND (key = ?2 OR expires_ms <= ?3)";
    let Some(value) = value else {
        transaction.execute(expired, params![area, key, UnsignedInt(now)])?;
        return Ok(Ok(()));
    };
    // In bytes, without the key that is replaced.
    let used = "SELECT count(*), coalesce(sum(octet_length(key) + octet_length(value)), 0) FROM kv
        WHERE area = ?1 AND key <> ?2 AND expires_ms > ?3";
    let row = params![area, key, UnsignedInt(now)];
    let (keys, bytes) = transaction.query_row(used, row, |row| {
        Ok((row.get::<_, UnsignedInt>(0)?.0, row.get::<_, UnsignedInt>(1)?.0))
    })?;
    let size = (key.len() + value.len()) as u64;
    if keys >= KvLimits::KEYS as u64 || bytes + size > KvLimits::BYTES as u64 {
        return Ok(Err(KvError::Full));
    }
    transaction.execute(expired, params![area, key, UnsignedInt(now)])?;
    let expires = now.saturating_add(millis(lives_for.min(KvLimits::TIME)));
    transaction.execute(
        "INSERT INTO kv (area, key, session, value, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![area, key, session, value, UnsignedInt(expires)],
    )?;
    Ok(Ok(()))
}

impl KvStore for SqliteStore {
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError> {
        let found = self.reading(|transaction| {
            let Some((column, _)) = area_of(self, transaction, area)? else { return Ok(None) };
            Ok(Some(present(transaction, &column, key)?))
        })?;
        Ok(found.unwrap_or_else(|| self.0.unsaved.lock().value(area, key)))
    }

    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError> {
        let found = self.reading(|transaction| {
            let Some((column, _)) = area_of(self, transaction, area)? else { return Ok(None) };
            let keys = "SELECT key FROM kv WHERE area = ?1 AND expires_ms > ?2
                AND substr(key, 1, length(?3)) = ?3 ORDER BY key";
            let mut statement = transaction.prepare_cached(keys)?;
            let row = params![column, UnsignedInt(now_ms()), prefix];
            let keys = statement.query_map(row, |row| row.get(0))?;
            Ok(Some(keys.collect::<Result<_, _>>()?))
        })?;
        Ok(found.unwrap_or_else(|| self.0.unsaved.lock().keys(area, prefix)))
    }

    fn put(&self, area: &KvArea, change: KvWrite<'_>) -> Result<(), KvError> {
        KvLimits::check(change.key, change.value)?;
        let written: Result<_, SessionStoreError> =
            self.writing(Durability::Process, |transaction| {
                let Some(found) = area_of(self, transaction, area)? else { return Ok(None) };
                Ok(Some(write(transaction, &found, &change)?))
            });
        written?.unwrap_or_else(|| self.0.unsaved.lock().write(area, &change))
    }
}
