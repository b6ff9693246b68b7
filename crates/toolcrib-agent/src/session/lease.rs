//! The lease of an open session.

use std::{sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    task::AbortHandle,
    time::{Instant, sleep},
};
use toolcrib_core::{SessionInfo, SessionLease, SessionStore, SessionStoreError};

use super::with;

/// The time of a lease. A killed process keeps its sessions for this time.
const LEASE: Duration = Duration::from_secs(15);

/// The time between two renewals. A slow machine may miss six of them.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// The time between two attempts to get a lease whose process may have been killed.
const ATTEMPT_EVERY: Duration = Duration::from_millis(200);

/// A lease that is renewed until it is dropped.
pub(super) struct KeptLease {
    store: Arc<dyn SessionStore>,
    lease: SessionLease,
    renewal: AbortHandle,
}

impl KeptLease {
    /// Leases a session. Waits while another lease exists and is not renewed.
    pub(super) async fn acquire(
        store: &Arc<dyn SessionStore>,
        info: &SessionInfo,
    ) -> Result<Self, SessionStoreError> {
        let began = Instant::now();
        let mut other_until = None;
        let lease = loop {
            let (owner, id) = (info.owner.clone(), Arc::clone(&info.id));
            let lease = with(store, move |store| store.acquire(&owner, &id, LEASE)).await;
            match lease {
                // A lease that does not move belongs to a process that may have been killed. One
                // that ends later than any lease is due to a changed clock.
                Err(SessionStoreError::InUse { until_ms, .. })
                    if *other_until.get_or_insert(until_ms) == until_ms
                        && began.elapsed() < 2 * LEASE =>
                {
                    sleep(ATTEMPT_EVERY).await;
                }
                lease => break lease?,
            }
        };
        let renewal = tokio::spawn(renew(Arc::clone(store), lease.clone())).abort_handle();
        Ok(Self { store: Arc::clone(store), lease, renewal })
    }

    pub(super) fn get(&self) -> &SessionLease {
        &self.lease
    }

    pub(super) async fn release(&self) -> Result<(), SessionStoreError> {
        self.renewal.abort();
        let lease = self.lease.clone();
        with(&self.store, move |store| store.release(&lease)).await
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        self.renewal.abort();
        if let Ok(runtime) = Handle::try_current() {
            let (store, lease) = (Arc::clone(&self.store), self.lease.clone());
            // Without a second result: the lease expires if this fails.
            drop(runtime.spawn_blocking(move || store.release(&lease)));
        }
    }
}

/// Renews a lease until it is lost. A failure of the store may pass; writes report it.
async fn renew(store: Arc<dyn SessionStore>, lease: SessionLease) {
    loop {
        sleep(RENEW_EVERY).await;
        let renewed = lease.clone();
        let renewed = with(&store, move |store| store.renew(&renewed, LEASE)).await;
        if let Err(SessionStoreError::LeaseLost { .. }) = renewed {
            return;
        }
    }
}
