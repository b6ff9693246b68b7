use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Event, EventKind, Events};
use crate::identity::Identity;

/// One run's pen: numbers its events and hands them to the engine's listeners and the run's own.
///
/// The events of an iteration are written by the task that drives it, so their order is one for
/// everybody. Iterations that run at the same time on several tasks write side by side: numbers are
/// unique, and between such iterations nothing is said about the order in which listeners hear.
/// Once [closed](Self::close) it writes nothing more.
#[derive(Debug)]
pub struct RunEvents {
    run_id: Arc<str>,
    identity: Arc<Identity>,
    began: Instant,
    seq: AtomicU64,
    closed: AtomicBool,
    engine: Events,
    run: Events,
}

impl RunEvents {
    /// The pen of a run that begins now.
    pub fn new(run_id: Arc<str>, identity: Arc<Identity>, engine: Events, run: Events) -> Self {
        Self {
            run_id,
            identity,
            began: Instant::now(),
            seq: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            engine,
            run,
        }
    }

    /// The run's id.
    pub fn run_id(&self) -> &Arc<str> {
        &self.run_id
    }

    /// Whom the run acts for.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// When the run began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// The run's own hub.
    pub fn run(&self) -> &Events {
        &self.run
    }

    /// Whether somebody listens: for what has to be worked out before it can be told.
    pub fn is_heard(&self) -> bool {
        let heard = self.engine.has_audience() || self.run.has_audience();
        heard && !self.closed.load(Ordering::Acquire)
    }

    /// Writes an event; it is only made when somebody listens.
    pub fn emit(&self, iteration: Option<u32>, kind: impl FnOnce() -> EventKind) {
        if self.is_heard() {
            self.write(iteration, kind());
        }
    }

    fn write(&self, iteration: Option<u32>, kind: EventKind) {
        let event = Arc::new(Event {
            kind,
            run_id: Arc::clone(&self.run_id),
            seq: self.seq.fetch_add(1, Ordering::Relaxed) + 1,
            iteration,
            at_ms: millis(self.began.elapsed()),
            identity: Arc::clone(&self.identity),
        });
        let mut failed = self.engine.deliver(&event);
        failed.append(&mut self.run.deliver(&event));
        // `agent.turn_end` stays the last event: who panics at it is removed without a report.
        if !matches!(event.kind, EventKind::TurnEnd { .. }) {
            for report in failed {
                self.write(iteration, report);
            }
        }
    }

    /// Ends the run's events and its streams.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.run.close();
    }
}

impl Drop for RunEvents {
    fn drop(&mut self) {
        self.close();
    }
}

/// A duration as events carry it: whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
