//! Records a run in its session.

use std::{borrow::Cow, mem, sync::Arc, time::Duration};

use tokio::sync::OwnedMutexGuard;
use toolcrib_core::{
    CallOutcome, ErrorCode, EventKind, Journal, Message, SentParts, SessionOwner, SessionRecord,
    SkillId, ToolResult, Usage,
};
use toolcrib_engine::{DEFAULT_PERSONALITY, Redactor, TurnOptions};

use super::{
    call_recorder::CallRecorder,
    pending_usage::PendingUsage,
    sanitize::{message_of, without_new_secrets},
    trace::Trace,
};
use crate::{
    outcome::{RunEnd, RunError},
    session::{CallState, History, InterruptedTurn, KnownHistory, Session, Settled, unknown},
};

/// The length of a session's title, in characters.
const TITLE_CHARS: usize = 80;

/// The records of a run. Each step of the loop is written before the next one has an effect: messages
/// before the request that sends them, a response with the intent of its first call, at the latest, a
/// call before its effect. Once a write has failed, no further call is made, and the run ends with the
/// error.
pub(super) struct Recording {
    pub(super) session: Session,
    /// Locked until the run ends.
    history: OwnedMutexGuard<History>,
    sent_parts: Arc<SentParts>,
    calls: Arc<CallRecorder>,
    redactor: Redactor,
    /// The version of the secrets that the first messages lack.
    secrets: u64,
    /// The messages that the last run has left as they were.
    before: Settled,
    /// The number of messages at the beginning that this run has not changed.
    unchanged: usize,
    /// The usage in the store, or on its way there.
    used: Usage,
    /// The number of messages in the store, or on their way there.
    written: usize,
    /// The records that precede the next message.
    ahead: Vec<SessionRecord>,
    /// Whether a call waits for approval: the turn stays open, and the results of its response are
    /// written when all have one, in the order of the calls.
    awaits_approval: bool,
}

impl Recording {
    /// Begins a run in a session, and completes the options of its turn. Writes nothing. Returns
    /// the history too.
    pub(super) async fn begin(
        session: Session,
        turn: &mut TurnOptions,
        redactor: Redactor,
        pending: &PendingUsage,
    ) -> Result<(Self, Vec<Message>), RunError> {
        let mut history = join(&session, turn)?;
        let known = match history.take() {
            Some(known) => known,
            None => {
                let messages = session.load().await.map_err(|error| failed(error.to_string()))?;
                KnownHistory { messages, ..KnownHistory::default() }
            }
        };
        Self::with(session, history, known, None, turn, redactor, pending).await
    }

    /// Continues the interrupted turn of a session, like [`begin`](Self::begin).
    pub(super) async fn resume(
        session: Session,
        turn: &mut TurnOptions,
        redactor: Redactor,
        pending: &PendingUsage,
    ) -> Result<(Self, Vec<Message>, InterruptedTurn), RunError> {
        let history = join(&session, turn)?;
        let found = match history.is_some() {
            true => None,
            false => session.interrupted().await.map_err(|error| failed(error.to_string()))?,
        };
        let Some((known, mut interrupted)) = found else {
            let id = session.id();
            let text = format!("the last turn of the session `{id}` has ended; nothing to resume");
            return Err(RunError::new(RunError::NOTHING_TO_RESUME, text));
        };
        if turn.skills.is_empty() {
            turn.skills.clone_from(&interrupted.skills);
        }
        for call in &mut interrupted.calls {
            if let CallState::Ended(result) = &mut call.state {
                *result = without_new_secrets(result, &redactor);
            }
        }
        let known = KnownHistory { messages: Arc::new(known), ..KnownHistory::default() };
        let began = Some(interrupted.began_ms);
        let (mut recording, messages) =
            Self::with(session, history, known, began, turn, redactor, pending).await?;
        recording.used = interrupted.usage;
        Ok((recording, messages, interrupted))
    }

    async fn with(
        session: Session,
        history: OwnedMutexGuard<History>,
        known: KnownHistory,
        turn_began_ms: Option<u64>,
        turn: &mut TurnOptions,
        redactor: Redactor,
        pending: &PendingUsage,
    ) -> Result<(Self, Vec<Message>), RunError> {
        let secrets = redactor.version();
        let mut before = known.settled;
        if known.secrets != secrets {
            before.messages = 0;
        }
        let mut messages = Arc::unwrap_or_clone(known.messages);
        for message in messages.iter_mut().skip(before.messages) {
            *message = without_new_secrets(message, &redactor);
        }
        let sent_parts = session.sent_parts().await.map_err(|error| failed(error.to_string()))?;
        // A secret that is known now is not sent again.
        sent_parts.retain(|json| matches!(redactor.text(json), Cow::Borrowed(_)));
        let trace = Trace::of(&turn.events, redactor.clone(), turn_began_ms);
        let usage = pending.added_by(session.usage_store_id());
        let calls = CallRecorder::new(session.clone(), redactor.clone(), trace, usage);
        let calls = Arc::new(calls);
        turn.journal = Some(Arc::clone(&calls) as Arc<dyn Journal>);
        turn.idempotency_scope = Some(Arc::clone(session.id()));
        let recording = Self {
            session,
            history,
            sent_parts,
            calls,
            redactor,
            secrets,
            before,
            unchanged: messages.len(),
            used: Usage::NOTHING,
            written: messages.len(),
            ahead: Vec::new(),
            awaits_approval: false,
        };
        Ok((recording, messages))
    }

