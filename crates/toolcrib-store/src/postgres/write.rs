//! Writes the records of a session: one statement, whatever they are.

use std::{collections::BTreeMap, sync::Arc};

use toolcrib_core::{
    Digest, Message, SessionLease, SessionRecord, SessionStore as _, SessionStoreError, UsageEntry,
};

use super::{
    Param, PostgresStore, now, params,
    record::freeze_record,
    search::words_of,
    signed, unsynced,
    usage::{UsageRows, usage_rows},
};
use crate::{
    frozen::FrozenError,
    session::{BEGAN_TWICE, NOT_SUBMITTED, OUTSIDE_TURN, out_of_order},
};

/// Locks the row of the session, compares and numbers, and adds the records.
macro_rules! records {
    ($set:literal, $condition:literal) => {
        concat!(
            "WITH written AS (
                UPDATE toolcrib.sessions SET writes = writes + 1, used_ms = ",
            now!(),
            ", turns = turns + $4, records = records + $5, is_running = coalesce($6, is_running),
                title = CASE WHEN turns = 0 AND $4 > 0 THEN $7 ELSE title END,
                ended = coalesce($8, ended), bytes = bytes + $9, is_due = is_due AND $4 = 0",
            $set,
            " WHERE id = $1 AND lease = $2 AND writes >= $3
                    AND is_running = coalesce($10, is_running)",
            $condition,
            " RETURNING id, owner, writes, used_ms, turns - $4 AS turn, records - $5 AS position
            ), added AS (
                INSERT INTO toolcrib.records (session, position, turn, at_ms, kind, body, words)
                SELECT id, written.position + n, written.turn + later, used_ms, kind, body,
                    string_to_array(words, ' ')
                FROM written, unnest($11::int[], $12::smallint[], $13::text[], $14::text[])
                    WITH ORDINALITY AS r (later, kind, body, words, n)
            )"
        )
    };
}

/// The records alone, as most writes are.
const RECORDS: &str = concat!(records!("", ""), " SELECT writes, ", unsynced!(), " FROM written");
const SYNCED_RECORDS: &str = concat!(records!("", ""), " SELECT writes FROM written");

/// The records with parts of requests, with usage, and with a submitted message that is taken.
macro_rules! all {
    () => {
        concat!(
            records!(
                ", taken = coalesce($23::bigint, taken),
                    submitted = CASE WHEN $23::bigint IS NULL THEN submitted ELSE submitted[2:] END",
                " AND ($23::bigint IS NULL OR taken + 1 = $23::bigint AND submitted <> '{}')"
            ),
            ", parts AS (
                INSERT INTO toolcrib.parts (digest, body, used_ms)
                SELECT digest, body, used_ms FROM written, unnest($15::text[], $16::bytea[])
                    AS p (digest, body)
                ON CONFLICT (digest) DO UPDATE SET used_ms = excluded.used_ms
            ), sent AS (
                INSERT INTO toolcrib.sent (session, key, part)
                SELECT id, key, part FROM written, unnest($17::text[], $18::text[]) AS s (key, part)
                ON CONFLICT (session, key) DO UPDATE SET part = excluded.part
            ), spent AS (
                INSERT INTO toolcrib.usage (day, owner, session, kind, name, counts, costs)
                SELECT used_ms / 86400000, owner, id, kind, name, ",
            super::usage::columns!("$21", "$22"),
            " FROM written, unnest($19::text[], $20::bytea[]) WITH ORDINALITY AS u (kind, name, n)
                ",
            super::usage::add!(),
            ")"
        )
    };
}
const ALL: &str = concat!(all!(), " SELECT writes, ", unsynced!(), " FROM written");
const SYNCED_ALL: &str = concat!(all!(), " SELECT writes FROM written");

/// The records of one write, in the form of its statement.
#[derive(Default)]
struct Batch {
    /// Whether a turn must be running before.
    needs_running: Option<bool>,
    /// Whether a turn runs after.
    is_running: Option<bool>,
    /// The number of turns that begin.
    began: i32,
    title: Arc<str>,
    ended: Option<String>,
    bytes: usize,
    turns: Vec<i32>,
    kinds: Vec<i16>,
    bodies: Vec<String>,
    words: Vec<Option<String>>,
    sent: BTreeMap<Digest, Arc<str>>,
    /// The number of the submitted message that the turn runs.
    taken: Option<i64>,
    spent: Vec<UsageEntry>,
    /// Whether the write must survive a crash of the server.
    is_synced: bool,
}

