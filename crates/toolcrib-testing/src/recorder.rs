//! A record of events for tests.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;

use serde_json::Value;
use tokio::{sync::Notify, time::timeout};
use toolcrib_core::{Event, EventKind, Events};

use crate::{clock::PATIENCE, fail::fail};

/// The maximum number of characters of an event's fields in a record.
const LONGEST: usize = 300;

/// Records all events that it receives. Clones share the record.
///
/// Attach it to event sources: [`EventRecorder::attach`] takes a hub (`engine.events()`),
/// [`EventRecorder::listener`] is for an agent's or a run's own `on`. It listens inline, so no
/// event is lost, and a call's events are recorded when the call ends. Neighbor: [`Events::stream`]
/// is a queue that loses events if its reader is slow.
///
/// Patterns are those of [`Events::on`]: a name (`tool.end`), a domain (`tool.*`), all (`*`).
/// Failed assertions print the whole record.
///
/// ```
/// use toolcrib_agent::{Agent, RunOptions};
/// use toolcrib_testing::{EventRecorder, model, paused};
///
/// let agent = Agent::builder().model(model().then("Hello.")).build()?;
/// let run = agent.run("Hi", RunOptions::default());
/// let seen = EventRecorder::new();
/// run.on("*", seen.listener())?;
/// paused(run);
///
/// seen.assert_order(["agent.turn_start", "model.start", "model.end", "agent.turn_end"]);
/// seen.assert_none("tool.*");
/// seen.assert_count("model.start", 1);
/// seen.assert_complete();
/// assert_eq!(seen.json_of("agent.turn_end")[0]["answer"], "Hello.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct EventRecorder(Arc<Record>);

#[derive(Default)]
struct Record {
    events: Mutex<Vec<Event>>,
    news: Notify,
}

impl EventRecorder {
    /// An unattached recorder; pass its [`listener`](Self::listener) to an `on`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A recorder of all later events of a hub.
    pub fn attach(events: &Events) -> Self {
        let recorder = Self::new();
        events.on("*", recorder.listener()).ok();
        recorder
    }

    /// A listener: `run.on("*", recorder.listener())`. Several may fill one record.
    pub fn listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let record = Arc::clone(&self.0);
        move |event| {
            record.events.lock().push(event.clone());
            record.news.notify_waiters();
        }
    }

    /// All events, in order.
    pub fn events(&self) -> Vec<Event> {
        self.0.events.lock().clone()
    }

    /// The names of all events, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.events.lock().iter().map(|event| event.kind.name()).collect()
    }

    /// The matching events, in order.
    pub fn of(&self, pattern: &str) -> Vec<Event> {
        let events = self.events().into_iter();
        events.filter(|event| matches(pattern, event.kind.name())).collect()
    }

    /// The matching events, each as the JSON object used in logs and files.
    pub fn json_of(&self, pattern: &str) -> Vec<Value> {
        self.of(pattern).iter().map(json).collect()
    }

    /// The number of matching events.
    pub fn count(&self, pattern: &str) -> usize {
        self.names().into_iter().filter(|name| matches(pattern, name)).count()
    }

    /// Clears the list of events.
    pub fn clear(&self) {
        self.0.events.lock().clear();
    }

    /// Waits for a matching event, and returns the first; an event in the record counts too. Needs
    /// a tokio runtime with time.
    ///
    /// # Panics
    /// If none arrives within 30 seconds of tokio's clock.
    pub async fn wait_for(&self, pattern: &str) -> Event {
        let found = timeout(PATIENCE, async {
            loop {
                let mut news = std::pin::pin!(self.0.news.notified());
                // Enabled before the check, so that an event in between is not missed.
                news.as_mut().enable();
                if let Some(event) = self.of(pattern).into_iter().next() {
                    return event;
                }
                news.await;
            }
        });
        match found.await {
            Ok(event) => event,
            Err(_) => fail(format!("no `{pattern}` came within {PATIENCE:?}{}", self.shown())),
        }
    }

    /// Fails unless matching events appear in this order; others may be between them.
    ///
    /// # Panics
    /// With the first missing event and the position where its search began.
    #[track_caller]
    pub fn assert_order<'a>(&self, patterns: impl IntoIterator<Item = &'a str>) {
        let names = self.names();
        let mut ahead = names.iter().enumerate();
        let mut trail = String::new();
        for pattern in patterns {
            match ahead.find(|(_, name)| matches(pattern, name)) {
                Some((at, _)) => trail.push_str(&format!("\n  {pattern}: at {}", at + 1)),
                None => fail(format!(
                    "expected these events in this order:{trail}\n  {pattern}: missing from here \
                     on{}",
                    self.shown()
                )),
            }
        }
    }

    /// Fails if an event matches.
    ///
    /// # Panics
    /// With the first matching event.
    #[track_caller]
    pub fn assert_none(&self, pattern: &str) {
        if let Some(at) = self.names().iter().position(|name| matches(pattern, name)) {
            fail(format!("expected no `{pattern}`, found one at {}{}", at + 1, self.shown()));
        }
    }

    /// Fails unless this many events match.
    ///
    /// # Panics
    /// With the actual number.
    #[track_caller]
    pub fn assert_count(&self, pattern: &str, expected: usize) {
        let count = self.count(pattern);
        if count != expected {
            fail(format!("expected {expected} of `{pattern}`, found {count}{}", self.shown()));
        }
    }

    /// Fails unless the record of each run is complete: numbered from 1 without a gap, each start
    /// has its end, and `agent.turn_end` is the last event if there was an `agent.turn_start`. The
    /// recorder must have been attached to everything from the beginning, and the runs must have
    /// ended.
    ///
    /// # Panics
    /// With the run and the missing part.
    #[track_caller]
    pub fn assert_complete(&self) {
        let events = self.events();
        let mut runs: Vec<(&str, Vec<&Event>)> = Vec::new();
        for event in &events {
            match runs.iter_mut().find(|(run, _)| *run == &*event.turn_id) {
                Some((_, of_run)) => of_run.push(event),
                None => runs.push((&event.turn_id, vec![event])),
            }
        }
        for (run, events) in runs {
            if let Err(problem) = complete(&events) {
                fail(format!("the record of run {run} is incomplete: {problem}{}", self.shown()));
            }
        }
    }

    fn shown(&self) -> String {
        format!("\nthe record:\n{self}")
    }
}

