//! Reports the progress of a running body.
//!
//! Messages of an untrusted tool are paced, limited and cleaned like its result: they reach
//! terminals, dashboards and clients of a gateway before there is a result.

use std::{collections::VecDeque, mem, sync::Arc};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use toolcrib_core::{
    __internal::ProgressPace, EventKind, Progress, ProgressSink, TextOrigin, Tool,
};

use super::{
    call::{Batch, Call},
    redact,
};

/// Messages of a trusted tool that wait to be reported; further ones are dropped.
const MOST_WAITING: usize = 64;

/// Characters of a message of an untrusted tool that are shown, and of its metadata.
const MOST_CHARS: usize = 1_000;

/// The messages that are not reported yet, and the time of the last one.
#[derive(Default)]
struct PendingReports {
    messages: VecDeque<Progress>,
    last: Option<Instant>,
}

/// The messages of one call that are not reported yet.
pub(super) struct Reports {
    waiting: Arc<watch::Sender<PendingReports>>,
    heard: watch::Receiver<PendingReports>,
    /// For an untrusted tool.
    pace: Option<ProgressPace>,
    origin: TextOrigin,
    next: Option<Instant>,
}

/// The sink for a body's messages, and their reporter.
pub(super) fn reports(tool: &Tool) -> (ProgressSink, Reports) {
    let (sender, heard) = watch::channel(PendingReports::default());
    let waiting = Arc::new(sender);
    let paced = tool.untrusted();
    let pace = paced.then(ProgressPace::default);
    let sink = {
        let waiting = Arc::clone(&waiting);
        Arc::new(move |message: Progress| {
            // Messages of an abandoned body are ignored.
            if waiting.is_closed() {
                return;
            }
            waiting.send_modify(|PendingReports { messages, last }| {
                *last = Some(Instant::now());
                if paced {
                    messages.retain(|before| before.audience != message.audience);
                }
                if messages.len() < MOST_WAITING {
                    messages.push_back(message);
                }
            });
        })
    };
    (sink, Reports { waiting, heard, pace, origin: tool.text_origin(), next: None })
}

impl Reports {
    /// Completes when there is a message to report and the pace allows it.
    pub(super) async fn due(&mut self) {
        // This struct also has the sender, so this never fails.
        let _ = self.heard.changed().await;
        if let Some(next) = self.next {
            sleep_until(next).await;
        }
    }

    /// When the last message came, if any.
    pub(super) fn last_at(&self) -> Option<Instant> {
        self.waiting.borrow().last
    }

    /// Reports the waiting messages.
    pub(super) fn report(&mut self, batch: &Batch<'_>, call: &Call) {
        let mut messages = VecDeque::new();
        self.waiting.send_if_modified(|waiting| {
            mem::swap(&mut waiting.messages, &mut messages);
            false
        });
        if let Some(pace) = &mut self.pace
            && !messages.is_empty()
        {
            self.next = Some(pace.count());
        }
        for Progress { message, percent, count, meta, audience } in messages {
            batch.events.emit(Some(batch.iteration), || EventKind::ToolProgress {
                call_id: Arc::clone(&call.id),
                tool: Arc::clone(&call.name),
                message: match self.pace.is_some() {
                    true => redact::remark(batch, message, MOST_CHARS, self.origin),
                    false => batch.engine.redactor.owned(message),
                },
                percent: percent.map(|percent| percent.min(100)),
                count,
                meta: meta.and_then(|meta| redact::metadata(batch, meta, MOST_CHARS)),
                audience,
            });
        }
    }
}
