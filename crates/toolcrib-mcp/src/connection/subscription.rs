//! The subscriptions to changes, since 2026-07-28.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rmcp::model::{ErrorCode, ServerCapabilities, SubscriptionFilter};
use tokio::time::{Instant, sleep};
use toolcrib_core::{__internal::Backoff, CancellationToken};

use super::{message::Request, peer::Peer, result, types::RequestError};

/// How long a new connection waits for its subscription. After it, every change is noticed; a late
/// subscription counts as a change.
pub(super) const LISTEN_FIRST: Duration = Duration::from_secs(1);

/// The wait before a lost subscription is tried again.
const LISTEN_AGAIN: Backoff =
    Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };

/// The state that a connection shares with its subscription.
#[derive(Default)]
pub(super) struct Subscription {
    /// Fires when it is active, or the server does not support it.
    is_settled: CancellationToken,
    /// Whether the connection may have been listed already.
    is_handed_out: AtomicBool,
}

impl Subscription {
    /// Done when it is active, or the server does not support it.
    pub(super) async fn settled(&self) {
        self.is_settled.cancelled().await;
    }

    /// From now on the connection may be listed.
    pub(super) fn hand_out(&self) {
        self.is_handed_out.store(true, Ordering::Release);
    }

    /// Keeps a subscription open, while the server supports it. Its messages go through the intake.
    ///
    /// # Errors
    /// The server's refusal: it does not know subscriptions, or refuses one of a resource.
    pub(super) async fn keep(
        &self,
        peer: &Peer,
        notifications: &SubscriptionFilter,
    ) -> Result<Infallible, RequestError> {
        let mut failures = 0_u32;
        loop {
            let acknowledged = CancellationToken::new();
            let request = Request::Listen {
                notifications: notifications.clone(),
                acknowledged: acknowledged.clone(),
            };
            let mut since = None;
            let listening = peer.ask(request, result::nothing);
            tokio::pin!(listening);
            let ended = loop {
                tokio::select! {
                    biased;
                    () = acknowledged.cancelled(), if since.is_none() => {
                        since = Some(Instant::now());
                        self.is_settled.cancel();
                        if self.is_handed_out.swap(true, Ordering::AcqRel) {
                            // Changes since the listing, or the previous subscription, were not
                            // announced.
                            peer.intake().signal_changes(notifications);
                        }
                    }
                    ended = &mut listening => break ended,
                }
            };
            if let Err(refusal) = ended
                && is_final(&refusal, notifications)
            {
                self.is_settled.cancel();
                return Err(refusal);
            }
            if since.is_some_and(|since| since.elapsed() > LISTEN_AGAIN.cap) {
                failures = 0;
            }
            failures = failures.saturating_add(1);
            sleep(LISTEN_AGAIN.longest(failures)).await;
        }
    }
}

/// All changes of lists that a server announces.
pub(super) fn of_lists(capabilities: &ServerCapabilities) -> Option<SubscriptionFilter> {
    let mut all = SubscriptionFilter::new();
    all.tools_list_changed = Some(true);
    all.prompts_list_changed = Some(true);
    all.resources_list_changed = Some(true);
    let announced = all.supported_by(capabilities);
    (announced != SubscriptionFilter::new()).then_some(announced)
}

/// The changes of one resource.
pub(super) fn of_resource(uri: &str) -> SubscriptionFilter {
    let mut one = SubscriptionFilter::new();
    one.resource_subscriptions = Some(vec![uri.to_owned()]);
    one
}

/// Whether another attempt is useless. A resource may not be the server's; a client receives its refusal.
fn is_final(error: &RequestError, notifications: &SubscriptionFilter) -> bool {
    let of_resource = notifications.resource_subscriptions.is_some();
    matches!(error, RequestError::Refused { code, .. }
        if of_resource || *code == ErrorCode::METHOD_NOT_FOUND.0)
}