toolcrib_core::__internal::debug_fields!(EventRecorder, recorder, recorder.names());

/// One line per event: its position in the record, its iteration, its name, its fields.
impl fmt::Display for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.events();
        if events.is_empty() {
            return writeln!(f, "  (no events)");
        }
        let several =
            events.iter().any(|event| Some(&event.turn_id) != events.first().map(|e| &e.turn_id));
        for (position, event) in events.iter().enumerate() {
            let iteration = event.iteration.map_or_else(String::new, |n| n.to_string());
            write!(f, "{:>4} {iteration:>3}  {:<26}", position + 1, event.kind.name())?;
            if several {
                write!(f, " run {}", event.turn_id)?;
            }
            let fields = fields(event);
            let head: String = fields.chars().take(LONGEST).collect();
            let more = if head.len() < fields.len() { "…" } else { "" };
            writeln!(f, " {head}{more}")?;
        }
        Ok(())
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

fn json(event: &Event) -> Value {
    serde_json::to_value(event).unwrap_or_default()
}

/// The fields of an event that the line does not show otherwise.
fn fields(event: &Event) -> String {
    let mut fields = json(event);
    if let Value::Object(map) = &mut fields {
        for shown in ["type", "turn_id", "seq", "iteration", "at_ms", "identity"] {
            map.shift_remove(shown);
        }
    }
    fields.to_string()
}

fn complete(events: &[&Event]) -> Result<(), String> {
    for (position, event) in events.iter().enumerate() {
        let expected = u64::try_from(position).unwrap_or_default() + 1;
        if event.seq != expected {
            return Err(format!("the event number {expected} is missing"));
        }
    }
    let mut open: HashMap<String, i64> = HashMap::new();
    for event in events {
        let (what, change) = match &event.kind {
            EventKind::IterationStart => ("agent.iteration_start".to_owned(), 1),
            EventKind::IterationEnd { .. } => ("agent.iteration_start".to_owned(), -1),
            EventKind::ModelStart { .. } => ("model.start".to_owned(), 1),
            EventKind::ModelEnd { .. } => ("model.start".to_owned(), -1),
            EventKind::DiscoveryStarted { .. } => ("tools.discovery_started".to_owned(), 1),
            EventKind::DiscoveryCompleted { .. } | EventKind::DiscoveryFailed { .. } => {
                ("tools.discovery_started".to_owned(), -1)
            }
            EventKind::ToolStart { call_id, .. } => (format!("tool.start of call `{call_id}`"), 1),
            EventKind::ToolEnd { call_id, .. } => (format!("tool.start of call `{call_id}`"), -1),
            _ => continue,
        };
        let count = open.entry(what.clone()).or_default();
        *count += change;
        if *count < 0 {
            return Err(format!("an end precedes its {what}"));
        }
    }
    if let Some((what, _)) = open.iter().find(|(_, count)| **count > 0) {
        return Err(format!("a {what} has no end"));
    }
    let has_turn = events.iter().any(|event| matches!(event.kind, EventKind::TurnStart { .. }));
    let ended = |event: &&&Event| matches!(event.kind, EventKind::TurnEnd { .. });
    if has_turn && !events.last().is_some_and(|event| ended(&event)) {
        return Err("`agent.turn_end` is not its last event".to_owned());
    }
    Ok(())
}
