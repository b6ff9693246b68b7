//! Notifications of a changed menu. A possible change only causes a check: clients are notified if
//! their known menu differs from the present one.

use std::{sync::Arc, time::Duration};

use futures_util::future::{pending, select_all};
use rmcp::{Peer, RoleServer, service::SubscriptionContext};
use tokio::sync::watch;
use toolcrib_core::CancellationToken;

use super::{
    Serving,
    session::{Purpose, Scope, Session},
};

/// How long further changes are collected after the first: servers announce them in bursts.
const SETTLE: Duration = Duration::from_millis(50);

/// Counters that change when a menu may have changed.
#[derive(Clone, Default)]
pub(super) struct Changes(Vec<watch::Receiver<u64>>);

impl Changes {
    pub(super) fn add(&mut self, changes: watch::Receiver<u64>) {
        self.0.push(changes);
    }

    /// Changes from now on.
    pub(super) fn later(&self) -> Self {
        let mut changes = self.clone();
        for change in &mut changes.0 {
            change.mark_unchanged();
        }
        changes
    }

    /// Waits for a change, and for immediately following ones. Pending forever if no change is
    /// possible any more.
    async fn settled(&mut self) {
        loop {
            if self.0.is_empty() {
                return pending().await;
            }
            let waiting = self.0.iter_mut().map(|change| Box::pin(change.changed()));
            let (changed, at, _) = select_all(waiting).await;
            if changed.is_ok() {
                tokio::time::sleep(SETTLE).await;
                *self = self.later();
                return;
            }
            // The sender of that counter is gone.
            self.0.swap_remove(at);
        }
    }
}

/// Notifies a session's client of changes until the session ends.
pub(super) fn announce_to(
    serving: &Serving,
    session: &Arc<Session>,
    ended: CancellationToken,
    client: Peer<RoleServer>,
) {
    let recheck = Arc::clone(&session.recheck);
    let session = Arc::downgrade(session);
    let mut changes = serving.gateway.changes.later();
    let closing = serving.cancellation.clone();
    serving.running.spawn(async move {
        loop {
            tokio::select! {
                () = ended.cancelled() => return,
                () = closing.cancelled() => return,
                () = recheck.notified() => {}
                () = changes.settled() => {}
            }
            let Some(session) = session.upgrade() else { return };
            if session.menu_changed().await && client.notify_tool_list_changed().await.is_err() {
                return;
            }
        }
    });
}

/// Notifies a subscriber of the stateless era, until it or the gateway ends. The menu of such a
/// client is unknown: it is notified at the first possible change.
pub(super) async fn tell(
    serving: &Serving,
    scope: Scope,
    mut changes: Changes,
    subscription: SubscriptionContext,
) {
    let mut known = None;
    loop {
        tokio::select! {
            () = subscription.cancelled() => return,
            () = serving.cancellation.cancelled() => return,
            () = changes.settled() => {}
        }
        let Ok(step) = scope.step(Purpose::Look).await else { continue };
        let menu = step.iteration.menu().fingerprint();
        if known.replace(menu) != Some(menu)
            && subscription.sink().notify_tool_list_changed().await.is_err()
        {
            return;
        }
    }
}
