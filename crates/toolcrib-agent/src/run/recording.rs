//! Records a run in its session.

use std::{error::Error, mem, sync::Arc};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use toolcrib_core::{
    CallIntent, CallOutcome, ErrorCode, Journal, Message, PendingCall, SessionOwner, SessionRecord,
    ToolResult, Usage,
};
use toolcrib_engine::{DEFAULT_PERSONALITY, Redactor, TurnOptions};

use super::{sanitize::without_new_secrets, trace::Trace};
use crate::{
    outcome::{RunEnd, RunError},
    session::{History, Session},
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
    calls: Arc<CallRecorder>,
    redactor: Redactor,
    /// The number of messages in the store.
    written: usize,
    /// The records that precede the next message.
    ahead: Vec<SessionRecord>,
}

impl Recording {
    /// Begins a run in a session, and completes the options of its turn. Writes nothing. Returns
    /// the history too.
    pub(super) async fn begin(
        session: Session,
        turn: &mut TurnOptions,
        redactor: Redactor,
    ) -> Result<(Self, Vec<Message>), RunError> {
        join(&session, turn)?;
        let mut history = session.try_lock().ok_or_else(|| {
            let id = session.id();
            failed(format!("the session `{id}` has a run already; wait until it has ended"))
        })?;
        let known = match history.take() {
            Some(known) => known,
            None => session.load().await.map_err(|error| failed(error.to_string()))?,
        };
        let messages: Vec<_> =
            known.iter().map(|message| without_new_secrets(message, &redactor)).collect();
        let calls = Arc::new(CallRecorder {
            session: session.clone(),
            redactor: redactor.clone(),
            trace: Trace::of(&turn.events, redactor.clone()),
            failure: Mutex::default(),
        });
        turn.journal = Some(Arc::clone(&calls) as Arc<dyn Journal>);
        let written = messages.len();
        Ok((Self { session, history, calls, redactor, written, ahead: Vec::new() }, messages))
    }

    /// Notes the beginning of the turn, to be written with its first message.
    pub(super) fn turn_began(&mut self, message: &str, model: &str) {
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
        self.ahead.push(SessionRecord::TurnBegan { model: model.into(), title: title.into() });
    }

    /// Notes the outcomes of calls, to be written with their messages. Without effect on those
    /// whose outcome was written when they ended.
    pub(super) fn calls_ended(&mut self, results: &[ToolResult]) {
        self.ahead.extend(results.iter().map(|result| SessionRecord::Outcome {
            call_id: Arc::clone(&result.call_id),
            outcome: CallOutcome::of(result.code),
        }));
    }

    /// Writes what is not in the store yet.
    pub(super) async fn write(&mut self, messages: &[Message]) -> Result<(), RunError> {
        self.write_with(messages, None).await
    }

    /// Writes the rest and the end of the run. After a failed write the turn stays open, and the
    /// next run of the session ends it.
    pub(super) async fn end(
        mut self,
        messages: &Arc<Vec<Message>>,
        end: &RunEnd,
        usage: Usage,
    ) -> Result<(), RunError> {
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
        let new = messages.iter().skip(self.written);
        let new = new.map(|new| SessionRecord::Message(without_new_secrets(new, &self.redactor)));
        let mut records: Vec<_> = ahead.chain(new).collect();
        if records.is_empty() && last.is_none() {
            return Ok(());
        }
        // Events cause no write.
        records.extend(self.calls.trace.take());
        records.extend(last);
        self.session.write(records).await.map_err(|error| {
            self.calls.fail(&error);
            failed(error.to_string())
        })?;
        self.written = messages.len();
        Ok(())
    }
}

/// Gives a turn the identity of its session, and refuses a turn with another one.
fn join(session: &Session, turn: &mut TurnOptions) -> Result<(), RunError> {
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
    Ok(())
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

    fn outcome<'a>(&'a self, call: PendingCall<'a>, code: Option<ErrorCode>) -> BoxFuture<'a, ()> {
        let call_id = Arc::clone(call.call_id);
        let outcome = SessionRecord::Outcome { call_id, outcome: CallOutcome::of(code) };
        // The loop reports a failure before its next step.
        Box::pin(async move { drop(self.write(outcome).await) })
    }
}
