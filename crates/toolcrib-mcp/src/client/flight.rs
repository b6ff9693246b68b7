//! Work that is done once for all who wait for it.

use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Makes both ends of some work. It is abandoned when `parent` fires, or when nobody waits for it
/// anymore and nobody [keeps](Flight::keep) it.
pub(super) fn flight<T>(parent: &CancellationToken) -> (Landing<T>, Flight<T>) {
    let (sender, outcome) = watch::channel(None);
    let abandoned = parent.child_token();
    let alive = Arc::new(abandoned.clone().drop_guard());
    (Landing { outcome: sender, abandoned }, Flight { outcome, alive })
}

/// The end of whoever does the work.
pub(super) struct Landing<T> {
    outcome: watch::Sender<Option<T>>,
    abandoned: CancellationToken,
}

impl<T> Landing<T> {
    /// Done when the work is no longer wanted.
    pub(super) async fn abandoned(&self) {
        self.abandoned.cancelled().await;
    }

    /// Hands the outcome to all who wait.
    pub(super) fn land(&self, outcome: T) {
        self.outcome.send_replace(Some(outcome));
    }
}

/// The end of one who waits.
#[derive(Clone)]
pub(super) struct Flight<T> {
    outcome: watch::Receiver<Option<T>>,
    alive: Arc<DropGuard>,
}

impl<T: Clone> Flight<T> {
    /// What came of the work; nothing if it was abandoned or broke off.
    pub(super) async fn landed(mut self) -> Option<T> {
        let outcome = self.outcome.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }

    /// Remembers the work, without keeping it, so that others can join.
    pub(super) fn remember(&self) -> InFlight<T> {
        InFlight { outcome: self.outcome.clone(), alive: Arc::downgrade(&self.alive) }
    }

    /// What keeps the work going although nobody waits for it.
    pub(super) fn keep(&self) -> Kept {
        Kept { _alive: Arc::clone(&self.alive) }
    }
}

/// Work that others may join while somebody waits for it or it is kept.
pub(super) struct InFlight<T> {
    outcome: watch::Receiver<Option<T>>,
    alive: Weak<DropGuard>,
}

impl<T: Clone> InFlight<T> {
    /// Waits for it too; nothing when it has landed, was abandoned or broke off.
    pub(super) fn join(&self) -> Option<Flight<T>> {
        let alive = self.alive.upgrade()?;
        let under_way = self.outcome.has_changed().is_ok() && self.outcome.borrow().is_none();
        under_way.then(|| Flight { outcome: self.outcome.clone(), alive })
    }
}

/// Keeps work going until it is dropped.
pub(super) struct Kept {
    _alive: Arc<DropGuard>,
}
