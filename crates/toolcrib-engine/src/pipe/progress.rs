//! Reports what a running body says of its progress.
//!
//! Of an untrusted tool, messages are paced, bounded and cleaned as its result will be: they reach
//! terminals, dashboards and clients of a gateway before there is a result.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use toolcrib_core::{EventKind, Progress, ProgressSink, Tool};

use super::{Batch, Call, redact};

/// How many messages of a trusted tool wait to be reported; more are dropped.
const MOST_WAITING: usize = 64;

/// The least time between two reports of an untrusted tool. The last message comes with the end of
/// the call, whenever that is; with it there are at most ten in any second.
const PACE: Duration = Duration::from_millis(125);

/// How many characters of a message of an untrusted tool are shown.
const MOST_CHARS: usize = 1_000;

type Waiting = VecDeque<Progress>;

/// The messages of one call that are not reported yet.
pub(super) struct Reports {
    waiting: Arc<watch::Sender<Waiting>>,
    heard: watch::Receiver<Waiting>,
    /// Whether the tool is untrusted.
    paced: bool,
    next: Option<Instant>,
}

/// Where a body sends its messages, and what reports them.
pub(super) fn reports(tool: &Tool) -> (ProgressSink, Reports) {
    let (sender, heard) = watch::channel(Waiting::new());
    let waiting = Arc::new(sender);
    let paced = tool.untrusted();
    let sink = {
        let waiting = Arc::clone(&waiting);
        Arc::new(move |message: Progress| {
            // A body that was left behind is not heard any more.
            if waiting.is_closed() {
                return;
            }
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
    (sink, Reports { waiting, heard, paced, next: None })
}

impl Reports {
    /// Done when there is something to report and the pace allows it.
    pub(super) async fn due(&mut self) {
        // The sender is held here too, so this fails never.
        let _ = self.heard.changed().await;
        if let Some(next) = self.next {
            sleep_until(next).await;
        }
    }

    /// Reports what waits.
    pub(super) fn report(&mut self, batch: &Batch<'_>, call: &Call) {
        let mut messages = Waiting::new();
        self.waiting.send_if_modified(|waiting| {
            mem::swap(waiting, &mut messages);
            false
        });
        if self.paced && !messages.is_empty() {
            self.next = Some(Instant::now() + PACE);
        }
        for Progress { message, percent, audience } in messages {
            batch.events.emit(Some(batch.iteration), || EventKind::ToolProgress {
                call_id: Arc::clone(&call.id),
                tool: Arc::clone(&call.name),
                message: match self.paced {
                    true => redact::remark(batch, message, MOST_CHARS),
                    false => batch.engine.redactor.owned(message),
                },
                percent: percent.map(|percent| percent.min(100)),
                audience,
            });
        }
    }
}