    /// Notes the beginning of the turn, to be written with its first message.
    pub(super) fn turn_began(&mut self, message: &str, model: &str, skills: &[SkillId]) {
        let message = self.redactor.text(message);
        let mut words = message.split_whitespace();
        let mut title = words.next().unwrap_or_default().to_owned();
        for word in words {
            title.push(' ');
            title.push_str(word);
            if title.chars().count() > TITLE_CHARS {
                break;
            }
        }
        let title: String = title.chars().take(TITLE_CHARS).collect();
        self.ahead.push(SessionRecord::TurnBegan {
            model: model.into(),
            title: title.into(),
            skills: skills.to_vec(),
        });
    }

    /// Notes that the turn runs a submitted message, to be written with its beginning.
    pub(super) fn takes(&mut self, number: u64) {
        self.ahead.push(SessionRecord::Taken(number));
    }

    /// The next calls are those of one response.
    pub(super) fn calls_begin(&self, calls: usize) {
        self.calls.batch_begins(calls);
    }

    /// Notes the outcomes of calls, to be written with their messages, as far as none was written when
    /// they ended.
    pub(super) fn calls_ended(&mut self, results: &[ToolResult]) {
        let is_parked = |result: &ToolResult| result.code == Some(ErrorCode::AwaitingApproval);
        self.awaits_approval |= results.iter().any(is_parked);
        let waits = self.awaits_approval;
        let ended = results.iter().filter(|result| !is_parked(result));
        let ended = ended.filter(|result| !self.calls.has_outcome(&result.call_id));
        self.ahead.extend(ended.map(|result| SessionRecord::Outcome {
            call_id: Arc::clone(&result.call_id),
            outcome: CallOutcome::of(result.code),
            // Their messages are written when every call of the response has one.
            result: waits.then(|| without_new_secrets(&message_of(result), &self.redactor)),
        }));
    }

    /// Notes that the outcome of a call is unknown, to be written with its message.
    pub(super) fn outcome_unknown(&mut self, call_id: &Arc<str>) {
        self.ahead.push(unknown(Arc::clone(call_id)));
    }

    /// The parts of requests, as they were first sent.
    pub(super) fn sent_parts(&self) -> &Arc<SentParts> {
        &self.sent_parts
    }

    /// The ids of calls whose messages are left out of requests.
    pub(super) fn left_out(&self) -> Vec<Arc<str>> {
        self.session.left_out()
    }

    /// Writes that messages are left out of later requests. All messages must be in the store.
    pub(super) async fn leave_out(
        &mut self,
        positions: &[usize],
        ids: Vec<Arc<str>>,
    ) -> Result<(), RunError> {
        self.written = self.written.saturating_sub(positions.len());
        self.changed(positions);
        self.session.leave_out(ids);
        self.calls.add([SessionRecord::LeftOut(positions.to_vec())]);
        self.flush().await
    }

    /// Writes messages that replace those at positions, which are in the store.
    pub(super) async fn replace(
        &mut self,
        positions: &[usize],
        messages: &[Message],
    ) -> Result<(), RunError> {
        self.changed(positions);
        let replaced = positions.iter().filter_map(|position| {
            let message = without_new_secrets(messages.get(*position)?, &self.redactor);
            Some(SessionRecord::Replaced { position: *position, message })
        });
        self.calls.add(replaced);
        self.flush().await
    }

    /// Notes a message that replaces the one at a position, to be written before the next message.
    pub(super) fn replace_next(&mut self, position: usize, message: &Message) {
        self.changed(&[position]);
        if position < self.written {
            let message = without_new_secrets(message, &self.redactor);
            self.ahead.push(SessionRecord::Replaced { position, message });
        }
    }

    /// Notes that messages are others now.
    fn changed(&mut self, positions: &[usize]) {
        let first = positions.iter().copied().min().unwrap_or(usize::MAX);
        self.unchanged = self.unchanged.min(first);
    }

    /// The messages that the last run has left as they were.
    pub(super) fn settled_before(&self) -> Settled {
        self.before
    }

    /// The number of messages at the beginning that this run has not changed.
    pub(super) fn unchanged(&self) -> usize {
        self.unchanged
    }

    /// Whether its writes contain the usage of the run.
    pub(super) fn adds_usage(&self) -> bool {
        self.calls.adds_usage()
    }

