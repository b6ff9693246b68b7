//! Reads sessions.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, Params, Row, Transaction, params};
use toolcrib_core::{
    CallOutcome, NewSession, SentPart, SessionHistory, SessionInfo, SessionOwner, StoredCall,
    StoredMessage, StoredRun, StoredSession, StoredTurn, TracedEvent, TurnState, Usage,
};

use super::{Failure, unknown, unsigned::UnsignedInt};
use crate::{
    frozen::{FrozenError, FrozenJson, thaw},
    session::owner_key,
};

/// The columns of [`to_info`].
macro_rules! info_of {
    ($condition:literal) => {
        concat!(
            "SELECT id, name, personality, created_ms, used_ms, sessions.turns, sessions.title, bytes,
                ended_ms, stopped, error, json_array_length(submitted)
                FROM sessions LEFT JOIN turns ON session = id AND number = sessions.turns ",
            $condition
        )
    };
}

/// The columns of [`to_turn`], and others after them.
macro_rules! turns_of {
    ($others:literal, $condition:literal) => {
        concat!(
            "SELECT number, model, began_ms, ended_ms, stopped, error, input_tokens,
                cached_input_tokens, output_tokens, cost_usd, turns.title, skills,
                cache_write_tokens",
            $others,
            " FROM turns ",
            $condition
        )
    };
}

/// The owner's session of an id or a name. An id has precedence; no name has the form of one.
pub(super) fn info(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    session: &str,
) -> Result<SessionInfo, Failure> {
    let found = info_of!("WHERE owner = ?1 AND (id = ?2 OR name = ?2)");
    let found = transaction
        .query_row(found, params![owner_key(owner), session], |row| to_info(row, owner))
        .optional()?;
    found.ok_or_else(|| unknown(session))
}

pub(super) fn list(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    limit: usize,
) -> Result<Vec<SessionInfo>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let listed = info_of!(
        "WHERE owner = ?1 AND (sessions.turns > 0 OR submitted <> '[]')
            ORDER BY used_ms DESC, id DESC LIMIT ?2"
    );
    all(transaction, listed, params![owner_key(owner), limit], |row| Ok(to_info(row, owner)?))
}

/// The columns of [`to_message`].
macro_rules! messages_of {
    ($condition:literal) => {
        concat!("SELECT turn, body, left_out FROM messages WHERE session = ?1 ", $condition)
    };
}

/// The columns of [`to_call`].
macro_rules! calls_of {
    ($condition:literal) => {
        concat!(
            "SELECT turn, call_id, tool, arguments, read_only, idempotent, attempts, began_ms,
                outcome, cut_off, result FROM calls WHERE session = ?1 ",
            $condition
        )
    };
}

pub(super) fn session(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
) -> Result<StoredSession, Failure> {
    let info = info(transaction, owner, id).and_then(|info| match *info.id == *id {
        true => Ok(info),
        false => Err(unknown(id)),
    })?;
    let turns = turns_of!("", "WHERE session = ?1 ORDER BY number");
    let (messages, calls) = (messages_of!("ORDER BY position"), calls_of!("ORDER BY position"));
    Ok(StoredSession {
        info,
        turns: all(transaction, turns, [id], to_turn)?,
        messages: all(transaction, messages, [id], to_message)?,
        calls: all(transaction, calls, [id], to_call)?,
    })
}

pub(super) fn history(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
) -> Result<SessionHistory, Failure> {
    let last = "SELECT turns, left_out_untrusted FROM sessions WHERE id = ?1 AND owner = ?2";
    let mut last = transaction.prepare_cached(last)?;
    let last = last.query_row(params![id, owner_key(owner)], |row| Ok((row.get(0)?, row.get(1)?)));
    let (number, left_out_untrusted): (u32, bool) = last.optional()?.ok_or_else(|| unknown(id))?;
    let turn = turns_of!("", "WHERE session = ?1 AND number = ?2");
    let last_turn = all(transaction, turn, params![id, number], to_turn)?.pop();
    let is_running = last_turn.as_ref().is_some_and(|turn| turn.state == TurnState::Running);
    // An index has the messages that are not left out.
    let (messages, calls) = match is_running {
        false => {
            let sent = messages_of!("AND left_out = 0 ORDER BY position");
            (all(transaction, sent, [id], to_message)?, Vec::new())
        }
        true => {
            let of_turn = params![id, number];
            let messages = messages_of!("AND (left_out = 0 OR turn = ?2) ORDER BY position");
            let calls = calls_of!("AND turn = ?2 ORDER BY position");
            (
                all(transaction, messages, of_turn, to_message)?,
                all(transaction, calls, of_turn, to_call)?,
            )
        }
    };
    let left_out = "SELECT call_id FROM left_out_calls WHERE session = ?1";
    let left_out_calls = all(transaction, left_out, [id], |row| Ok(row.get(0)?))?;
    Ok(SessionHistory { last_turn, messages, calls, left_out_calls, left_out_untrusted })
}

