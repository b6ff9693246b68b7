//! Compares a store with what happened.

use std::{
    collections::{HashMap, HashSet},
    fs,
    panic::catch_unwind,
    path::Path,
    sync::Arc,
};

use toolcrib_core::{
    CallOutcome, Digest, Message, SessionOwner, SessionStore as _, StoredSession, ToolContext,
    ToolContextParts, TurnState,
};
use toolcrib_store::SqliteStore;
use toolcrib_testing::assert_replayable;

use crate::{
    child::SESSION,
    effects::{Effects, in_folder},
    script::{ANSWER, UNREPEATABLE},
};

/// Judges a finished schedule.
///
/// - The history is valid, and ends with the answer.
/// - No effect that is not idempotent happened twice, and none without its approval.
/// - A result that says that the call succeeded, or was not made, is right.
/// - All that was committed is there: messages in their place, outcomes as they were.
pub(crate) fn of(dir: &Path, posted: &Effects) -> Result<(), String> {
    let owner = SessionOwner::default();
    let store = SqliteStore::open(dir.join("sessions.db")).map_err(|error| error.to_string())?;
    let info = store.find(&owner, SESSION).map_err(|error| error.to_string())?;
    let session = store.read(&owner, &info.id).map_err(|error| error.to_string())?;
    let log = log(dir);
    of_session(dir, &session, posted, log.lines().filter_map(record))
}

/// Judges a finished session of a server, which may lose writes after the last intent of a call that may not
/// be repeated.
pub(crate) fn on_server(
    dir: &Path,
    session: &StoredSession,
    posted: &Effects,
) -> Result<(), String> {
    let log = log(dir);
    of_session(dir, session, posted, kept(&log).into_iter())
}

fn log(dir: &Path) -> String {
    fs::read_to_string(dir.join("committed.txt")).unwrap_or_default()
}

/// A line without the lease, the number and the durability of its write.
fn record(line: &str) -> Option<&str> {
    line.splitn(4, ' ').nth(3)
}

/// The lines that survive a crash of the server: those up to a write that was synced. Lines are dropped whose
/// write may have been lost, since another has its number, or another lease followed.
fn kept(log: &str) -> Vec<&str> {
    let (mut kept, mut pending) = (Vec::new(), Vec::new());
    let mut last = ("", 0);
    for line in log.lines() {
        let [lease, number, is_synced, record] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else { continue };
        if (lease, number) != last {
            pending.retain(|(of, before, _)| *of == lease && *before < number);
            last = (lease, number);
        }
        pending.push((lease, number, record));
        if is_synced == "true" {
            kept.extend(pending.drain(..).map(|(_, _, record)| record));
        }
    }
    kept
}

fn of_session<'a>(
    dir: &Path,
    session: &StoredSession,
    posted: &Effects,
    mut log: impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    history(session)?;
    let mut effects = in_folder(dir);
    effects.extend(posted.clone());
    if let Some(((tool, key), count)) =
        effects.iter().find(|((tool, _), count)| **count > 1 && UNREPEATABLE.contains(&&**tool))
    {
        return Err(format!("{tool} {key} happened {count} times"));
    }
    results(session, &effects)?;
    approved(dir, session, &effects)?;
    // Of several outcomes of a call the first after its intent is kept: a call that was denied
    // before has none, and another process may make it.
    let mut intended = HashSet::new();
    let mut first = HashSet::new();
    log.try_for_each(|line| {
        if let Some(call_id) = line.strip_prefix("intent ") {
            intended.insert(call_id);
        }
        let call_id = line.strip_prefix("outcome ").and_then(|line| line.split(' ').next());
        match call_id {
            Some(call_id) if !intended.contains(call_id) => Ok(()),
            _ => committed(session, line, call_id.is_none_or(|call_id| first.insert(call_id))),
        }
    })
}

fn history(session: &StoredSession) -> Result<(), String> {
    let messages: Vec<_> = session.messages.iter().map(|stored| stored.message.clone()).collect();
    let answer =
        matches!(messages.last(), Some(Message::Assistant { text, .. }) if &**text == ANSWER);
    let ended = TurnState::Ended { stopped: "answered".into(), error: None };
    if !answer || session.turns.len() != 1 || session.turns[0].state != ended {
        return Err(format!("it did not end with the answer: {:?}", session.turns));
    }
    catch_unwind(|| assert_replayable(&messages)).map_err(|_| "the history is not valid".to_owned())
}

fn results(session: &StoredSession, effects: &Effects) -> Result<(), String> {
    let mut tools = HashMap::new();
    for stored in &session.messages {
        match &stored.message {
            Message::Assistant { calls, .. } => {
                tools.extend(
                    calls.iter().map(|call| (Arc::clone(&call.id), Arc::clone(&call.name))),
                );
            }
            Message::Tool { call_id, text, is_error, .. } => {
                let tool = tools.get(call_id).ok_or("a result without a call")?.to_string();
                if tool == "look" {
                    continue;
                }
                let key = key_of(session, call_id);
                let count = effects.get(&(tool, key)).copied().unwrap_or_default();
                let is_right = match is_error {
                    false => count > 0,
                    true if text.starts_with("outcome_unknown") => true,
                    true => count == 0,
                };
                if !is_right {
                    return Err(format!(
                        "{call_id} happened {count} times, and its result is: {text}"
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Each effect that needs approval was approved.
fn approved(dir: &Path, session: &StoredSession, effects: &Effects) -> Result<(), String> {
    let approved = fs::read_to_string(dir.join("approved.txt")).unwrap_or_default();
    let keys: HashSet<_> = approved.lines().map(|call_id| key_of(session, call_id)).collect();
    match effects.keys().find(|(tool, key)| tool == "wire" && !keys.contains(key)) {
        Some((_, key)) => Err(format!("wire {key} happened without approval")),
        None => Ok(()),
    }
}

fn key_of(session: &StoredSession, call_id: &str) -> String {
    let context = ToolContext::from(ToolContextParts {
        call_id: call_id.into(),
        idempotency_scope: Arc::clone(&session.info.id),
        ..ToolContextParts::detached()
    });
    context.idempotency_key()
}

/// Whether a committed record is there.
fn committed(session: &StoredSession, line: &str, is_first: bool) -> Result<(), String> {
    let lost = || format!("lost: {line}");
    match line.split(' ').collect::<Vec<_>>().as_slice() {
        ["message", position, digest] => {
            let position: usize = position.parse().map_err(|_| lost())?;
            let message = &session.messages.get(position).ok_or_else(lost)?.message;
            let same = Digest::of(format!("{message:?}")).to_string() == *digest;
            if same { Ok(()) } else { Err(lost()) }
        }
        ["outcome", call_id, outcome, has_result] => {
            let Some(call) = session.calls.iter().find(|call| &*call.call_id == *call_id) else {
                // Without an intent it had no effect.
                return Ok(());
            };
            if is_first && call.outcome.map(CallOutcome::as_str) != Some(*outcome) {
                return Err(lost());
            }
            let failed = session.messages.iter().any(|stored| {
                matches!(&stored.message,
                Message::Tool { call_id: id, is_error: true, .. } if &**id == *call_id)
            });
            if *has_result == "true" && *outcome == "ok" && failed { Err(lost()) } else { Ok(()) }
        }
        // The last line of a process that was killed while it wrote.
        _ => Ok(()),
    }
}
