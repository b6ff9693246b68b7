//! Reports the progress of a running body.
//!
//! Messages of an untrusted tool are paced, limited and cleaned like its result: they reach
//! terminals, dashboards and clients of a gateway before there is a result.

use std::{collections::VecDeque, mem, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use toolcrib_core::{__internal::ProgressPace, EventKind, Progress, ProgressSink, Tool};

use super::{
    call::{Batch, Call},
    redact,
};

/// Messages of a trusted tool that wait to be reported; further ones are dropped.
const MOST_WAITING: usize = 64;

/// Characters of a message of an untrusted tool that are shown.
const MOST_CHARS: usize = 1_000;

type Waiting = VecDeque<Progress>;

/// The messages of one call that are not reported yet.
pub(super) struct Reports {
    waiting: Arc<watch::Sender<Waiting>>,
    heard: watch::Receiver<Waiting>,
    /// When the last message came.
    last: Arc<Mutex<Instant>>,
    /// For an untrusted tool.
    pace: Option<ProgressPace>,
    next: Option<Instant>,
}

/// The sink for a body's messages, and their reporter.
pub(super) fn reports(tool: &Tool) -> (ProgressSink, Reports) {
    let (sender, heard) = watch::channel(Waiting::new());
    let waiting = Arc::new(sender);
    let paced = tool.untrusted();
    let pace = paced.then(ProgressPace::default);
    let last = Arc::new(Mutex::new(Instant::now()));
    let sink = {
        let (waiting, last) = (Arc::clone(&waiting), Arc::clone(&last));
        Arc::new(move |message: Progress| {
            // Messages of an abandoned body are ignored.
            if waiting.is_closed() {
                return;
            }
            *last.lock() = Instant::now();
            waiting.send_modify(|waiting| {
                if paced {
                    waiting.retain(|before| before.audience != message.audience);
                }
                if waiting.len() < MOST_WAITING {
                    waiting.push_back(message);
                }
            });
        })
    };
    (sink, Reports { waiting, heard, last, pace, next: None })
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

    /// When the last message came; without one, when the call began.
    pub(super) fn last_at(&self) -> Instant {
        *self.last.lock()
    }

    /// Reports the waiting messages.
    pub(super) fn report(&mut self, batch: &Batch<'_>, call: &Call) {
        let mut messages = Waiting::new();
        self.waiting.send_if_modified(|waiting| {
            mem::swap(waiting, &mut messages);
            false
        });
        if let Some(pace) = &mut self.pace
            && !messages.is_empty()
        {
            self.next = Some(pace.count());
        }
        for Progress { message, percent, count, audience } in messages {
            batch.events.emit(Some(batch.iteration), || EventKind::ToolProgress {
                call_id: Arc::clone(&call.id),
                tool: Arc::clone(&call.name),
                message: match self.pace.is_some() {
                    true => redact::remark(batch, message, MOST_CHARS),
                    false => batch.engine.redactor.owned(message),
                },
                percent: percent.map(|percent| percent.min(100)),
                count,
                audience,
            });
        }
    }
}
