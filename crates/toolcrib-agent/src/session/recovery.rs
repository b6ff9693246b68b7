//! A turn whose process was killed: what a resumed run continues with, and the records that end it
//! otherwise. In both cases the history is valid for every vendor.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use toolcrib_core::{
    __internal::PlainJson, Arguments, CallOutcome, ErrorCode, Message, SessionHistory,
    SessionRecord, SkillId, StoredCall, StoredMessage, ToolCall, TurnState, Usage,
};
use toolcrib_engine::REDACTED;

/// An interrupted turn.
pub(crate) struct InterruptedTurn {
    /// The user's message.
    pub(crate) message: Arc<str>,
    /// The name of its first model.
    pub(crate) model: Arc<str>,
    /// The skills that the caller activated.
    pub(crate) skills: Vec<SkillId>,
    /// Its beginning, in milliseconds since 1970.
    pub(crate) began_ms: u64,
    /// Usage and cost so far.
    pub(crate) usage: Usage,
    /// The number of responses.
    pub(crate) responses: u32,
    /// The calls that succeeded, in order.
    pub(crate) succeeded: Vec<ToolCall>,
    /// The text of the last response, if it has no calls: the answer.
    pub(crate) answer: Option<Arc<str>>,
    /// The calls of the last response whose results are not in the history.
    pub(crate) calls: Vec<InterruptedCall>,
}

/// A call whose result is not in the history.
pub(crate) struct InterruptedCall {
    pub(crate) call: ToolCall,
    pub(crate) state: CallState,
    /// Whether it was begun, so that a decision on it is not about the first attempt.
    pub(crate) has_intent: bool,
}

impl InterruptedCall {
    /// Whether its result has content of an unknown author.
    pub(crate) fn is_untrusted(&self) -> bool {
        matches!(&self.state, CallState::Ended(result) if result.is_untrusted())
    }
}

/// The store's records of such a call, which decide what becomes of it.
pub(crate) enum CallState {
    /// It ended, and this is its result.
    Ended(Message),
    /// It may have had its effect, and must not be made again. This is the result; the store has no
    /// outcome yet.
    Unknown(Message),
    /// It must not be made: its result or its arguments are lost. This is the result.
    Lost(Message),
    /// It was cut off, and is made once more: its tool declares that this is harmless.
    CutOff,
    /// It has not begun.
    New,
}

impl CallState {
    fn of(call: &ToolCall, recorded: Option<&StoredCall>) -> Self {
        let Some(recorded) = recorded else {
            return match is_complete(&call.arguments) {
                true => Self::New,
                false => Self::Lost(not_made(
                    call,
                    " Its arguments contained a secret, which is not stored, so make it again.",
                )),
            };
        };
        match (&recorded.result, recorded.outcome) {
            (Some(result), Some(_)) => Self::Ended(result.clone()),
            (_, None)
                if (recorded.read_only || recorded.idempotent)
                    && recorded.cut_off == 0
                    && is_complete(&call.arguments) =>
            {
                Self::CutOff
            }
            (_, None) => Self::Unknown(outcome_unknown(call)),
            (None, Some(outcome)) => Self::Lost(without_result(call, outcome)),
        }
    }

    /// Whether the call is to be made.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::CutOff | Self::New)
    }
}

/// The interrupted turn of a session; `None` if its last turn has ended.
pub(super) fn interrupted(session: &SessionHistory) -> Option<InterruptedTurn> {
    let turn = session.last_turn.as_ref().filter(|turn| turn.state == TurnState::Running)?;
    let messages = || {
        let of_turn = session.messages.iter().filter(|stored| stored.turn == turn.number);
        of_turn.map(|stored| &stored.message)
    };
    let message = messages().find_map(|message| match message {
        Message::User { text, .. } if message.as_notice().is_none() => Some(Arc::clone(text)),
        _ => None,
    });
    let mut responses = messages().filter_map(|message| match message {
        Message::Assistant { text, calls, .. } => Some((text, calls)),
        _ => None,
    });
    let recorded_of =
        |call: &ToolCall| session.calls.iter().find(|recorded| recorded.call_id == call.id);
    let calls: Vec<_> = unanswered(session)
        .map(|call| {
            let recorded = recorded_of(call);
            let (state, has_intent) = (CallState::of(call, recorded), recorded.is_some());
            InterruptedCall { call: call.clone(), state, has_intent }
        })
        .collect();
    let ended = calls.iter().filter_map(|call| match &call.state {
        CallState::Ended(result) => Some(result),
        _ => None,
    });
    let ok: HashSet<_> = messages()
        .chain(ended)
        .filter_map(|message| match message {
            Message::Tool { call_id, is_error: false, .. } => Some(Arc::clone(call_id)),
            _ => None,
        })
        .collect();
    let made = responses.clone().flat_map(|(_, calls)| calls);
    Some(InterruptedTurn {
        message: message.unwrap_or_default(),
        model: Arc::clone(&turn.model),
        skills: turn.skills.clone(),
        began_ms: turn.began_ms,
        usage: turn.usage,
        responses: u32::try_from(responses.clone().count()).unwrap_or(u32::MAX),
        succeeded: made.filter(|call| ok.contains(&call.id)).cloned().collect(),
        answer: responses
            .next_back()
            .filter(|(_, calls)| calls.is_empty())
            .map(|(text, _)| Arc::clone(text)),
        calls,
    })
}

