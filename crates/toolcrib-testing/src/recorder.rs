//! What happened, kept for a test to look at.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{sync::Notify, time::timeout};
use toolcrib_core::{Event, EventKind, Events};

use crate::{
    clock::PATIENCE,
    fail::{fail, lock},
};

/// How much of an event's fields stands in a record, in characters.
const LONGEST: usize = 300;

/// Keeps all events that it hears. Cloning shares the record.
///
/// It attaches to whatever has listeners: [`EventRecorder::attach`] takes a hub
/// (`engine.events()`), [`EventRecorder::listener`] is for an agent's or a run's own `on`. It
/// listens inline, so nothing is lost and what a call caused is there when the call is over.
/// Neighbour: [`Events::stream`] is a queue that a slow reader loses events of.
///
/// Patterns are those of [`Events::on`]: a name (`tool.end`), a domain (`tool.*`), all (`*`).
/// What fails prints the whole record.
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
    /// A recorder that hears nothing yet; give its [`listener`](Self::listener) to an `on`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A recorder of all that a hub says from now on.
    pub fn attach(events: &Events) -> Self {
        let recorder = Self::new();
        events.on("*", recorder.listener()).ok();
        recorder
    }

    /// What listens: `run.on("*", recorder.listener())`. Several may feed one record.
    pub fn listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let record = Arc::clone(&self.0);
        move |event| {
            lock(&record.events).push(event.clone());
            record.news.notify_waiters();
        }
    }

    /// All events, as they came.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.0.events).clone()
    }

    /// Their names, as they came.
    pub fn names(&self) -> Vec<&'static str> {
        lock(&self.0.events).iter().map(|event| event.kind.name()).collect()
    }

    /// The events that match, as they came.
    pub fn of(&self, pattern: &str) -> Vec<Event> {
        let events = self.events().into_iter();
        events.filter(|event| matches(pattern, event.kind.name())).collect()
    }

    /// The events that match, each as the JSON object that logs and files carry.
    pub fn json_of(&self, pattern: &str) -> Vec<Value> {
        self.of(pattern).iter().map(json).collect()
    }

    /// How many match.
    pub fn count(&self, pattern: &str) -> usize {
        self.names().into_iter().filter(|name| matches(pattern, name)).count()
    }

    /// Forgets what was heard until now.
    pub fn clear(&self) {
        lock(&self.0.events).clear();
    }

    /// Waits until an event that matches has come, and gives the first. One that is there already
    /// counts. Needs a tokio runtime with time.
    ///
    /// # Panics
    /// When none has come within 30 seconds of tokio's clock.
    pub async fn wait_for(&self, pattern: &str) -> Event {
        let found = timeout(PATIENCE, async {
            loop {
                let mut news = std::pin::pin!(self.0.news.notified());
                // Before looking, so that what comes in between is not missed.
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

    /// Fails unless events that match came in this order; others may stand between them.
    ///
    /// # Panics
    /// Naming the first that is missing and where the search for it began.
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

    /// Fails when an event matches.
    ///
    /// # Panics
    /// Naming the first that does.
    #[track_caller]
    pub fn assert_none(&self, pattern: &str) {
        if let Some(at) = self.names().iter().position(|name| matches(pattern, name)) {
            fail(format!(
                "expected no `{pattern}`, and there is one at {}{}",
                at + 1,
                self.shown()
            ));
        }
    }

    /// Fails unless so many events match.
    ///
    /// # Panics
    /// Saying how many do.
    #[track_caller]
    pub fn assert_count(&self, pattern: &str, expected: usize) {
        let count = self.count(pattern);
        if count != expected {
            fail(format!("expected {expected} of `{pattern}`, there are {count}{}", self.shown()));
        }
    }

    /// Fails unless the record of each run is whole: numbered from 1 without a gap, each start
    /// has its end, and `agent.turn_end` is the last event where there was an `agent.turn_start`.
    /// It must have listened to everything from the beginning, and the runs must be over.
    ///
    /// # Panics
    /// Naming the run and what is missing.
    #[track_caller]
    pub fn assert_complete(&self) {
        let events = self.events();
        let mut runs: Vec<(&str, Vec<&Event>)> = Vec::new();
        for event in &events {
            match runs.iter_mut().find(|(run, _)| *run == &*event.run_id) {
                Some((_, of_run)) => of_run.push(event),
                None => runs.push((&event.run_id, vec![event])),
            }
        }
        for (run, events) in runs {
            if let Err(problem) = complete(&events) {
                fail(format!("the record of run {run} is not whole: {problem}{}", self.shown()));
            }
        }
    }

    fn shown(&self) -> String {
        format!("\nthe record:\n{self}")
    }
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventRecorder").field(&self.names()).finish()
    }
}

/// A line per event: its place in the record, its iteration, its name, its fields.
impl fmt::Display for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.events();
        if events.is_empty() {
            return writeln!(f, "  (nothing was heard)");
        }
        let several =
            events.iter().any(|event| Some(&event.run_id) != events.first().map(|e| &e.run_id));
        for (position, event) in events.iter().enumerate() {
            let iteration = event.iteration.map_or_else(String::new, |n| n.to_string());
            write!(f, "{:>4} {iteration:>3}  {:<26}", position + 1, event.kind.name())?;
            if several {
                write!(f, " run {}", event.run_id)?;
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

/// What an event says beside what stands in front of it.
fn fields(event: &Event) -> String {
    let mut fields = json(event);
    if let Value::Object(map) = &mut fields {
        for shown in ["type", "run_id", "seq", "iteration", "at_ms", "identity"] {
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
            return Err(format!("an end stands before its {what}"));
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
