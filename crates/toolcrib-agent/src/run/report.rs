use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use toolcrib_core::{
    __internal::millis, CancellationToken, EventKind, ImageNotice, TurnEvents, Usage,
};
use toolcrib_engine::Turn;

use super::{guard::ReachedLimit, spending::Spending};
use crate::outcome::RunEnd;

/// Records the run's events, and sums up its usage. A run that is dropped midway still emits its
/// end as the last event.
pub(super) struct Report {
    events: Arc<TurnEvents>,
    parent_turn: Option<Arc<str>>,
    dry_run: bool,
    pub(super) cancellation: CancellationToken,
    pub(super) began: Instant,
    pub(super) iteration: Option<u32>,
    pub(super) iterations: u32,
    pub(super) usage: Usage,
    pub(super) spending: Spending,
    /// The limit or budget that forbids another request.
    pub(super) over: Option<ReachedLimit>,
    pub(super) image_notices: Vec<ImageNotice>,
    /// Whether text was shown since the last answer.
    shown: AtomicBool,
}

impl Report {
    pub(super) fn new(turn: &Turn, began: Instant, spending: Spending) -> Self {
        Self {
            events: Arc::clone(turn.events()),
            dry_run: turn.is_dry_run(),
            parent_turn: turn.parent().map(|parent| Arc::clone(parent.turn_id())),
            cancellation: turn.cancellation().clone(),
            began,
            iteration: None,
            iterations: 0,
            usage: Usage::NOTHING,
            spending,
            over: None,
            image_notices: Vec::new(),
            shown: AtomicBool::new(false),
        }
    }

    /// Adds usage of the run.
    pub(super) fn used(&mut self, usage: Usage) {
        self.usage += usage;
        self.spending.tally().tell_parents(usage);
    }

    /// Adds the usage of child agents.
    pub(super) fn add_children(&mut self) {
        self.usage += self.spending.tally().take_children();
    }

    /// Ends the run if a limit or budget forbids another request.
    pub(super) async fn may_request(&mut self) -> Result<(), RunEnd> {
        self.over = self.spending.over().await?;
        if self.over.is_some() { Err(RunEnd::over_limit()) } else { Ok(()) }
    }

    pub(super) fn emit(&self, kind: impl FnOnce() -> EventKind) {
        self.events.emit(self.iteration, kind);
    }

    /// Emits a text delta, unless it is empty.
    pub(super) fn text(&self, text: String) -> bool {
        let shown = !text.is_empty();
        if shown {
            self.shown.store(true, Ordering::Relaxed);
            self.emit(|| EventKind::ModelText { text });
        }
        shown
    }

    /// Whether text was shown since this was called last.
    pub(super) fn take_shown(&self) -> bool {
        self.shown.swap(false, Ordering::Relaxed)
    }

    /// Tells the user about an image.
    pub(super) fn image(&mut self, notice: ImageNotice) {
        self.emit(|| EventKind::ImageNoticed { notice: notice.clone() });
        self.image_notices.push(notice);
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
            dry_run: self.dry_run,
            parent_turn: self.parent_turn.clone(),
        });
    }

    pub(super) fn iteration(&mut self, number: u32) {
        self.iteration = Some(number);
        self.iterations = number;
    }

    pub(super) fn iteration_over(&mut self) {
        self.iteration = None;
    }

    pub(super) fn over(&mut self, end: &RunEnd) {
        self.iteration = None;
        self.emit(|| self.ended(end));
        self.events.close();
    }

    /// The last event.
    pub(super) fn ended(&self, end: &RunEnd) -> EventKind {
        EventKind::TurnEnd {
            stopped: end.end_reason.as_str().into(),
            answer: end.answer.clone(),
            iterations: self.iterations,
            usage: self.usage,
            duration_ms: millis(self.began.elapsed()),
            error: end.error.as_ref().map(ToString::to_string),
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // Nothing is emitted after the end.
        self.over(&RunEnd::cancelled());
    }
}