    /// Whether a call waits for approval.
    pub(super) fn awaits_approval(&self) -> bool {
        self.awaits_approval
    }

    /// Writes what is not in the store yet.
    pub(super) async fn write(
        &mut self,
        messages: &[Message],
        usage: Usage,
    ) -> Result<(), RunError> {
        self.add(messages, usage)?;
        self.flush().await
    }

    /// Adds what is not in the store yet to its next write: the intent of a call, at the latest.
    pub(super) fn add(&mut self, messages: &[Message], usage: Usage) -> Result<(), RunError> {
        let more = since(self.used, usage);
        if more != Usage::NOTHING {
            self.ahead.push(SessionRecord::Used(more));
            self.used = usage;
        }
        self.add_with(messages, None)
    }

    /// Writes the rest and the end of the run. After a failed write, and where calls wait for
    /// approval, the turn stays open: a resumed run continues it, and any other run of the session
    /// ends it. `last` is the event that listeners receive afterwards.
    pub(super) async fn end(
        mut self,
        messages: &Arc<Vec<Message>>,
        end: &RunEnd,
        usage: Usage,
        last: &EventKind,
        took: Duration,
        run: u64,
    ) -> Result<(), RunError> {
        self.calls.trace.end(last, took);
        if self.awaits_approval() {
            self.add(messages, usage)?;
            // Also without further records, the events say how this process ended.
            self.calls.add([]);
            return self.flush().await;
        }
        let error = end.error.as_ref().map(|error| self.redactor.text(&error.message).into());
        let stopped = end.end_reason.as_str().into();
        let record = SessionRecord::TurnEnded { stopped, error, usage };
        self.add_with(messages, Some(record))?;
        self.flush().await?;
        let settled = Settled { run, messages: self.unchanged };
        let messages = Arc::clone(messages);
        *self.history = Some(KnownHistory { messages, settled, secrets: self.secrets });
        Ok(())
    }

    fn add_with(
        &mut self,
        messages: &[Message],
        last: Option<SessionRecord>,
    ) -> Result<(), RunError> {
        if let Some(failure) = self.calls.failure() {
            return Err(failed(&*failure));
        }
        let ahead = mem::take(&mut self.ahead).into_iter();
        let settled = if self.awaits_approval { self.written } else { messages.len() };
        let new = messages.iter().take(settled).skip(self.written);
        let new = new.map(|new| SessionRecord::Message(without_new_secrets(new, &self.redactor)));
        let records: Vec<_> = ahead.chain(new).collect();
        if !records.is_empty() || last.is_some() {
            self.calls.add(records);
            // They cause no write: the parts of a request are written with its response.
            let parts = self.sent_parts.take_new().into_iter().map(SessionRecord::Sent);
            self.calls.add_last(parts.chain(last));
        }
        self.written = settled;
        Ok(())
    }

    async fn flush(&self) -> Result<(), RunError> {
        self.calls.write().await.map_err(failed)
    }
}

/// The usage since an earlier sum.
fn since(before: Usage, now: Usage) -> Usage {
    Usage {
        input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
        cached_input_tokens: now.cached_input_tokens.saturating_sub(before.cached_input_tokens),
        cache_write_tokens: now.cache_write_tokens.saturating_sub(before.cache_write_tokens),
        output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
        cost_usd: before.cost_usd.map_or(Some(0.0), |before| now.cost_usd.map(|now| now - before)),
    }
}

/// Gives a turn the identity of its session, refuses a turn with another one, and locks the
/// history.
fn join(session: &Session, turn: &mut TurnOptions) -> Result<OwnedMutexGuard<History>, RunError> {
    let id = session.id();
    let owner = SessionOwner { tenant: turn.tenant.clone(), principal: turn.principal.clone() };
    if owner != *session.owner() {
        return Err(failed(format!(
            "the session `{id}` belongs to another tenant or principal than the run"
        )));
    }
    let personality = turn.personality.as_deref().unwrap_or(session.personality());
    if *personality != **session.personality() {
        return Err(failed(format!(
            "the session `{id}` has the personality `{}`, and cannot continue as `{personality}`; \
             begin another session",
            session.personality()
        )));
    }
    if turn.conversation.as_ref().is_some_and(|named| named != session.conversation()) {
        return Err(failed(format!(
            "the session `{id}` is the conversation of the run; leave out `conversation`"
        )));
    }
    let history = session.try_lock().ok_or_else(|| {
        failed(format!("the session `{id}` has a run already; wait until it has ended"))
    })?;
    let token = turn.cancellation.take().unwrap_or_default().child_token();
    session.runs(&token);
    turn.cancellation = Some(token);
    turn.conversation = Some(Arc::clone(session.conversation()));
    if **session.personality() != *DEFAULT_PERSONALITY {
        turn.personality = Some(Arc::clone(session.personality()));
    }
    Ok(history)
}

fn failed(message: impl Into<String>) -> RunError {
    RunError::new(RunError::SESSION_FAILED, message)
}
