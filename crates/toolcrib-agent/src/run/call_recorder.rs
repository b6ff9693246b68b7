//! Writes the records of a run: those of its calls at once, others with them.

use std::{
    collections::HashSet,
    error::Error,
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{sync::Mutex as AsyncMutex, task::yield_now};
use toolcrib_core::{
    CallIntent, CallOutcome, ErrorCode, Journal, Message, PendingCall, SessionRecord, ToolResult,
    UsageEntry,
};
use toolcrib_engine::Redactor;

use super::{
    sanitize::{message_of, without_new_secrets},
    trace::Trace,
};
use crate::session::Session;

/// The records of a run on their way to its session. Each write is one transaction with everything
/// that waits, in order.
///
/// A response waits for the first intent of its calls, and the outcome of the last call of a batch for
/// the messages with the results: no wait for anything else lies between. All other records are
/// written at once, those of calls that begin or end at the same time together.
pub(super) struct CallRecorder {
    session: Session,
    redactor: Redactor,
    pub(super) trace: Trace,
    waiting: Mutex<Waiting>,
    /// The number of records in the store.
    stored: Arc<AtomicUsize>,
    /// Usage that the session's store adds with the next write, if it can.
    usage: Option<Arc<Mutex<Vec<UsageEntry>>>>,
    /// Locked during a write, also of a call that no longer waits for it: writes keep their order.
    writing: Arc<AsyncMutex<()>>,
    /// The first failed write.
    failure: Arc<Mutex<Option<Arc<str>>>>,
    /// The number of calls of the batch without a result, and whether it has others.
    unfinished: AtomicUsize,
    batch: AtomicUsize,
    /// The calls of the batch with an outcome.
    ended: Mutex<HashSet<Arc<str>>>,
}

#[derive(Default)]
struct Waiting {
    records: Vec<SessionRecord>,
    /// The number of all records up to the last of these.
    last: usize,
}

impl CallRecorder {
    pub(super) fn new(
        session: Session,
        redactor: Redactor,
        trace: Trace,
        usage: Option<Arc<Mutex<Vec<UsageEntry>>>>,
    ) -> Self {
        Self {
            session,
            redactor,
            trace,
            waiting: Mutex::default(),
            stored: Arc::default(),
            usage,
            writing: Arc::default(),
            failure: Arc::default(),
            unfinished: AtomicUsize::new(0),
            batch: AtomicUsize::new(0),
            ended: Mutex::default(),
        }
    }

    /// Whether its writes contain the usage of the run.
    pub(super) fn adds_usage(&self) -> bool {
        self.usage.is_some()
    }

    /// The error of the first failed write.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        self.failure.lock().clone()
    }

    /// The next calls are a batch of this size.
    pub(super) fn batch_begins(&self, calls: usize) {
        self.unfinished.store(calls, Ordering::Relaxed);
        self.batch.store(calls, Ordering::Relaxed);
        self.ended.lock().clear();
    }

    /// Whether the outcome of a call of the batch was recorded when it ended.
    pub(super) fn has_outcome(&self, call_id: &Arc<str>) -> bool {
        self.ended.lock().contains(call_id)
    }

    /// Adds records for the next write, and after them the events so far.
    pub(super) fn add(&self, records: impl IntoIterator<Item = SessionRecord>) {
        let events = self.trace.take();
        let mut waiting = self.waiting.lock();
        let before = waiting.records.len();
        waiting.records.extend(records);
        // An outcome that waits needs no other copy of a result that is in the history.
        let (outcomes, new) = waiting.records.split_at_mut(before);
        for outcome in outcomes {
            if let SessionRecord::Outcome { call_id, result: result @ Some(_), .. } = outcome
                && new.iter().any(|new| is_result(new, call_id))
            {
                *result = None;
            }
        }
        waiting.records.extend(events);
        waiting.last += waiting.records.len() - before;
    }

    /// Adds records for the next write, and no events, which may not follow the end of a turn.
    pub(super) fn add_last(&self, records: impl IntoIterator<Item = SessionRecord>) {
        let mut waiting = self.waiting.lock();
        let before = waiting.records.len();
        waiting.records.extend(records);
        waiting.last += waiting.records.len() - before;
    }

    /// Writes what waits. After a failed write nothing more is written.
    pub(super) async fn write(&self) -> Result<(), String> {
        let last = self.waiting.lock().last;
        let turn = Arc::clone(&self.writing).lock_owned().await;
        if self.stored.load(Ordering::Acquire) >= last {
            // Another call has written them.
            return Ok(());
        }
        if self.batch.load(Ordering::Relaxed) > 1 {
            // Other calls of the batch may add their records in the same step.
            yield_now().await;
        }
        if let Some(failure) = self.failure() {
            return Err(failure.to_string());
        }
        let (mut records, last) = {
            let mut waiting = self.waiting.lock();
            (mem::take(&mut waiting.records), waiting.last)
        };
        let spent = self.usage.as_ref().map(|usage| mem::take(&mut *usage.lock()));
        let spent = spent.filter(|spent| !spent.is_empty());
        records.extend(spent.clone().map(SessionRecord::Spent));
        let (failure, usage) = (Arc::clone(&self.failure), self.usage.clone());
        let stored = Arc::clone(&self.stored);
        let written = self.session.write(records, move |written| {
            match written {
                Ok(()) => stored.store(last, Ordering::Release),
                Err(error) => {
                    failure.lock().get_or_insert_with(|| error.to_string().into());
                    // It is written at the end of the run, without the session.
                    if let (Some(usage), Some(spent)) = (usage, spent) {
                        usage.lock().splice(..0, spent);
                    }
                }
            }
            drop(turn);
        });
        written.await.map_err(|error| {
            let mut failure = self.failure.lock();
            failure.get_or_insert_with(|| error.to_string().into()).to_string()
        })
    }
}

