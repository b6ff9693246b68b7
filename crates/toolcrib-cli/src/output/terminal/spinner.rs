//! A sign of life while the model or a tool works.

use std::{
    env,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use super::{Stream, clear, draw};

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The time between two frames.
const FRAME: Duration = Duration::from_millis(120);

/// Work that ends within this time has no spinner.
const DELAY: Duration = Duration::from_millis(300);

/// A pause within a text that is shorter has no spinner.
const TEXT_DELAY: Duration = Duration::from_secs(1);

/// The work that is under way.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Listing tools, or waiting for the model; and its beginning.
    pub(crate) phase: Option<(&'static str, Instant)>,
    /// The arrival of the last text, while a text is being shown.
    pub(crate) text_at: Option<Instant>,
    pub(crate) calls: Vec<Call>,
}

/// A running call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: Arc<str>,
    pub(crate) tool: String,
    pub(crate) args: String,
    pub(crate) since: Instant,
    pub(crate) progress: String,
}

impl Activity {
    /// The text of the spinner, if there is one.
    fn label(&self, now: Instant) -> Option<String> {
        let seconds = |since: Instant| now.saturating_duration_since(since).as_secs();
        let is_due = |since: Instant, delay| now.saturating_duration_since(since) >= delay;
        match (self.calls.as_slice(), self.text_at, self.phase) {
            ([call], ..) if is_due(call.since, DELAY) => {
                let Call { tool, since, progress, .. } = call;
                let gap = if progress.is_empty() { "" } else { "  " };
                Some(format!("{tool} {} s{gap}{progress}", seconds(*since)))
            }
            ([first, _, ..], ..) if is_due(first.since, DELAY) => {
                let names: Vec<_> = self.calls.iter().map(|call| call.tool.as_str()).collect();
                let (number, seconds) = (names.len(), seconds(first.since));
                Some(format!("{number} calls {seconds} s  {}", names.join(", ")))
            }
            ([], Some(at), _) if is_due(at, TEXT_DELAY) => Some(format!("{} s", seconds(at))),
            ([], None, Some((what, since))) if is_due(since, DELAY) => {
                Some(format!("{what} {} s", seconds(since)))
            }
            _ => None,
        }
    }
}

/// Draws the activity until it is dropped, if standard error is a terminal that permits it.
pub(crate) struct Spinner {
    activity: Arc<Mutex<Activity>>,
    /// The thread, and its end when this is dropped.
    drawing: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Spinner {
    pub(crate) fn new() -> Self {
        let activity = Arc::new(Mutex::new(Activity::default()));
        let is_possible = Stream::Err.columns().is_some()
            && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        let drawing = is_possible.then(|| {
            let (end, ended) = mpsc::channel();
            let activity = Arc::clone(&activity);
            let work = move || turn(&activity, &ended);
            // A thread: the runtime may be busy. Without one there is no spinner.
            let thread = thread::Builder::new().name("spinner".into()).spawn(work).ok()?;
            Some((end, thread))
        });
        Self { activity, drawing: drawing.flatten() }
    }

    /// Whether it is drawn.
    pub(crate) fn is_drawn(&self) -> bool {
        self.drawing.is_some()
    }

    pub(crate) fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.drawing.take() {
            drop(end);
            let _ = thread.join();
            clear();
        }
    }
}

/// Draws a frame after the other.
fn turn(activity: &Mutex<Activity>, ended: &mpsc::Receiver<()>) {
    for frame in FRAMES.iter().cycle() {
        if !matches!(ended.recv_timeout(FRAME), Err(RecvTimeoutError::Timeout)) {
            return;
        }
        // The lock is kept: a label must not be drawn after its work has ended.
        let activity = activity.lock();
        match activity.label(Instant::now()) {
            Some(label) => draw(&format!("{frame} {label}")),
            None => clear(),
        }
    }
}
