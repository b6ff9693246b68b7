//! Notifications of a changed menu. A possible change only causes a check: clients are notified if
//! their known menu differs from the present one.

use std::{sync::Arc, time::Duration};

use futures_util::future::{pending, select_all};
use rmcp::{
    ErrorData,
    model::{
        GetMeta as _, Notification, NotificationMetaObject, RequestId, ServerNotification,
        SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
        SubscriptionsListenRequestParams, SubscriptionsListenResult,
    },
};
use serde_json::Value;
use tokio::sync::watch;
use toolcrib_core::CancellationToken;

use super::{
    Serving,
    exchange::{Exchange, Outgoing},
    handshake::server_config,
    session::{Purpose, Session},
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
    mut changes: Changes,
    client: Outgoing,
) {
    let recheck = Arc::clone(&session.recheck);
    let session = Arc::downgrade(session);
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
            if session.menu_changed().await && !client.notify(list_changed()).await {
                return;
            }
        }
    });
}

/// `subscriptions/listen`: notifies a subscriber of the stateless era, until it or the gateway ends.
/// The menu of such a client is unknown: it is notified at the first possible change.
pub(super) async fn listen(
    exchange: &Exchange,
    params: Value,
) -> Result<SubscriptionsListenResult, ErrorData> {
    let _place = exchange.place()?;
    let requested: SubscriptionsListenRequestParams =
        serde_json::from_value(params).map_err(|error| {
            let message =
                format!("these are not the parameters of `subscriptions/listen`: {error}");
            ErrorData::invalid_params(message, None)
        })?;
    let config = server_config();
    let accepted = requested.notifications.supported_by(&config.capabilities);
    let is_accepted = accepted.tools_list_changed == Some(true);
    if exchange.client.notify(acknowledged(accepted, &exchange.id)).await && is_accepted {
        tokio::select! {
            () = exchange.no_longer_needed() => {}
            () = exchange.serving.cancellation.cancelled() => {}
            () = tell(exchange) => {}
        }
    } else {
        tokio::select! {
            () = exchange.no_longer_needed() => {}
            () = exchange.serving.cancellation.cancelled() => {}
        }
    }
    let mut result = SubscriptionsListenResult::complete(exchange.id.clone());
    result.meta.set_server_info(config.server_info);
    Ok(result)
}

/// Notifies a subscriber until it reads nothing any more.
async fn tell(exchange: &Exchange) {
    let mut changes = match &exchange.connection {
        Some(connection) => connection.changes().clone(),
        None => exchange.serving.gateway.changes.later(),
    };
    let mut known = None;
    loop {
        changes.settled().await;
        let Ok(step) = exchange.step(Purpose::Look).await else { continue };
        let menu = step.iteration.menu().fingerprint();
        if known.replace(menu) == Some(menu) {
            continue;
        }
        let mut changed = list_changed();
        changed.get_meta_mut().set_subscription_id(exchange.id.clone());
        if !exchange.client.notify(changed).await {
            return;
        }
    }
}

fn list_changed() -> ServerNotification {
    ServerNotification::ToolListChangedNotification(Default::default())
}

fn acknowledged(accepted: SubscriptionFilter, id: &RequestId) -> ServerNotification {
    let params = SubscriptionsAcknowledgedNotificationParams::new(accepted);
    let mut acknowledged = Notification::new(params);
    let mut meta = NotificationMetaObject::new();
    meta.set_subscription_id(id.clone());
    acknowledged.extensions.insert(meta);
    ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged)
}
