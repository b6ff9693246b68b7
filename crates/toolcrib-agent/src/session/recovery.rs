//! Ends a turn whose process was killed, so that its history is valid for every vendor.

use std::{collections::HashSet, sync::Arc};

use toolcrib_core::{
    CallOutcome, ErrorCode, Message, SessionRecord, StoredCall, StoredSession, ToolCall, TurnState,
    Usage,
};

/// How an interrupted turn ended.
const INTERRUPTED: &str = "interrupted";

/// The records that end an interrupted turn; none if the last turn has ended.
pub(super) fn repair(session: &StoredSession) -> Vec<SessionRecord> {
    if session.turns.last().is_none_or(|turn| turn.state != TurnState::Running) {
        return Vec::new();
    }
    let results = unanswered(session).map(|call| {
        let recorded = session.calls.iter().find(|recorded| recorded.call_id == call.id);
        SessionRecord::Message(result(call, recorded))
    });
    let open = session.calls.iter().filter(|call| call.outcome.is_none());
    let outcomes = open.map(|call| SessionRecord::Outcome {
        call_id: Arc::clone(&call.call_id),
        outcome: CallOutcome::Failed(ErrorCode::OutcomeUnknown),
    });
    let end = SessionRecord::TurnEnded {
        stopped: INTERRUPTED.into(),
        error: None,
        // Its cost was not recorded.
        usage: Usage { cost_usd: None, ..Usage::NOTHING },
    };
    results.chain(outcomes).chain([end]).collect()
}

/// The calls of the last response that have no result. Results are written together, and the next
/// response is requested after them, so older responses have theirs.
fn unanswered(session: &StoredSession) -> impl Iterator<Item = &ToolCall> {
    let mut answered = HashSet::new();
    let mut calls: &[ToolCall] = &[];
    for stored in session.messages.iter().rev() {
        match &stored.message {
            Message::Tool { call_id, .. } => drop(answered.insert(Arc::clone(call_id))),
            Message::Assistant { calls: of_last, .. } => {
                calls = of_last;
                break;
            }
            _ => {}
        }
    }
    calls.iter().filter(move |call| !answered.contains(&call.id))
}

/// The result of a call that has none, for the model.
fn result(call: &ToolCall, recorded: Option<&StoredCall>) -> Message {
    let text = match recorded.map(|recorded| recorded.outcome) {
        Some(None | Some(CallOutcome::Failed(ErrorCode::OutcomeUnknown))) => {
            "outcome_unknown: the program was stopped during this call. The call may have had its \
             effect, wholly or in part. Find out before you make it again, or ask the user."
                .to_owned()
        }
        Some(Some(CallOutcome::Succeeded)) => {
            "The call succeeded, but the program was stopped before its result was stored. Do not \
             make it again for its effect."
                .to_owned()
        }
        Some(Some(CallOutcome::Failed(code))) => {
            format!(
                "{code}: the call failed, and its message was lost when the program was stopped."
            )
        }
        None => "cancelled: the program was stopped before this call was made.".to_owned(),
    };
    Message::Tool {
        call_id: Arc::clone(&call.id),
        name: Arc::clone(&call.name),
        text: text.into(),
        blocks: Arc::default(),
        is_error: true,
        untrusted: false,
    }
}