/// Whether a record is the message with the result of a call.
fn is_result(record: &SessionRecord, of: &Arc<str>) -> bool {
    matches!(record, SessionRecord::Message(Message::Tool { call_id, .. }) if call_id == of)
}

impl Journal for CallRecorder {
    fn before_wait(&self) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        Box::pin(async move {
            self.write().await?;
            self.failure().map_or(Ok(()), |failure| Err(failure.to_string().into()))
        })
    }

    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let annotations = call.tool.annotations();
        let intent = CallIntent {
            call_id: Arc::clone(call.call_id),
            tool: call.tool.name().as_str().into(),
            arguments: self.redactor.json(call.args.clone()),
            read_only: annotations.read_only,
            idempotent: annotations.idempotent,
        };
        if intent.is_unrepeatable()
            && let Err(error) = self.session.check_durable()
        {
            // The refusal is the result of this call, and no failure of the session.
            return Box::pin(async { Err(error.into()) });
        }
        self.ended.lock().remove(call.call_id);
        self.add([SessionRecord::Intent(intent)]);
        Box::pin(async move { Ok(self.write().await?) })
    }

    fn outcome<'a>(
        &'a self,
        call: PendingCall<'a>,
        code: Option<ErrorCode>,
        result: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        let message =
            |result| -> Message { without_new_secrets(&message_of(result), &self.redactor) };
        self.add([SessionRecord::Outcome {
            call_id: Arc::clone(call.call_id),
            outcome: CallOutcome::of(code),
            result: result.map(message),
        }]);
        self.ended.lock().insert(Arc::clone(call.call_id));
        let left = |left: usize| left.checked_sub(usize::from(result.is_some()));
        let before = self.unfinished.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        if result.is_some() && before == Ok(1) {
            return Box::pin(async {});
        }
        // The loop reports a failure before its next step.
        Box::pin(async move { drop(self.write().await) })
    }
}
