use std::{sync::Arc, time::Instant};

use toolcrib_core::{CancellationToken, EventKind, RunEvents, Usage, millis};
use toolcrib_engine::Turn;

use crate::outcome::{RunError, Stopped};

/// Writes the run's own events, and sums up what it used. A run that is dropped half-way still
/// says that it is over, last of all.
pub(super) struct Report {
    events: Arc<RunEvents>,
    pub(super) cancellation: CancellationToken,
    pub(super) began: Instant,
    pub(super) iteration: Option<u32>,
    pub(super) iterations: u32,
    pub(super) usage: Usage,
    over: bool,
}

impl Report {
    pub(super) fn new(turn: &Turn, began: Instant) -> Self {
        Self {
            events: Arc::clone(turn.events()),
            cancellation: turn.cancellation().clone(),
            began,
            iteration: None,
            iterations: 0,
            usage: Usage::NOTHING,
            over: false,
        }
    }

    pub(super) fn emit(&self, kind: impl FnOnce() -> EventKind) {
        self.events.emit(self.iteration, kind);
    }

    /// Shows a piece of an answer, if there is anything to show.
    pub(super) fn text(&self, text: String) -> bool {
        let shown = !text.is_empty();
        if shown {
            self.emit(|| EventKind::ModelText { text });
        }
        shown
    }

    pub(super) fn reasoning(&self, text: String) {
        if !text.is_empty() {
            self.emit(|| EventKind::ModelReasoning { text });
        }
    }

    pub(super) fn began(&self, message: &str, model: &str, personality: &Arc<str>) {
        self.emit(|| EventKind::TurnStart {
            message: message.into(),
            model: model.into(),
            personality: Arc::clone(personality),
        });
    }

    pub(super) fn iteration(&mut self, number: u32) {
        self.iteration = Some(number);
        self.iterations = number;
    }

    pub(super) fn iteration_over(&mut self) {
        self.iteration = None;
    }

    pub(super) fn over(
        &mut self,
        stopped: Stopped,
        answer: Option<&Arc<str>>,
        error: Option<&RunError>,
    ) {
        self.over = true;
        self.iteration = None;
        self.emit(|| EventKind::TurnEnd {
            stopped: stopped.as_str().into(),
            answer: answer.cloned(),
            iterations: self.iterations,
            usage: self.usage,
            duration_ms: millis(self.began.elapsed()),
            error: error.map(ToString::to_string),
        });
        self.events.close();
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.over {
            self.over(Stopped::Cancelled, None, None);
        }
    }
}