/// The records that end an interrupted turn in a way; none if the last turn has ended.
pub(super) fn end_of_interrupted(session: &SessionHistory, stopped: &str) -> Vec<SessionRecord> {
    let Some(turn) = interrupted(session) else { return Vec::new() };
    let results = turn.calls.into_iter().map(|InterruptedCall { call, state, .. }| match state {
        CallState::Ended(result) | CallState::Unknown(result) | CallState::Lost(result) => result,
        CallState::CutOff => outcome_unknown(&call),
        CallState::New => not_made(&call, ""),
    });
    let open = session.calls.iter().filter(|call| call.outcome.is_none());
    let outcomes = open.map(|call| unknown(Arc::clone(&call.call_id)));
    let end = SessionRecord::TurnEnded {
        stopped: stopped.into(),
        error: None,
        // That of an unanswered request is not known.
        usage: Usage { cost_usd: None, ..turn.usage },
    };
    results.map(SessionRecord::Message).chain(outcomes).chain([end]).collect()
}

/// The outcome of a call that has none. Without effect on a call that has not begun.
pub(crate) fn unknown(call_id: Arc<str>) -> SessionRecord {
    let outcome = CallOutcome::Failed(ErrorCode::OutcomeUnknown);
    SessionRecord::Outcome { call_id, outcome, result: None }
}

/// The calls of the last response that have no result. Results are written together, and the next
/// response is requested after them, so older responses have theirs.
fn unanswered(session: &SessionHistory) -> impl Iterator<Item = &ToolCall> {
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

/// The response whose calls were interrupted, with the arguments that ran, if the message has others; and
/// its position in the history. A middleware may have changed them.
pub(super) fn with_what_ran(session: &SessionHistory) -> Option<(usize, Message)> {
    session.last_turn.as_ref().filter(|turn| turn.state == TurnState::Running)?;
    let history: Vec<_> = session.messages.iter().filter(|stored| !stored.left_out).collect();
    let is_response = |stored: &&StoredMessage| matches!(stored.message, Message::Assistant { .. });
    let position = history.iter().rposition(is_response)?;
    let mut message = history.get(position)?.message.clone();
    let Message::Assistant { calls, .. } = &mut message else { return None };
    let mut is_changed = false;
    for recorded in &session.calls {
        let call = calls.iter_mut().find(|call| call.id == recorded.call_id);
        if let Some(call) = call
            && let Some(arguments) = what_ran(call, &recorded.tool, &recorded.arguments)
        {
            call.arguments = arguments;
            is_changed = true;
        }
    }
    is_changed.then_some((position, message))
}

/// The arguments of a call in the conversation, if those that ran differ from its own. `tool` is the tool
/// that ran: the one that the call names, or that it names to `call_tool`.
pub(crate) fn what_ran(call: &ToolCall, tool: &str, ran: &Value) -> Option<Arguments> {
    let written = match &call.arguments {
        Arguments::Json(written) => written.clone(),
        Arguments::Text(text) => PlainJson::read(text.as_bytes()).unwrap_or_default(),
    };
    let mut whole = written.clone();
    if *call.name == *tool {
        whole = ran.clone();
    } else if whole.get("tool").and_then(Value::as_str) == Some(tool)
        && let Some(fields) = whole.as_object_mut()
    {
        fields.insert("arguments".to_owned(), ran.clone());
    }
    (whole != written).then_some(Arguments::Json(whole))
}

/// Whether the arguments are the model's: a secret in them is not stored.
fn is_complete(arguments: &Arguments) -> bool {
    match arguments {
        Arguments::Text(text) => !text.contains(REDACTED),
        Arguments::Json(json) => !json.to_string().contains(REDACTED),
    }
}

/// The result of a call that has ended, and whose result is not stored.
fn without_result(call: &ToolCall, outcome: CallOutcome) -> Message {
    match outcome {
        CallOutcome::Failed(ErrorCode::OutcomeUnknown) => outcome_unknown(call),
        CallOutcome::Succeeded => failed(
            call,
            "The call succeeded, but the program was stopped before its result was stored. Do not \
             make it again for its effect."
                .to_owned(),
        ),
        CallOutcome::Failed(code) => failed(
            call,
            format!(
                "{code}: the call failed, and its message was lost when the program was stopped."
            ),
        ),
    }
}

/// The result of a call that may have had its effect.
pub(crate) fn outcome_unknown(call: &ToolCall) -> Message {
    let text = "outcome_unknown: the program was stopped during this call. The call may have had \
                its effect, wholly or in part. Find out before you make it again, or ask the user.";
    failed(call, text.to_owned())
}

/// The result of a call that was not made.
pub(crate) fn not_made(call: &ToolCall, why: &str) -> Message {
    failed(
        call,
        format!("cancelled: this call was not made, because its run was stopped before it.{why}"),
    )
}

/// The result of a call that a person has denied.
pub(crate) fn denied(call: &ToolCall, denial: &str) -> Message {
    failed(call, format!("denied: {denial}"))
}

fn failed(call: &ToolCall, text: String) -> Message {
    Message::Tool {
        call_id: Arc::clone(&call.id),
        name: Arc::clone(&call.name),
        text: text.into(),
        blocks: Arc::default(),
        is_error: true,
        untrusted: false,
    }
}
