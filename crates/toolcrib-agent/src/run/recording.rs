//! Records a run in its session.

use std::{borrow::Cow, error::Error, mem, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use toolcrib_core::{
    CallIntent, CallOutcome, ErrorCode, EventKind, Journal, Message, PendingCall, SentParts,
    SessionOwner, SessionRecord, SkillId, ToolResult, Usage,
};
use toolcrib_engine::{DEFAULT_PERSONALITY, Redactor, TurnOptions};

use super::{sanitize::without_new_secrets, trace::Trace, transcript::message_of};
use crate::{
    outcome::{RunEnd, RunError},
    session::{CallState, History, InterruptedTurn, Session, unknown},
};

/// The length of a session's title, in characters.
const TITLE_CHARS: usize = 80;

/// The records of a run. Each step of the loop is written before the next one begins: messages
/// before the request that sends them, a response before its calls, a call before its effect. Once
/// a write has failed, no further call is made, and the run ends with the error.
pub(super) struct Recording {
    session: Session,
    /// Locked until the run ends.
    history: OwnedMutexGuard<History>,
    sent_parts: Arc<SentParts>,
    calls: Arc<CallRecorder>,
    redactor: Redactor,
    /// The usage in the store.
    used: Usage,
    /// The number of messages in the store.
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
    ) -> Result<(Self, Vec<Message>), RunError> {
        let mut history = join(&session, turn)?;
        let known = match history.take() {
            Some(known) => known,
            None => session.load().await.map_err(|error| failed(error.to_string()))?,
        };
        Self::with(session, history, &known, turn, redactor).await
    }

    /// Continues the interrupted turn of a session, like [`begin`](Self::begin).
    pub(super) async fn resume(
        session: Session,
        turn: &mut TurnOptions,
        redactor: Redactor,
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
        let (mut recording, messages) =
            Self::with(session, history, &known, turn, redactor).await?;
        recording.used = interrupted.usage;
        Ok((recording, messages, interrupted))
    }

    async fn with(
        session: Session,
        history: OwnedMutexGuard<History>,
        known: &[Message],
        turn: &mut TurnOptions,
        redactor: Redactor,
    ) -> Result<(Self, Vec<Message>), RunError> {
        let messages: Vec<_> =
            known.iter().map(|message| without_new_secrets(message, &redactor)).collect();
        let sent_parts = session.sent_parts().await.map_err(|error| failed(error.to_string()))?;
        // A secret that is known now is not sent again.
        sent_parts.retain(|json| matches!(redactor.text(json), Cow::Borrowed(_)));
        let calls = Arc::new(CallRecorder {
            session: session.clone(),
            redactor: redactor.clone(),
            trace: Trace::of(&turn.events, redactor.clone()),
            failure: Mutex::default(),
        });
        turn.journal = Some(Arc::clone(&calls) as Arc<dyn Journal>);
        turn.idempotency_scope = Some(Arc::clone(session.id()));
        let (written, ahead, used) = (messages.len(), Vec::new(), Usage::NOTHING);
        let awaits_approval = false;
        let recording = Self {
            session,
            history,
            sent_parts,
            calls,
            redactor,
            used,
            written,
            ahead,
            awaits_approval,
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

    /// Notes the outcomes of calls, to be written with their messages. Without effect on those
    /// whose outcome was written when they ended.
    pub(super) fn calls_ended(&mut self, results: &[ToolResult]) {
        let is_parked = |result: &ToolResult| result.code == Some(ErrorCode::AwaitingApproval);
        self.awaits_approval |= results.iter().any(is_parked);
        let waits = self.awaits_approval;
        let ended = results.iter().filter(|result| !is_parked(result));
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
        self.session.leave_out(positions.to_vec(), ids).await.map_err(|error| {
            self.calls.fail(&error);
            failed(error.to_string())
        })
    }

    /// Writes messages that replace those at positions, which are in the store.
    pub(super) async fn replace(
        &mut self,
        positions: &[usize],
        messages: &[Message],
    ) -> Result<(), RunError> {
        let replaced = positions.iter().filter_map(|position| {
            let message = without_new_secrets(messages.get(*position)?, &self.redactor);
            Some(SessionRecord::Replaced { position: *position, message })
        });
        self.session.write(replaced.collect()).await.map_err(|error| {
            self.calls.fail(&error);
            failed(error.to_string())
        })
    }

    /// Notes a message that replaces the one at a position, to be written before the next message.
    pub(super) fn replace_next(&mut self, position: usize, message: &Message) {
        if position < self.written {
            let message = without_new_secrets(message, &self.redactor);
            self.ahead.push(SessionRecord::Replaced { position, message });
        }
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
        let more = since(self.used, usage);
        if more != Usage::NOTHING {
            self.ahead.push(SessionRecord::Used(more));
        }
        self.write_with(messages, None).await?;
        self.used = usage;
        Ok(())
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
    ) -> Result<(), RunError> {
        self.calls.trace.end(last, took);
        if self.awaits_approval() {
            return self.write(messages, usage).await;
        }
        let error = end.error.as_ref().map(|error| self.redactor.text(&error.message).into());
        let stopped = end.stopped.as_str().into();
        let record = SessionRecord::TurnEnded { stopped, error, usage };
        self.write_with(messages, Some(record)).await?;
        *self.history = Some(Arc::clone(messages));
        Ok(())
    }

    async fn write_with(
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
        let mut records: Vec<_> = ahead.chain(new).collect();
        if records.is_empty() && last.is_none() {
            return Ok(());
        }
        // Events cause no write, and neither do the parts of a request: they are written with its
        // response.
        records.extend(self.calls.trace.take());
        records.extend(self.sent_parts.take_new().into_iter().map(SessionRecord::Sent));
        records.extend(last);
        self.session.write(records).await.map_err(|error| {
            self.calls.fail(&error);
            failed(error.to_string())
        })?;
        self.written = settled;
        Ok(())
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
    turn.conversation = Some(Arc::clone(session.conversation()));
    if **session.personality() != *DEFAULT_PERSONALITY {
        turn.personality = Some(Arc::clone(session.personality()));
    }
    session.try_lock().ok_or_else(|| {
        failed(format!("the session `{id}` has a run already; wait until it has ended"))
    })
}

fn failed(message: impl Into<String>) -> RunError {
    RunError::new(RunError::SESSION_FAILED, message)
}

/// Records the calls of a run.
struct CallRecorder {
    session: Session,
    redactor: Redactor,
    trace: Trace,
    /// The first failed write.
    failure: Mutex<Option<Arc<str>>>,
}

impl CallRecorder {
    fn failure(&self) -> Option<Arc<str>> {
        self.failure.lock().clone()
    }

    fn fail(&self, error: &impl ToString) {
        self.failure.lock().get_or_insert_with(|| error.to_string().into());
    }

    async fn write(&self, record: SessionRecord) -> Result<(), Arc<str>> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let mut records = self.trace.take();
        records.push(record);
        self.session.write(records).await.map_err(|error| {
            self.fail(&error);
            Arc::from(error.to_string())
        })
    }
}

impl Journal for CallRecorder {
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let annotations = call.tool.annotations();
        let intent = SessionRecord::Intent(CallIntent {
            call_id: Arc::clone(call.call_id),
            tool: call.tool.name().as_str().into(),
            arguments: self.redactor.json(call.args.clone()),
            read_only: annotations.read_only,
            idempotent: annotations.idempotent,
        });
        Box::pin(
            async move { self.write(intent).await.map_err(|failure| failure.to_string().into()) },
        )
    }

    fn outcome<'a>(
        &'a self,
        call: PendingCall<'a>,
        code: Option<ErrorCode>,
        result: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        let message = |result| without_new_secrets(&message_of(result), &self.redactor);
        let outcome = SessionRecord::Outcome {
            call_id: Arc::clone(call.call_id),
            outcome: CallOutcome::of(code),
            result: result.map(message),
        };
        // The loop reports a failure before its next step.
        Box::pin(async move { drop(self.write(outcome).await) })
    }
}
