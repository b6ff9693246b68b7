use std::sync::{Arc, OnceLock};

use toolcrib_core::CancellationToken;

/// The reason of what was ended by whoever opened it.
pub(super) const CLOSED_HERE: &str = "it was closed here";

/// That a connection is over, and why. Whoever notices first says it.
#[derive(Default)]
pub(super) struct Ending {
    over: CancellationToken,
    reason: OnceLock<Arc<str>>,
}

impl Ending {
    pub(super) fn end(&self, reason: impl Into<Arc<str>>) {
        let _ = self.reason.set(reason.into());
        self.over.cancel();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    pub(super) fn token(&self) -> &CancellationToken {
        &self.over
    }

    /// Done when it is over.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Why, once it is over.
    pub(super) fn reason(&self) -> Option<Arc<str>> {
        self.is_over().then(|| self.reason.get().map_or_else(|| "it ended".into(), Arc::clone))
    }
}