pub(super) fn runs(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    limit: usize,
) -> Result<Vec<StoredRun>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // The calls of the listed turns only are counted.
    let runs = concat!(
        "SELECT *, (SELECT count(*) FROM calls WHERE session = id AND turn = number) FROM (",
        turns_of!(
            ", id, name",
            "JOIN sessions ON id = session WHERE owner = ?1
                ORDER BY began_ms DESC, id DESC, number DESC LIMIT ?2"
        ),
        ") ORDER BY began_ms DESC, id DESC, number DESC"
    );
    all(transaction, runs, params![owner_key(owner), limit], |row| {
        let new = NewSession { owner: owner.clone(), name: row.get(14)?, personality: "".into() };
        let info = SessionInfo::new(row.get(13)?, &new, 0);
        Ok(StoredRun::new(&info, to_turn(row)?, row.get(15)?))
    })
}

pub(super) fn events(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
    turn: u32,
) -> Result<Vec<TracedEvent>, Failure> {
    check_owner(transaction, owner, id)?;
    let events = "SELECT name, iteration, at_ms, fields FROM events
        WHERE session = ?1 AND turn = ?2 ORDER BY position";
    all(transaction, events, params![id, turn], |row| {
        let fields: String = row.get(3)?;
        Ok(TracedEvent {
            name: row.get(0)?,
            iteration: row.get(1)?,
            at_ms: unsigned(row, 2)?,
            fields: serde_json::from_str(&fields).map_err(FrozenError::from)?,
        })
    })
}

pub(super) fn sent(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
) -> Result<Vec<SentPart>, Failure> {
    check_owner(transaction, owner, id)?;
    let sent = "SELECT key, json FROM sent JOIN parts ON id = part WHERE session = ?1";
    all(transaction, sent, [id], |row| {
        let key: String = row.get(0)?;
        let is_no_key = |_| Failure::Content(format!("`{}` is not a digest", key.escape_debug()));
        Ok(SentPart { key: key.parse().map_err(is_no_key)?, json: row.get(1)? })
    })
}

fn check_owner(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    id: &str,
) -> Result<(), Failure> {
    let is_theirs = "SELECT 1 FROM sessions WHERE id = ?1 AND owner = ?2";
    let is_theirs =
        transaction.query_row(is_theirs, params![id, owner_key(owner)], |_| Ok(())).optional()?;
    is_theirs.ok_or_else(|| unknown(id))
}

pub(super) fn all<T>(
    transaction: &Transaction<'_>,
    sql: &str,
    parameters: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(|UnsignedInt(number)| number)
}

fn optional(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<UnsignedInt>>(column)?.map(|UnsignedInt(number)| number))
}

fn to_info(row: &Row<'_>, owner: &SessionOwner) -> rusqlite::Result<SessionInfo> {
    let new = NewSession { owner: owner.clone(), name: row.get(1)?, personality: row.get(2)? };
    let mut info = SessionInfo::new(row.get(0)?, &new, unsigned(row, 3)?);
    info.used_ms = unsigned(row, 4)?;
    info.turns = row.get(5)?;
    info.title = row.get(6)?;
    info.bytes = unsigned(row, 7)?;
    info.submitted = row.get(11)?;
    if info.turns > 0 {
        info.last_turn = Some(state(optional(row, 8)?, row.get(9)?, row.get(10)?));
    }
    Ok(info)
}

fn state(ended_ms: Option<u64>, stopped: Option<Arc<str>>, error: Option<Arc<str>>) -> TurnState {
    match ended_ms {
        None => TurnState::Running,
        Some(_) => TurnState::Ended { stopped: stopped.unwrap_or_default(), error },
    }
}

fn to_turn(row: &Row<'_>) -> Result<StoredTurn, Failure> {
    let ended_ms = optional(row, 3)?;
    Ok(StoredTurn {
        number: row.get(0)?,
        model: row.get(1)?,
        title: row.get(10)?,
        began_ms: unsigned(row, 2)?,
        ended_ms,
        skills: serde_json::from_str(&row.get::<_, String>(11)?).map_err(FrozenError::from)?,
        state: state(ended_ms, row.get(4)?, row.get(5)?),
        usage: Usage {
            input_tokens: unsigned(row, 6)?,
            cached_input_tokens: unsigned(row, 7)?,
            cache_write_tokens: unsigned(row, 12)?,
            output_tokens: unsigned(row, 8)?,
            cost_usd: row.get(9)?,
        },
    })
}

fn to_message(row: &Row<'_>) -> Result<StoredMessage, Failure> {
    let body: String = row.get(1)?;
    Ok(StoredMessage { turn: row.get(0)?, left_out: row.get(2)?, message: thaw(&body)? })
}

fn to_call(row: &Row<'_>) -> Result<StoredCall, Failure> {
    let arguments: String = row.get(3)?;
    let arguments: FrozenJson = serde_json::from_str(&arguments).map_err(FrozenError::from)?;
    let outcome: Option<String> = row.get(8)?;
    let result: Option<String> = row.get(10)?;
    let read_outcome = |word: String| {
        CallOutcome::from_word(&word)
            .ok_or_else(|| Failure::Content(format!("`{}` is not an outcome", word.escape_debug())))
    };
    Ok(StoredCall {
        turn: row.get(0)?,
        call_id: row.get(1)?,
        tool: row.get(2)?,
        arguments: arguments.thaw()?,
        read_only: row.get(4)?,
        idempotent: row.get(5)?,
        attempts: row.get(6)?,
        cut_off: row.get(9)?,
        began_ms: unsigned(row, 7)?,
        outcome: outcome.map(read_outcome).transpose()?,
        result: result.map(|body| thaw(&body)).transpose()?,
    })
}
