#[cfg(feature = "tracing")]
use std::sync::Weak;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::{
    StreamExt as _,
    stream::{self, Stream},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

use super::{Event, EventKind};
use crate::{internal::panic_text::panic_text, text::suggest::did_you_mean};

/// Events queued for a slow stream reader before the oldest are dropped.
const STREAM_CAPACITY: usize = 1024;

/// An event pattern that matches no event, so its listener would never be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no event matches `{}`; {help}", .pattern.escape_debug())]
pub struct UnknownEventError {
    /// The pattern.
    pub pattern: Arc<str>,
    /// The nearest valid pattern, or the list of domains.
    pub help: String,
}

/// An event hub: listeners subscribe here. Clones share it.
///
/// An engine has one hub for all runs, and each run has its own.
#[derive(Clone, Default)]
pub struct Events(Arc<Hub>);

#[derive(Default)]
struct Hub {
    listeners: Mutex<Arc<[Listener]>>,
    stream: Mutex<StreamState>,
    /// Number of listeners and streams; zero means that no event needs to be built.
    audience: AtomicUsize,
    next_id: AtomicU64,
    /// The spans that are written, for requests and for the trace context of calls.
    #[cfg(feature = "tracing")]
    spans: Mutex<Weak<super::spans::SpanWriter>>,
}

/// The source of a hub's streams.
#[derive(Default)]
enum StreamState {
    /// No stream exists.
    #[default]
    Idle,
    /// Streams exist.
    To(broadcast::Sender<Arc<Event>>),
    /// The run is over: new streams end immediately.
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
    /// Listeners run inline, in order of registration, on the run's time: keep them short, or use
    /// [`stream`](Self::stream). A listener that panics is removed and reported as
    /// `events.listener_failed`. Dropping the handle does not unsubscribe.
    ///
    /// # Errors
    /// [`UnknownEventError`] if no event matches: the listener would never be called.
    pub fn on(
        &self,
        pattern: impl Into<Arc<str>>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Subscription, UnknownEventError> {
        let pattern = pattern.into();
        check(&pattern)?;
        Ok(self.listen(pattern, listener))
    }

    /// Adds a listener with a pattern that matches.
    pub(super) fn listen(
        &self,
        pattern: Arc<str>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Subscription {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let added = Listener { id, pattern, call: Arc::new(listener) };
        let mut listeners = lock(&self.0.listeners);
        *listeners = listeners.iter().cloned().chain([added]).collect();
        self.0.audience.fetch_add(1, Ordering::Release);
        Subscription { events: self.clone(), id }
    }

    /// All events as a bounded queue that never slows the run: a reader that falls more than 1,024
    /// events behind loses the oldest and receives `events.lagged`.
    ///
    /// A run's stream ends after `agent.turn_end`, and immediately if it is opened later. An
    /// engine's stream ends when the engine is dropped.
    pub fn stream(&self) -> EventStream {
        let mut stream = lock(&self.0.stream);
        let receiver = match &*stream {
            StreamState::To(sender) => sender.subscribe(),
            StreamState::Over => broadcast::Sender::new(1).subscribe(),
            StreamState::Idle => {
                let (sender, receiver) = broadcast::channel(STREAM_CAPACITY);
                *stream = StreamState::To(sender);
                self.0.audience.fetch_add(1, Ordering::Release);
                receiver
            }
        };
        EventStream::new(receiver)
    }

    /// The writer of spans that was added last.
    #[cfg(feature = "tracing")]
    pub(super) fn spans(&self) -> Option<Arc<super::spans::SpanWriter>> {
        lock(&self.0.spans).upgrade()
    }

    /// The listener of a writer of spans owns it.
    #[cfg(feature = "tracing")]
    pub(super) fn set_spans(&self, writer: &Arc<super::spans::SpanWriter>) {
        *lock(&self.0.spans) = Arc::downgrade(writer);
    }

    /// Whether there are listeners or streams.
    pub(super) fn has_audience(&self) -> bool {
        self.0.audience.load(Ordering::Acquire) > 0
    }

    /// Delivers an event to all listeners and streams. Returns reports of listeners that were
    /// removed because they panicked.
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
        if let StreamState::To(sender) = &*stream
            && sender.send(Arc::clone(event)).is_err()
        {
            // All readers are dropped.
            *stream = StreamState::Idle;
            self.0.audience.fetch_sub(1, Ordering::Release);
        }
        failed
    }

    /// Ends all streams after their queued events are read.
    pub(super) fn close(&self) {
        let before = std::mem::replace(&mut *lock(&self.0.stream), StreamState::Over);
        if let StreamState::To(_) = before {
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

crate::internal::debug_fields!(Events, events, listeners = lock(&events.0.listeners).len());

/// The handle that removes a listener.
#[derive(Debug, Clone)]
pub struct Subscription {
    events: Events,
    id: u64,
}

impl Subscription {
    /// Removes the listener from its hub. Idempotent.
    pub fn unsubscribe(&self) {
        self.events.remove(self.id);
    }
}

/// Events as a queue: a [`Stream`](futures_util::Stream), which a web handler can pass on.
pub struct EventStream(Pin<Box<dyn Stream<Item = Arc<Event>> + Send + Sync>>);

impl EventStream {
    fn new(receiver: broadcast::Receiver<Arc<Event>>) -> Self {
        let events = stream::unfold((receiver, None), |(mut receiver, ahead)| async move {
            let (event, ahead) = next(&mut receiver, ahead).await?;
            Some((event, (receiver, ahead)))
        });
        // It may be asked again after its end.
        Self(Box::pin(events.fuse()))
    }

    /// The next event; `None` at the end. An event is not lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        self.0.next().await
    }
}

impl Stream for EventStream {
    type Item = Arc<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        self.0.poll_next_unpin(cx)
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventStream")
    }
}

/// The next event, and the one that follows a report of lost ones.
async fn next(
    receiver: &mut broadcast::Receiver<Arc<Event>>,
    ahead: Option<Arc<Event>>,
) -> Option<(Arc<Event>, Option<Arc<Event>>)> {
    if let Some(event) = ahead {
        return Some((event, None));
    }
    let mut missed = 0;
    loop {
        match receiver.recv().await {
            Ok(event) if missed == 0 => return Some((event, None)),
            Ok(event) => {
                let lagged = Event { kind: EventKind::Lagged { missed }, ..Event::clone(&event) };
                return Some((Arc::new(lagged), Some(event)));
            }
            Err(broadcast::error::RecvError::Lagged(n)) => missed += n,
            Err(broadcast::error::RecvError::Closed) => return None,
        }
    }
}

/// Ignores poisoning: the guarded value is replaced whole, never partially.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
