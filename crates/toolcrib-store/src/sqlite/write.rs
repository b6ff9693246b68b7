//! Writes the records of a session.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, Transaction, params};
use toolcrib_core::{
    CallIntent, Digest, Message, SentPart, SessionLease, SessionRecord, SessionStoreError, SkillId,
    TracedEvent, Usage, UsageEntry,
};

use super::{Failure, lost, unsigned::UnsignedInt, usage, work::is_running};
use crate::{
    frozen::{FrozenError, FrozenJson, freeze, thaw},
    session::{BEGAN_TWICE, NOT_SUBMITTED, OUTSIDE_TURN, now_ms, out_of_order},
};

/// The failure that a write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// The death of the process.
    Process,
    /// The loss of power too: one `fsync`.
    Power,
}

impl Durability {
    /// The need of a write. A repeated call may do harm, so its first intent must not be lost.
    pub(super) fn of(records: &[SessionRecord]) -> Self {
        let is_unrepeatable = |record: &SessionRecord| matches!(record, SessionRecord::Intent(intent) if intent.is_unrepeatable());
        if records.iter().any(is_unrepeatable) { Self::Power } else { Self::Process }
    }

    /// The value of `PRAGMA synchronous`.
    pub(super) fn pragma(self) -> &'static str {
        match self {
            Self::Process => "NORMAL",
            Self::Power => "FULL",
        }
    }
}

/// A text that several rows share.
#[derive(Clone, Copy)]
pub(super) enum Shared {
    /// A part of a request.
    Part,
    /// The sizes of the definitions of a menu.
    Definitions,
}

/// The id of a shared text, which is stored once.
pub(super) fn shared(
    transaction: &Transaction<'_>,
    kind: Shared,
    text: &str,
) -> rusqlite::Result<i64> {
    let (find, insert) = match kind {
        Shared::Part => (
            "SELECT id FROM parts WHERE digest = ?1",
            "INSERT INTO parts (digest, json) VALUES (?1, ?2) RETURNING id",
        ),
        Shared::Definitions => (
            "SELECT id FROM definitions WHERE digest = ?1",
            "INSERT INTO definitions (digest, sizes) VALUES (?1, ?2) RETURNING id",
        ),
    };
    let digest = Digest::of(text).to_string();
    let found = transaction.prepare_cached(find)?.query_row([&digest], |row| row.get(0));
    match found.optional()? {
        Some(id) => Ok(id),
        None => {
            transaction.prepare_cached(insert)?.query_row(params![digest, text], |row| row.get(0))
        }
    }
}

/// Writes records in order, unless another lease has replaced this one, or the store has fewer writes
/// than the writer has seen. Returns the number of the write.
pub(super) fn records(
    transaction: &Transaction<'_>,
    lease: &SessionLease,
    seen: u64,
    records: &[SessionRecord],
) -> Result<u64, Failure> {
    let session = &lease.session;
    let last = concat!(
        "SELECT rowid, turns, calls, ",
        is_running!(),
        ", writes FROM sessions WHERE id = ?1 AND lease = ?2"
    );
    let last = transaction
        .prepare_cached(last)?
        .query_row([session, &lease.token], |row| {
            let writes = row.get::<_, UnsignedInt>(4)?.0;
            Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?, writes))
        })
        .optional()?;
    let (row, turn, calls, is_running, writes) = last.ok_or_else(|| lost(lease))?;
    if writes < seen {
        return Err(SessionStoreError::WritesLost { session: Arc::clone(session) }.into());
    }
    let mut writer = Writer { transaction, session, turn, calls, is_running, bytes: 0 };
    records.iter().try_for_each(|record| writer.write(record))?;
    let Writer { turn, calls, bytes, .. } = writer;
    let used = "UPDATE sessions SET used_ms = ?2, turns = ?3, calls = ?4, bytes = bytes + ?5,
        writes = ?6 WHERE rowid = ?1";
    let number = writes + 1;
    let row =
        params![row, UnsignedInt(now_ms()), turn, calls, UnsignedInt(bytes), UnsignedInt(number)];
    transaction.prepare_cached(used)?.execute(row)?;
    Ok(number)
}

struct Writer<'a> {
    transaction: &'a Transaction<'a>,
    session: &'a Arc<str>,
    /// The number of the last turn; 0 before the first.
    turn: u32,
    /// The number of the session's calls.
    calls: u32,
    is_running: bool,
    /// The size of the written contents.
    bytes: u64,
}