impl Batch {
    fn add(&mut self, record: &SessionRecord) -> Result<Result<(), &'static str>, FrozenError> {
        if let SessionRecord::Spent(entries) = record {
            self.spent.extend_from_slice(entries);
            return Ok(Ok(()));
        }
        if let SessionRecord::Taken(number) = record {
            self.taken = Some(signed(*number));
            return Ok(Ok(()));
        }
        let begins = matches!(record, SessionRecord::TurnBegan { .. });
        self.needs_running.get_or_insert(!begins);
        match self.is_running {
            Some(true) if begins => return Ok(Err(BEGAN_TWICE)),
            Some(false) if !begins => return Ok(Err(OUTSIDE_TURN)),
            _ => {}
        }
        if let SessionRecord::Sent(part) = record {
            self.bytes += part.json.len();
            self.sent.insert(part.key, Arc::clone(&part.json));
            return Ok(Ok(()));
        }
        match record {
            SessionRecord::TurnBegan { title, .. } => {
                if self.began == 0 {
                    self.title = Arc::clone(title);
                }
                self.began += 1;
                self.is_running = Some(true);
            }
            SessionRecord::TurnEnded { stopped, error, .. } => {
                self.is_running = Some(false);
                self.ended = Some(serde_json::to_string(&(stopped, error))?);
            }
            SessionRecord::Intent(intent) => self.is_synced |= intent.is_unrepeatable(),
            _ => {}
        }
        let Some((kind, body)) = freeze_record(record)? else {
            return Ok(Err("a record of an unknown kind"));
        };
        self.bytes += body.len();
        self.turns.push(self.began);
        self.kinds.push(kind);
        self.bodies.push(body);
        self.words.push(match record {
            SessionRecord::Message(
                Message::User { text, .. } | Message::Assistant { text, .. },
            ) => words_of(text),
            _ => None,
        });
        Ok(Ok(()))
    }

    fn statement(
        self,
        lease: &SessionLease,
        seen: u64,
    ) -> Result<(&'static str, Vec<Param>), FrozenError> {
        let mut values = params![
            lease.session.to_string(),
            lease.token.to_string(),
            signed(seen),
            self.began,
            signed(self.bodies.len() as u64),
            self.is_running,
            self.title.as_bytes().to_vec(),
            self.ended,
            signed(self.bytes as u64),
            self.needs_running,
            self.turns,
            self.kinds,
            self.bodies,
            self.words,
        ];
        let has_more = self.taken.is_some() || !(self.sent.is_empty() && self.spent.is_empty());
        if has_more {
            let keys: Vec<_> = self.sent.keys().map(ToString::to_string).collect();
            let digests: Vec<_> =
                self.sent.values().map(|json| Digest::of(&**json).to_string()).collect();
            let UsageRows { kinds, names, counts, costs, shared } = usage_rows(&self.spent)?;
            let mut parts: BTreeMap<String, Vec<u8>> = shared;
            let sent = self.sent.values().map(|json| json.as_bytes().to_vec());
            parts.extend(digests.iter().cloned().zip(sent));
            let (texts, bodies): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            values.extend(params![texts, bodies, keys, digests, kinds, names, counts, costs]);
            values.extend(params![self.taken]);
        }
        let sql = match (has_more, self.is_synced) {
            (false, false) => RECORDS,
            (false, true) => SYNCED_RECORDS,
            (true, false) => ALL,
            (true, true) => SYNCED_ALL,
        };
        Ok((sql, values))
    }
}

impl PostgresStore {
    /// Writes records, and returns the number of the write.
    pub(super) fn write_records(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError> {
        let mut batch = Batch::default();
        for record in records {
            let added = batch.add(record).map_err(|error| self.database.frozen(&error))?;
            added.map_err(|what| out_of_order(&lease.session, what))?;
        }
        if batch.is_synced {
            self.check_durable()?;
        }
        let needs_running = batch.needs_running;
        let statement = batch.statement(lease, seen);
        let (sql, values) = statement.map_err(|error| self.database.frozen(&error))?;
        match self.written(sql, values)?.first() {
            Some(row) => Ok(super::unsigned(row, 0)),
            None => Err(self.refusal(lease, seen, needs_running)?),
        }
    }

    /// Why a write has found no row.
    fn refusal(
        &self,
        lease: &SessionLease,
        seen: u64,
        needs_running: Option<bool>,
    ) -> Result<SessionStoreError, SessionStoreError> {
        let state = "SELECT writes, is_running FROM toolcrib.sessions WHERE id = $1 AND lease = $2";
        let (id, token) = (lease.session.to_string(), lease.token.to_string());
        let rows = self.read(state, params![id, token])?;
        let session = Arc::clone(&lease.session);
        Ok(match rows.first() {
            None => SessionStoreError::LeaseLost { session },
            Some(row) if super::unsigned(row, 0) < seen => {
                SessionStoreError::WritesLost { session }
            }
            Some(_) if needs_running == Some(true) => out_of_order(&session, OUTSIDE_TURN),
            Some(row) if !row.get::<_, bool>(1) => out_of_order(&session, NOT_SUBMITTED),
            Some(_) => out_of_order(&session, BEGAN_TWICE),
        })
    }
}
