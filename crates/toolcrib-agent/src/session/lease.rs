//! The lease of an open session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    task::AbortHandle,
    time::{Instant, sleep},
};
use toolcrib_core::{
    CancellationToken, LeaseTimes, SessionInfo, SessionLease, SessionRecord, SessionStore,
    SessionStoreError,
};

use super::with;

/// The time between two attempts to get a lease whose process may have been killed.
const ATTEMPT_EVERY: Duration = Duration::from_millis(200);

/// A lease that is renewed until it is dropped.
pub(super) struct KeptLease {
    store: Arc<dyn SessionStore>,
    writer: LeaseWriter,
    renewal: AbortHandle,
    /// Whether it expires unless it is released, so that the work of the session can be claimed again.
    is_left: AtomicBool,
    run: RunToken,
}

/// Cancels the present run of a session.
type RunToken = Arc<Mutex<CancellationToken>>;

/// The right to write with a lease, and the number of the last write that the store has returned.
#[derive(Clone)]
pub(super) struct LeaseWriter {
    lease: SessionLease,
    seen: Arc<Mutex<u64>>,
}

impl LeaseWriter {
    /// Writes records, one write after the other: a write that did not know the last number could be
    /// given one that the store has acknowledged and lost. Blocks.
    pub(super) fn write(
        &self,
        store: &dyn SessionStore,
        records: &[SessionRecord],
    ) -> Result<(), SessionStoreError> {
        let mut seen = self.seen.lock();
        *seen = store.write(&self.lease, *seen, records)?;
        Ok(())
    }
}

impl KeptLease {
    /// Leases a session. If it is to, waits while another lease exists and is not renewed.
    pub(super) async fn acquire(
        store: &Arc<dyn SessionStore>,
        info: &SessionInfo,
        waits: bool,
    ) -> Result<Self, SessionStoreError> {
        let began = Instant::now();
        let mut other_until = None;
        let times = store.lease_times();
        let lease = loop {
            let (owner, id) = (info.owner.clone(), Arc::clone(&info.id));
            let lease = with(store, move |store| store.acquire(&owner, &id, times.lease)).await;
            match lease {
                // A lease that does not move belongs to a process that may have been killed. One
                // that ends later than any lease is due to a changed clock.
                Err(SessionStoreError::InUse { until_ms, .. })
                    if waits
                        && *other_until.get_or_insert(until_ms) == until_ms
                        && began.elapsed() < 2 * times.lease =>
                {
                    sleep(ATTEMPT_EVERY).await;
                }
                lease => break lease?,
            }
        };
        Ok(Self::keep(store, lease, false))
    }

    /// Renews a lease that the store has given. If it is left, it expires after it is dropped.
    pub(super) fn keep(store: &Arc<dyn SessionStore>, lease: SessionLease, is_left: bool) -> Self {
        let (store, run) = (Arc::clone(store), RunToken::default());
        let renewal = tokio::spawn(renew(Arc::clone(&store), lease.clone(), Arc::clone(&run)));
        let writer = LeaseWriter { lease, seen: Arc::default() };
        Self {
            store,
            writer,
            renewal: renewal.abort_handle(),
            is_left: AtomicBool::new(is_left),
            run,
        }
    }

    /// Sets the token of the run that begins.
    pub(super) fn runs(&self, token: &CancellationToken) {
        *self.run.lock() = token.clone();
    }

    pub(super) fn writer(&self) -> LeaseWriter {
        self.writer.clone()
    }

    pub(super) async fn release(&self) -> Result<(), SessionStoreError> {
        self.renewal.abort();
        let lease = self.writer.lease.clone();
        with(&self.store, move |store| store.release(&lease)).await
    }

    /// Lets it expire after a time.
    pub(super) async fn leave(&self, after: Duration) -> Result<(), SessionStoreError> {
        self.is_left.store(true, Ordering::Release);
        self.renewal.abort();
        let lease = self.writer.lease.clone();
        with(&self.store, move |store| store.renew(&lease, after).map(drop)).await
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        self.renewal.abort();
        if self.is_left.load(Ordering::Acquire) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let (store, lease) = (Arc::clone(&self.store), self.writer.lease.clone());
            // Without a second result: the lease expires if this fails.
            drop(runtime.spawn_blocking(move || store.release(&lease)));
        }
    }
}

/// Renews a lease until it is lost, and cancels the run that another process has cancelled. A failure of the
/// store may pass; writes report it.
async fn renew(store: Arc<dyn SessionStore>, lease: SessionLease, run: RunToken) {
    let LeaseTimes { lease: time, renew_every } = store.lease_times();
    loop {
        sleep(renew_every).await;
        // The store's answer is not about a run that begins meanwhile.
        let (renewed, token) = (lease.clone(), run.lock().clone());
        match with(&store, move |store| store.renew(&renewed, time)).await {
            Ok(true) => token.cancel(),
            Err(SessionStoreError::LeaseLost { .. }) => return,
            Ok(false) | Err(_) => {}
        }
    }
}