impl Writer<'_> {
    fn write(&mut self, record: &SessionRecord) -> Result<(), Failure> {
        if let SessionRecord::TurnBegan { model, title, skills } = record {
            return self.turn_began(model, title, skills);
        }
        if let SessionRecord::Spent(entries) = record {
            return self.spent(entries);
        }
        if let SessionRecord::Taken(number) = record {
            return self.taken(*number);
        }
        if !self.is_running {
            return Err(out_of_order(self.session, OUTSIDE_TURN).into());
        }
        match record {
            SessionRecord::Message(message) => self.message(message),
            SessionRecord::Intent(intent) => self.intent(intent),
            SessionRecord::Outcome { call_id, outcome, result } => {
                let result = result.as_ref().map(freeze).transpose()?;
                let update = "UPDATE calls SET outcome = coalesce(outcome, ?3),
                    result = coalesce(result, ?4) WHERE session = ?1 AND call_id = ?2
                    AND (outcome IS NULL OR result IS NULL AND ?4 IS NOT NULL)";
                self.transaction.prepare_cached(update)?.execute(params![
                    self.session,
                    call_id,
                    outcome.as_str(),
                    result
                ])?;
                Ok(())
            }
            SessionRecord::Event(event) => self.event(event),
            SessionRecord::Sent(part) => self.sent(part),
            SessionRecord::LeftOut(messages) => self.left_out(messages),
            SessionRecord::Replaced { position, message } => self.replaced(*position, message),
            SessionRecord::Used(usage) => self.used(usage),
            SessionRecord::TurnEnded { stopped, error, usage } => {
                self.turn_ended(stopped, error.as_deref(), usage)
            }
            _ => Err(out_of_order(self.session, "a record of an unknown kind").into()),
        }
    }

    fn turn_began(&mut self, model: &str, title: &str, skills: &[SkillId]) -> Result<(), Failure> {
        if self.is_running {
            return Err(out_of_order(self.session, BEGAN_TWICE).into());
        }
        if self.turn == 0 {
            let update = "UPDATE sessions SET title = ?2 WHERE id = ?1";
            self.transaction.execute(update, params![self.session, title])?;
        }
        let update = "UPDATE sessions SET is_due = 0 WHERE id = ?1 AND is_due = 1";
        self.transaction.execute(update, [self.session])?;
        self.turn += 1;
        self.is_running = true;
        self.transaction.execute(
            "INSERT INTO turns (session, number, model, title, began_ms, cost_usd, skills)
                VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
            params![
                self.session,
                self.turn,
                model,
                title,
                UnsignedInt(now_ms()),
                serde_json::to_string(skills).map_err(FrozenError::from)?
            ],
        )?;
        Ok(())
    }

    fn taken(&self, number: u64) -> Result<(), Failure> {
        let take = "UPDATE sessions SET taken = ?2, submitted = json_remove(submitted, '$[0]')
            WHERE id = ?1 AND taken + 1 = ?2 AND submitted <> '[]'";
        match self.transaction.execute(take, params![self.session, UnsignedInt(number)])? {
            0 => Err(out_of_order(self.session, NOT_SUBMITTED).into()),
            _ => Ok(()),
        }
    }

    fn message(&mut self, message: &Message) -> Result<(), Failure> {
        let body = freeze(message)?;
        self.bytes += body.len() as u64;
        self.transaction
            .prepare_cached(
                "INSERT INTO messages (session, position, turn, body) SELECT ?1,
                (SELECT coalesce(max(position), 0) + 1 FROM messages WHERE session = ?1), ?2, ?3",
            )?
            .execute(params![self.session, self.turn, body])?;
        Ok(())
    }

    fn event(&mut self, event: &TracedEvent) -> Result<(), Failure> {
        let TracedEvent { name, iteration, at_ms, fields } = event;
        let fields = serde_json::to_string(fields).map_err(FrozenError::from)?;
        self.bytes += fields.len() as u64;
        self.transaction
            .prepare_cached(
                "INSERT INTO events (session, turn, position, iteration, at_ms, name, fields)
                SELECT ?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM events
                WHERE session = ?1 AND turn = ?2), ?3, ?4, ?5, ?6",
            )?
            .execute(params![
                self.session,
                self.turn,
                iteration,
                UnsignedInt(*at_ms),
                name,
                fields
            ])?;
        Ok(())
    }

    /// Notes the ids of the calls, and whether a message has content of an unknown author, besides: a run
    /// needs no more of these messages.
    fn left_out(&mut self, messages: &[usize]) -> Result<(), Failure> {
        let present = "SELECT position FROM messages WHERE session = ?1 AND left_out = 0
            ORDER BY position";
        let mut present = self.transaction.prepare_cached(present)?;
        let present = present.query_map([self.session], |row| row.get::<_, i64>(0))?;
        let present = present.collect::<Result<Vec<_>, _>>()?;
        let update = "UPDATE messages SET left_out = 1 WHERE session = ?1 AND position = ?2
            RETURNING body";
        let mut update = self.transaction.prepare_cached(update)?;
        let note = "INSERT INTO left_out_calls VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let mut note = self.transaction.prepare_cached(note)?;
        let mut is_untrusted = false;
        for position in messages.iter().filter_map(|message| present.get(*message)) {
            let body =
                update.query_row(params![self.session, position], |row| row.get::<_, String>(0))?;
            let message = thaw(&body)?;
            is_untrusted |= message.is_untrusted();
            for call in message.calls() {
                note.execute(params![self.session, call.id])?;
            }
        }
        if is_untrusted {
            let taint = "UPDATE sessions SET left_out_untrusted = 1 WHERE id = ?1";
            self.transaction.prepare_cached(taint)?.execute([self.session])?;
        }
        Ok(())
    }

    fn replaced(&mut self, position: usize, message: &Message) -> Result<(), Failure> {
        let update = "UPDATE messages SET body = ?3 WHERE session = ?1 AND position =
            (SELECT position FROM messages WHERE session = ?1 AND left_out = 0
                ORDER BY position LIMIT 1 OFFSET ?2)";
        let row = params![self.session, UnsignedInt(position as u64), freeze(message)?];
        self.transaction.prepare_cached(update)?.execute(row)?;
        Ok(())
    }

    fn sent(&mut self, part: &SentPart) -> Result<(), Failure> {
        // A part that replaces another is counted as far as it is longer.
        let key = part.key.to_string();
        let known = "SELECT octet_length(json) FROM sent JOIN parts ON id = part
            WHERE session = ?1 AND key = ?2";
        let mut known = self.transaction.prepare_cached(known)?;
        let known = known.query_row(params![self.session, key], |row| row.get(0)).optional()?;
        let known = usize::try_from(known.unwrap_or(0_i64)).unwrap_or_default();
        self.bytes += part.json.len().saturating_sub(known) as u64;
        let id = shared(self.transaction, Shared::Part, &part.json)?;
        self.transaction
            .prepare_cached(
                "INSERT INTO sent (session, key, part) VALUES (?1, ?2, ?3)
                ON CONFLICT (session, key) DO UPDATE SET part = excluded.part",
            )?
            .execute(params![self.session, key, id])?;
        Ok(())
    }

    fn intent(&mut self, intent: &CallIntent) -> Result<(), Failure> {
        let arguments = serde_json::to_string(&FrozenJson::from(&intent.arguments))
            .map_err(FrozenError::from)?;
        let again = "UPDATE calls SET attempts = attempts + 1,
            cut_off = cut_off + (outcome IS NULL), outcome = NULL, result = NULL, tool = ?3,
            arguments = ?4 WHERE session = ?1 AND call_id = ?2";
        let row = params![self.session, intent.call_id, intent.tool, arguments];
        if self.transaction.prepare_cached(again)?.execute(row)? > 0 {
            return Ok(());
        }
        self.bytes += arguments.len() as u64;
        self.transaction
            .prepare_cached(
                "INSERT INTO calls (session, call_id, position, turn, tool, arguments, read_only,
                idempotent, attempts, began_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9)",
            )?
            .execute(params![
                self.session,
                intent.call_id,
                self.calls,
                self.turn,
                intent.tool,
                arguments,
                intent.read_only,
                intent.idempotent,
                UnsignedInt(now_ms())
            ])?;
        self.calls += 1;
        Ok(())
    }

    fn spent(&mut self, entries: &[UsageEntry]) -> Result<(), Failure> {
        let owner = "SELECT owner FROM sessions WHERE id = ?1";
        let mut owner = self.transaction.prepare_cached(owner)?;
        let owner: String = owner.query_row([self.session], |row| row.get(0))?;
        usage::add_all(self.transaction, &owner, self.session, entries)
    }

    /// The cost is `NULL` once a part of it is unknown, and stays so.
    fn used(&mut self, usage: &Usage) -> Result<(), Failure> {
        self.transaction
            .prepare_cached(
                "UPDATE turns SET input_tokens = input_tokens + ?3,
                cached_input_tokens = cached_input_tokens + ?4,
                output_tokens = output_tokens + ?5, cost_usd = cost_usd + ?6,
                cache_write_tokens = cache_write_tokens + ?7
                WHERE session = ?1 AND number = ?2",
            )?
            .execute(params![
                self.session,
                self.turn,
                UnsignedInt(usage.input_tokens),
                UnsignedInt(usage.cached_input_tokens),
                UnsignedInt(usage.output_tokens),
                usage.cost_usd,
                UnsignedInt(usage.cache_write_tokens)
            ])?;
        Ok(())
    }

    fn turn_ended(
        &mut self,
        stopped: &str,
        error: Option<&str>,
        usage: &Usage,
    ) -> Result<(), Failure> {
        self.is_running = false;
        self.transaction.execute(
            "UPDATE turns SET ended_ms = ?3, stopped = ?4, error = ?5, input_tokens = ?6,
                cached_input_tokens = ?7, output_tokens = ?8, cost_usd = ?9,
                cache_write_tokens = ?10
                WHERE session = ?1 AND number = ?2",
            params![
                self.session,
                self.turn,
                UnsignedInt(now_ms()),
                stopped,
                error,
                UnsignedInt(usage.input_tokens),
                UnsignedInt(usage.cached_input_tokens),
                UnsignedInt(usage.output_tokens),
                usage.cost_usd,
                UnsignedInt(usage.cache_write_tokens)
            ],
        )?;
        // The history has them now.
        self.transaction.execute(
            "UPDATE calls SET result = NULL
                WHERE session = ?1 AND turn = ?2 AND result IS NOT NULL",
            params![self.session, self.turn],
        )?;
        Ok(())
    }
}
