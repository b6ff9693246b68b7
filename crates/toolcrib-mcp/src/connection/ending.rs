use std::sync::{Arc, OnceLock};

use toolcrib_core::CancellationToken;

/// The reason of a close by this client.
pub(super) const CLOSED_HERE: &str = "it was closed here";

/// The end of a connection, and its reason. The first reason counts.
#[derive(Default)]
pub(super) struct Ending {
    /// Fires when no request begins any more, at the end at the latest.
    retired: CancellationToken,
    over: CancellationToken,
    reason: OnceLock<Arc<str>>,
}

/// Ends a connection when it is dropped.
pub(super) struct EndOnDrop(Arc<Ending>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(CLOSED_HERE);
    }
}

impl Ending {
    pub(super) fn on_drop(this: &Arc<Self>) -> EndOnDrop {
        EndOnDrop(Arc::clone(this))
    }

    pub(super) fn end(&self, reason: impl Into<Arc<str>>) {
        let _ = self.reason.set(reason.into());
        self.retired.cancel();
        self.over.cancel();
    }

    /// No request begins any more. Those that were sent may still get their responses.
    pub(super) fn retire(&self, reason: impl Into<Arc<str>>) {
        let _ = self.reason.set(reason.into());
        self.retired.cancel();
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.is_cancelled()
    }

    /// Done when no request begins any more.
    pub(super) async fn retired(&self) {
        self.retired.cancelled().await;
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    pub(super) fn token(&self) -> &CancellationToken {
        &self.over
    }

    /// Done when it has ended.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// The reason, once it has ended or no request begins any more.
    pub(super) fn reason(&self) -> Option<Arc<str>> {
        self.is_retired().then(|| self.reason.get().map_or_else(|| "it ended".into(), Arc::clone))
    }
}
