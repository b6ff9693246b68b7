//! The outcome of a task, for all who wait for it.

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The outcome of a flight; `None` if its task was abandoned or broke off.
pub(super) type Outcome<T> = BoxFuture<'static, Option<T>>;

/// Makes both ends of a task. It is abandoned when `parent` fires, or with its outcome's future.
pub(super) fn flight<T: Send + 'static>(parent: &CancellationToken) -> (Landing<T>, Outcome<T>) {
    let (sender, outcome) = oneshot::channel();
    let abandoned = parent.child_token();
    let alive = abandoned.clone().drop_guard();
    let outcome = async move {
        let outcome = outcome.await.ok();
        drop(alive);
        outcome
    };
    (Landing { outcome: sender, abandoned }, outcome.boxed())
}

/// The task's end.
pub(super) struct Landing<T> {
    outcome: oneshot::Sender<T>,
    abandoned: CancellationToken,
}

impl<T> Landing<T> {
    /// Done when the task is no longer needed.
    pub(super) async fn abandoned(&self) {
        self.abandoned.cancelled().await;
    }

    /// Hands the outcome to all who wait.
    pub(super) fn land(self, outcome: T) {
        // Refused where no one waits any more.
        let _ = self.outcome.send(outcome);
    }
}
