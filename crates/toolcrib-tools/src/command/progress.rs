//! The output of a running program as progress, for the person who waits.

use std::{collections::VecDeque, convert::Infallible, sync::Arc};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::sleep_until};
use toolcrib_capabilities::process::Output;
use toolcrib_core::{__internal::ProgressPace, Audience, Progress, ToolContext};

use super::lines::LineSplitter;

/// The most lines that wait to be reported. Of a faster output, the newest ones are reported.
const MOST_WAITING: usize = 4;

/// The limit of the bytes of a reported line. A longer one is left out, because a secret may be cut.
const LINE_BYTES: usize = 16 * 1024;

/// The lines of stdout, each reported when it is complete.
pub(crate) struct Lines {
    splitter: LineSplitter,
    waiting: Arc<WaitingLines>,
}

impl Default for Lines {
    fn default() -> Self {
        Self { splitter: LineSplitter::new(LINE_BYTES), waiting: Arc::default() }
    }
}

/// The complete lines that wait to be reported.
#[derive(Default)]
pub(crate) struct WaitingLines {
    lines: Mutex<VecDeque<String>>,
    added: Notify,
}

impl WaitingLines {
    /// Reports the lines until the work is done.
    pub(crate) async fn report_during<T>(
        &self,
        work: impl Future<Output = T>,
        cx: &ToolContext,
    ) -> T {
        tokio::select! {
            biased;
            done = work => done,
            never = self.report(cx) => match never {},
        }
    }

    async fn report(&self, cx: &ToolContext) -> Infallible {
        let mut pace = ProgressPace::default();
        loop {
            self.added.notified().await;
            while let Some(message) = self.next() {
                let audience = Audience::User;
                cx.progress(Progress { audience, ..Progress::internal(message) });
                sleep_until(pace.count()).await;
            }
        }
    }

    fn add(&self, line: &[u8]) {
        // A program's colors and cursor movements are not for the terminal of the person who watches.
        let message: String =
            String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect();
        if message.trim().is_empty() {
            return;
        }
        let mut lines = self.lines.lock();
        if lines.len() == MOST_WAITING {
            lines.pop_front();
        }
        lines.push_back(message);
        drop(lines);
        self.added.notify_one();
    }

    fn next(&self) -> Option<String> {
        self.lines.lock().pop_front()
    }
}

impl Lines {
    /// The lines that wait to be reported.
    pub(crate) fn waiting(&self) -> Arc<WaitingLines> {
        Arc::clone(&self.waiting)
    }

    pub(crate) fn push(&mut self, output: Output, piece: &[u8]) {
        if output == Output::Stdout {
            let Self { splitter, waiting } = self;
            splitter.push(piece, |line, length| {
                if length <= LINE_BYTES {
                    waiting.add(line);
                }
            });
        }
    }
}
