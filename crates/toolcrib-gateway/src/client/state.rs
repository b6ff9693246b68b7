//! The present configuration of a gateway, and its replacement while it serves.
//!
//! A request keeps the configuration with which it began. A session continues with the new one at
//! its next request.

use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::{changes::Changes, config::GatewayConfig, context::Shared};
use crate::access::HttpAccess;

/// An address that is served.
pub(crate) trait ServedAddress: Send + Sync {
    /// Takes over another access.
    fn replace(&self, access: &HttpAccess);
}

/// The present configuration.
pub(crate) struct GatewayState {
    shared: RwLock<Arc<Shared>>,
    /// Ticks when it is replaced.
    replaced: watch::Sender<u64>,
    addresses: Mutex<Vec<Weak<dyn ServedAddress>>>,
    /// The requests in progress, of all configurations.
    pub(crate) requests: TaskTracker,
}

impl GatewayState {
    pub(crate) fn new(mut config: GatewayConfig) -> Arc<Self> {
        let replaced = watch::Sender::new(0);
        config.changes.add(replaced.subscribe());
        Arc::new(Self {
            shared: RwLock::new(Arc::new(Shared::new(config))),
            replaced,
            addresses: Mutex::default(),
            requests: TaskTracker::new(),
        })
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared.read())
    }

    /// The state that requests would share with this configuration.
    pub(crate) fn next(&self, mut config: GatewayConfig) -> Arc<Shared> {
        config.changes.add(self.replaced.subscribe());
        Arc::new(self.shared().with(config))
    }

    /// Replaces the present configuration, and returns it.
    pub(crate) fn replace(&self, next: Arc<Shared>, access: Option<&HttpAccess>) -> Arc<Shared> {
        let before = std::mem::replace(&mut *self.shared.write(), next);
        if let Some(access) = access {
            let all: Vec<_> = self.addresses.lock().iter().filter_map(Weak::upgrade).collect();
            all.iter().for_each(|address| address.replace(access));
        }
        self.replaced.send_modify(|times| *times += 1);
        before.metrics.reloaded(true);
        before
    }

    /// Ticks when the configuration is replaced.
    pub(crate) fn replaced(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }

    /// Changes of the menus from now on, also those by another configuration.
    pub(crate) fn changes(self: &Arc<Self>) -> Changes {
        self.shared().config.changes.of(Arc::clone(self))
    }

    /// The changes of the present configuration.
    pub(crate) fn receivers(&self) -> Changes {
        self.shared().config.changes.clone()
    }

    /// Notes an address that is served from now on.
    pub(crate) fn serves(&self, address: Weak<dyn ServedAddress>) {
        let mut all = self.addresses.lock();
        all.retain(|address| address.strong_count() > 0);
        all.push(address);
    }
}
