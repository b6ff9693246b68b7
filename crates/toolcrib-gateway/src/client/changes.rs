//! Counters that tell when a menu may have changed. Such a change only causes a check.

use std::{sync::Arc, time::Duration};

use futures_util::future::{pending, select_all};
use tokio::sync::watch;

use super::state::GatewayState;

/// How long further changes are collected after the first: servers announce them in bursts.
pub(crate) const SETTLE: Duration = Duration::from_millis(50);

/// Counters that change when a menu may have changed.
#[derive(Clone, Default)]
pub(crate) struct Changes {
    all: Vec<watch::Receiver<u64>>,
    /// Where the counters of another configuration come from.
    current: Option<Arc<GatewayState>>,
}

impl Changes {
    pub(crate) fn add(&mut self, changes: watch::Receiver<u64>) {
        self.all.push(changes);
    }

    /// The same, which follows a gateway to its next configuration.
    pub(crate) fn of(&self, current: Arc<GatewayState>) -> Self {
        Self { current: Some(current), ..self.clone() }.later()
    }

    /// Changes from now on.
    pub(crate) fn later(&self) -> Self {
        let mut changes = match &self.current {
            Some(current) => Self { current: Some(Arc::clone(current)), ..current.receivers() },
            None => self.clone(),
        };
        for change in &mut changes.all {
            change.mark_unchanged();
        }
        changes
    }

    /// Waits for a change, and for immediately following ones. Pending forever if no change is
    /// possible any more.
    pub(crate) async fn settled(&mut self) {
        loop {
            if self.all.is_empty() {
                return pending().await;
            }
            let waiting = self.all.iter_mut().map(|change| Box::pin(change.changed()));
            let (changed, at, _) = select_all(waiting).await;
            if changed.is_ok() {
                tokio::time::sleep(SETTLE).await;
                *self = self.later();
                return;
            }
            // The sender of that counter is gone.
            self.all.swap_remove(at);
        }
    }
}
