//! The events of a run, as its session keeps them.

use std::{
    collections::HashSet,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    __internal::{millis, now_ms},
    Digest, Event, EventKind, Events, SessionRecord, Subscription, TracedEvent,
};
use toolcrib_engine::Redactor;

/// The limit of the events of a run, in bytes. Beyond it only the end of each model request and of
/// each call is kept: a sum of the usage stays right.
const MAX_BYTES: u64 = 1024 * 1024;

/// The limit of a list of tools in one event.
const MAX_TOOLS: usize = 512;

/// The limit of a text in an event, in bytes.
const MAX_TEXT: usize = 4 * 1024;

/// A listener that collects the events of a run until they are written with the next records of its
/// session. It costs no write, and no wait for the disk.
///
/// Texts that the session contains anyway are left out: the model's text, the arguments and results
/// of calls.
pub(super) struct Trace {
    waiting: Arc<Mutex<PendingEvents>>,
    redactor: Redactor,
    /// The size of the written events.
    written: AtomicU64,
    subscription: Option<Subscription>,
}

#[derive(Default)]
struct PendingEvents {
    clock: TurnClock,
    events: Vec<TracedEvent>,
    /// The menus whose tools were listed.
    listed: HashSet<Digest>,
}

/// One clock over all processes of a turn: events count from the beginning of the turn, also where
/// another process began it.
#[derive(Default)]
struct TurnClock {
    /// When another process began the turn, in milliseconds since 1970.
    turn_began_ms: Option<u64>,
    /// The time from there to the beginning of this process, in milliseconds. Measured once, at the
    /// first event: a change of the system's clock does not reorder the events of a process.
    ahead_ms: Option<u64>,
}

impl TurnClock {
    /// The time of an event in the turn, from that in this process.
    fn in_turn(&mut self, at_ms: u64) -> u64 {
        let Some(turn_began_ms) = self.turn_began_ms else { return at_ms };
        let measured = || now_ms().saturating_sub(turn_began_ms).saturating_sub(at_ms);
        self.ahead_ms.get_or_insert_with(measured).saturating_add(at_ms)
    }
}

impl Trace {
    /// Begins to listen. `turn_began_ms` is the time at which another process began the turn, in
    /// milliseconds since 1970.
    pub(super) fn of(events: &Events, redactor: Redactor, turn_began_ms: Option<u64>) -> Self {
        let clock = TurnClock { turn_began_ms, ahead_ms: None };
        let waiting = Arc::new(Mutex::new(PendingEvents { clock, ..PendingEvents::default() }));
        let heard = Arc::clone(&waiting);
        // Every hub has the pattern `*`.
        let subscription = events.on("*", move |event| heard.lock().note(event)).ok();
        Self { waiting, redactor, written: AtomicU64::new(0), subscription }
    }

    /// Adds the end of the run, which listeners receive after it was written.
    pub(super) fn end(&self, end: &EventKind, took: Duration) {
        self.waiting.lock().keep(end, None, millis(took));
    }

    /// The events since the last time, as records.
    pub(super) fn take(&self) -> Vec<SessionRecord> {
        let events = mem::take(&mut self.waiting.lock().events);
        events.into_iter().filter_map(|event| self.record(event)).collect()
    }

    fn record(&self, event: TracedEvent) -> Option<SessionRecord> {
        let TracedEvent { name, iteration, at_ms, fields } = event;
        let mut fields = match self.redactor.json(Value::Object(fields)) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.values_mut().for_each(shorten);
        let bytes = serde_json::to_string(&fields).map_or(0, |json| json.len() as u64);
        let is_full = self.written.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BYTES;
        if is_full {
            if !matches!(&*name, "model.end" | "tool.end" | "agent.turn_end") {
                return None;
            }
            fields.remove("cause");
            fields.remove("error");
            fields.remove("stages");
            fields.insert("trace_is_full".to_owned(), Value::Bool(true));
        }
        Some(SessionRecord::Event(TracedEvent { name, iteration, at_ms, fields }))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if let Some(subscription) = &self.subscription {
            subscription.unsubscribe();
        }
    }
}

impl PendingEvents {
    fn note(&mut self, event: &Event) {
        let mut kind = event.kind.clone();
        match &mut kind {
            // Pieces of the model's message, and a message that is not one of the turn's.
            EventKind::ModelText { .. }
            | EventKind::ModelReasoning { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::IterationStart
            | EventKind::IterationEnd { .. }
            | EventKind::DiscoveryStarted { .. }
            // Kept with the end of the run.
            | EventKind::TurnEnd { .. } => return,
            EventKind::TurnStart { message, .. } => *message = Arc::default(),
            EventKind::ToolStart { args, .. } => *args = Value::Null,
            EventKind::ToolEnd { value, .. } => *value = Arc::default(),
            EventKind::ToolsOffered { tools, origins, fingerprint, .. }
                if !self.listed.insert(*fingerprint) =>
            {
                tools.clear();
                origins.clear();
            }
            _ => {}
        }
        self.keep(&kind, event.iteration, event.at_ms);
    }

    fn keep(&mut self, kind: &EventKind, iteration: Option<u32>, at_ms: u64) {
        // Every event is an object.
        let Ok(Value::Object(mut fields)) = serde_json::to_value(kind) else { return };
        let of_content = match kind {
            EventKind::TurnStart { .. } => "message",
            EventKind::ToolStart { .. } => "args",
            EventKind::ToolEnd { .. } => "value",
            EventKind::TurnEnd { .. } => "answer",
            _ => "type",
        };
        fields.remove(of_content);
        fields.remove("type");
        let at_ms = self.clock.in_turn(at_ms);
        self.events.push(TracedEvent { name: kind.name().into(), iteration, at_ms, fields });
    }
}

/// Limits the length of lists and texts.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_TEXT => {
            let end = text.floor_char_boundary(MAX_TEXT);
            let missing = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("… ({missing} more bytes)"));
        }
        Value::Array(items) => {
            let missing = items.len().saturating_sub(MAX_TOOLS);
            items.truncate(MAX_TOOLS);
            items.iter_mut().for_each(shorten);
            if missing > 0 && items.first().is_some_and(Value::is_object) {
                items.push(json!({ "more": missing }));
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}
