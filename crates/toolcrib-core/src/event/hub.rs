use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::sync::broadcast;

use super::{Event, EventKind};
use crate::{panic_text::panic_text, suggest::did_you_mean};

/// How many events wait for a slow reader of a stream before the oldest are dropped.
const STREAM_CAPACITY: usize = 1024;

/// A pattern that matches no event, so its listener would never be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no event matches `{}`; {help}", .pattern.escape_debug())]
pub struct UnknownEventError {
    /// The pattern.
    pub pattern: Arc<str>,
    /// The nearest pattern that matches one, or the domains that there are.
    pub help: String,
}

/// Where listeners subscribe. Cloning shares it.
///
/// An engine has one for all its runs, and each run has one of its own.
#[derive(Clone, Default)]
pub struct Events(Arc<Hub>);

#[derive(Default)]
struct Hub {
    listeners: Mutex<Arc<[Listener]>>,
    stream: Mutex<Streaming>,
    /// Listeners and streams; zero means that no event needs to be built.
    audience: AtomicUsize,
    next_id: AtomicU64,
}

/// Where the streams of a hub get their events from.
#[derive(Default)]
enum Streaming {
    /// Nobody reads.
    #[default]
    Idle,
    /// Somebody does.
    To(broadcast::Sender<Arc<Event>>),
    /// The run is over: whoever comes now finds the end.
    Over,
}

#[derive(Clone)]
struct Listener {
    id: u64,
    pattern: Arc<str>,
    call: Arc<dyn Fn(&Event) + Send + Sync>,
}

impl Listener {
    fn wants(&self, name: &str) -> bool {
        matches(&self.pattern, name)
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

fn check(pattern: &Arc<str>) -> Result<(), UnknownEventError> {
    if EventKind::NAMES.iter().any(|name| matches(pattern, name)) {
        return Ok(());
    }
    let domains = EventKind::NAMES.iter().filter_map(|name| name.split_once('.')).map(|(d, _)| d);
    let mut domains: Vec<_> = domains.map(|domain| format!("{domain}.*")).collect();
    domains.dedup();
    let help = if pattern.contains('*') {
        did_you_mean(pattern, domains.iter().map(String::as_str))
    } else {
        did_you_mean(pattern, EventKind::NAMES)
    };
    let help = help.unwrap_or_else(|| format!("the domains are `{}`", domains.join("`, `")));
    Err(UnknownEventError { pattern: Arc::clone(pattern), help })
}

impl Events {
    /// A hub without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls a function for each event whose name matches: exactly (`tools.offered`), by domain
    /// (`tools.*`), or all (`*`).
    ///
    /// Listeners run inline, in the order in which they came, on the run's own time: keep them
    /// short, or use [`stream`](Self::stream). One that panics is removed and reported as
    /// `events.listener_failed`. Dropping the handle does not unsubscribe.
    ///
    /// # Errors
    /// [`UnknownEventError`] when no event has such a name: the listener would never be called.
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Subscription, UnknownEventError> {
        let pattern = pattern.into();
        check(&pattern)?;
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let added = Listener { id, pattern, call: Arc::new(listener) };
        let mut listeners = lock(&self.0.listeners);
        *listeners = listeners.iter().cloned().chain([added]).collect();
        self.0.audience.fetch_add(1, Ordering::Release);
        Ok(Subscription { events: self.clone(), id })
    }

    /// All events as a bounded queue that never slows the run: a reader that falls more than
    /// 1,024 events behind loses the oldest and is told so by `events.lagged`.
    ///
    /// A run's stream ends after `agent.turn_end`, and at once when it is asked for later; an
    /// engine's ends when the engine is gone.
    pub fn stream(&self) -> EventStream {
        let mut stream = lock(&self.0.stream);
        let receiver = match &*stream {
            Streaming::To(sender) => sender.subscribe(),
            Streaming::Over => broadcast::Sender::new(1).subscribe(),
            Streaming::Idle => {
                let (sender, receiver) = broadcast::channel(STREAM_CAPACITY);
                *stream = Streaming::To(sender);
                self.0.audience.fetch_add(1, Ordering::Release);
                receiver
            }
        };
        EventStream { receiver, ahead: None }
    }

    /// Whether anybody listens.
    pub(super) fn has_audience(&self) -> bool {
        self.0.audience.load(Ordering::Acquire) > 0
    }

    /// Hands an event to everybody. Gives back the reports of the listeners that it removed
    /// because they panicked.
    pub(super) fn deliver(&self, event: &Arc<Event>) -> Vec<EventKind> {
        let listeners = Arc::clone(&lock(&self.0.listeners));
        let mut failed = Vec::new();
        for listener in listeners.iter().filter(|listener| listener.wants(event.kind.name())) {
            let outcome = catch_unwind(AssertUnwindSafe(|| (listener.call)(event)));
            if let Err(panic) = outcome {
                self.remove(listener.id);
                failed.push(EventKind::ListenerFailed {
                    pattern: Arc::clone(&listener.pattern),
                    error: panic_text(&*panic).to_owned(),
                });
            }
        }
        let mut stream = lock(&self.0.stream);
        if let Streaming::To(sender) = &*stream
            && sender.send(Arc::clone(event)).is_err()
        {
            // All readers have gone.
            *stream = Streaming::Idle;
            self.0.audience.fetch_sub(1, Ordering::Release);
        }
        failed
    }

    /// Ends all streams, once what they hold is read.
    pub(super) fn close(&self) {
        let before = std::mem::replace(&mut *lock(&self.0.stream), Streaming::Over);
        if let Streaming::To(_) = before {
            self.0.audience.fetch_sub(1, Ordering::Release);
        }
    }

    fn remove(&self, id: u64) {
        let mut listeners = lock(&self.0.listeners);
        if listeners.iter().any(|listener| listener.id == id) {
            *listeners = listeners.iter().filter(|l| l.id != id).cloned().collect();
            self.0.audience.fetch_sub(1, Ordering::Release);
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("listeners", &lock(&self.0.listeners).len()).finish()
    }
}

/// A listener's handle.
#[derive(Debug, Clone)]
pub struct Subscription {
    events: Events,
    id: u64,
}

impl Subscription {
    /// Removes the listener. Doing it twice is harmless.
    pub fn unsubscribe(&self) {
        self.events.remove(self.id);
    }
}

/// Events as a queue.
#[derive(Debug)]
pub struct EventStream {
    receiver: broadcast::Receiver<Arc<Event>>,
    ahead: Option<Arc<Event>>,
}

impl EventStream {
    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        if let Some(event) = self.ahead.take() {
            return Some(event);
        }
        let mut missed = 0;
        loop {
            match self.receiver.recv().await {
                Ok(event) if missed == 0 => return Some(event),
                Ok(event) => {
                    let lagged =
                        Event { kind: EventKind::Lagged { missed }, ..Event::clone(&event) };
                    self.ahead = Some(event);
                    return Some(Arc::new(lagged));
                }
                Err(broadcast::error::RecvError::Lagged(n)) => missed += n,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// A lock that a panicking holder leaves usable: what it guards is replaced whole, never half.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
