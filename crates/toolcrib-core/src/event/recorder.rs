use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use super::{Event, EventKind, Events};
use crate::names::identity::Identity;

/// Numbers one run's events and delivers them to the engine's listeners and the run's own.
///
/// The task that drives an iteration records its events, so all listeners see the same order.
/// Iterations that run at the same time on several tasks record concurrently: numbers are unique,
/// but the delivery order between such iterations is unspecified. A [closed](Self::close) recorder
/// records nothing.
#[derive(Debug)]
pub struct TurnEvents {
    turn_id: Arc<str>,
    identity: Arc<Identity>,
    began: Instant,
    seq: AtomicU64,
    closed: AtomicBool,
    engine: Events,
    run: Events,
}

impl TurnEvents {
    /// A recorder for a run that begins now.
    pub fn new(turn_id: Arc<str>, identity: Arc<Identity>, engine: Events, run: Events) -> Self {
        Self {
            turn_id,
            identity,
            began: Instant::now(),
            seq: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            engine,
            run,
        }
    }

    /// The id of the recorded run.
    pub fn turn_id(&self) -> &Arc<str> {
        &self.turn_id
    }

    /// The identity that the run acts for.
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

    /// Whether there are listeners, for facts that are expensive to compute.
    pub fn has_listeners(&self) -> bool {
        let heard = self.engine.has_audience() || self.run.has_audience();
        heard && !self.closed.load(Ordering::Acquire)
    }

    /// Records an event; it is only built if there are listeners.
    pub fn emit(&self, iteration: Option<u32>, kind: impl FnOnce() -> EventKind) {
        if self.has_listeners() {
            self.write(iteration, kind());
        }
    }

    fn write(&self, iteration: Option<u32>, kind: EventKind) {
        let event = Arc::new(Event {
            kind,
            turn_id: Arc::clone(&self.turn_id),
            seq: self.seq.fetch_add(1, Ordering::Relaxed) + 1,
            iteration,
            at_ms: millis(self.began.elapsed()),
            identity: Arc::clone(&self.identity),
        });
        let mut failed = self.engine.deliver(&event);
        failed.append(&mut self.run.deliver(&event));
        // `agent.turn_end` stays the last event: a listener that panics at it is removed without a
        // report.
        if !matches!(event.kind, EventKind::TurnEnd { .. }) {
            for report in failed {
                self.write(iteration, report);
            }
        }
    }

    /// The span of a call as W3C `traceparent`, after its `tool.start`. `None` unless the engine's
    /// spans are [linked](Events::write_linked_spans).
    pub fn traceparent(&self, call_id: &str) -> Option<Arc<str>> {
        #[cfg(feature = "tracing")]
        return self.engine.spans()?.traceparent(&self.turn_id, call_id);
        #[cfg(not(feature = "tracing"))]
        {
            let _ = call_id;
            None
        }
    }

    /// Closes the run's events and streams.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.run.close();
    }
}

impl Drop for TurnEvents {
    fn drop(&mut self) {
        self.close();
    }
}

/// A duration in whole milliseconds, as used in events.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970; 0 if the clock is before that.
pub fn now_ms() -> u64 {
    millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}
