//! Records of sessions.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_core::{
    CallIntent, CallOutcome, Message, NewSession, SessionInfo, SessionOwner, SessionRecord,
    SessionStore as _, ToolCall, Usage,
};
use toolcrib_store::SqliteStore;

use crate::table::Outcome;

/// The time for which a session is leased, long enough for any bench.
const LEASE: Duration = Duration::from_secs(600);

/// The characters of a result.
const RESULT: usize = 500;

/// A session without an owner.
pub fn new_session(name: &str) -> NewSession {
    let name = Some(name.into());
    NewSession { owner: SessionOwner::default(), name, personality: "default".into() }
}

/// The start of a turn.
pub fn turn_began() -> SessionRecord {
    SessionRecord::TurnBegan { model: "m".into(), title: "t".into(), skills: Vec::new() }
}

/// A call of the tool `look`.
pub fn intent(call_id: &str, idempotent: bool) -> SessionRecord {
    SessionRecord::Intent(CallIntent {
        call_id: call_id.into(),
        tool: "look".into(),
        arguments: json!({ "order": 1042 }),
        read_only: false,
        idempotent,
    })
}

/// The result of a call of the tool `look`.
pub fn result(call_id: &str) -> Message {
    Message::Tool {
        call_id: call_id.into(),
        name: "look".into(),
        text: "x".repeat(RESULT).into(),
        blocks: Arc::default(),
        is_error: false,
        untrusted: false,
    }
}

/// Stores a session with one turn of this many responses with one call each, whose results are in the history,
/// and more records. Without an end among them, the turn is that of a process that was killed.
///
/// # Errors
/// Those of the store.
pub fn stored(
    store: &SqliteStore,
    name: &str,
    calls: usize,
    more: impl IntoIterator<Item = SessionRecord>,
) -> Outcome<SessionInfo> {
    let info = store.create(&new_session(name))?;
    let lease = store.acquire(&SessionOwner::default(), &info.id, LEASE)?;
    let user = SessionRecord::Message(Message::user("Look at all orders."));
    let mut records = vec![turn_began(), user];
    for call in 0..calls {
        let id = format!("c{call}");
        let made = ToolCall::new(id.as_str(), "look", json!({ "order": call }));
        let outcome = CallOutcome::Succeeded;
        records.extend([
            SessionRecord::Message(Message::assistant("", [made])),
            SessionRecord::Used(Usage { input_tokens: 9, ..Usage::NOTHING }),
            intent(&id, true),
            SessionRecord::Outcome { call_id: id.as_str().into(), outcome, result: None },
            SessionRecord::Message(result(&id)),
        ]);
    }
    records.extend(more);
    store.write(&lease, 0, &records)?;
    store.release(&lease)?;
    Ok(info)
}

/// The end of a turn.
pub fn turn_ended() -> SessionRecord {
    SessionRecord::TurnEnded {
        stopped: "answered".into(),
        error: None,
        usage: Usage { input_tokens: 9, ..Usage::NOTHING },
    }
}
