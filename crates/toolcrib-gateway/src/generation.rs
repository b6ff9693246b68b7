//! The present configuration of a gateway, and its replacement while it serves.
//!
//! A request keeps the configuration with which it began. A session continues with the new one at
//! its next request.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

use super::{
    Gateway, GatewayBuilder, GatewayError, HttpAccess, Shared, callers::Callers, changes::Changes,
    metrics::Metrics, resources::Links, rounds::WaitingCalls, routes::Routes,
};

/// The present configuration.
pub(super) struct GatewayState {
    shared: RwLock<Arc<Shared>>,
    /// Ticks when it is replaced.
    replaced: watch::Sender<u64>,
    /// The addresses that are served.
    routes: Mutex<Vec<Weak<Routes>>>,
    metrics: Arc<Metrics>,
    waiting: Arc<WaitingCalls>,
    links: Arc<Links>,
    callers: Arc<Callers>,
    /// The requests in progress, of all configurations.
    pub(super) requests: TaskTracker,
}

/// How long a request takes at most from the choice of its configuration to its count.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);

/// A configuration that was replaced; see [`Gateway::replace`].
#[must_use = "its engine is in use until its requests have ended"]
pub struct ReplacedConfig(Arc<Shared>);

impl ReplacedConfig {
    /// Waits until all requests have ended that were begun with it, or the limit; returns whether
    /// they have.
    pub async fn ended(&self, within: Duration) -> bool {
        sleep(BEGINS_WITHIN).await;
        self.0.requests.close();
        timeout(within, self.0.requests.wait()).await.is_ok()
    }
}

impl GatewayState {
    pub(super) fn new(builder: GatewayBuilder) -> Arc<Self> {
        let (metrics, waiting) = (Arc::default(), Arc::default());
        let (links, callers) = (Arc::default(), Arc::default());
        let replaced = watch::Sender::new(0);
        let shared = shared(builder, &replaced, (&metrics, &waiting, &links, &callers));
        let routes = Mutex::default();
        let shared = RwLock::new(Arc::new(shared));
        let requests = TaskTracker::new();
        Arc::new(Self { shared, replaced, routes, metrics, waiting, links, callers, requests })
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared.read())
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Ticks when the configuration is replaced.
    pub(super) fn replaced(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }

    /// Changes of the menus from now on, also those by another configuration.
    pub(super) fn changes(self: &Arc<Self>) -> Changes {
        self.shared().config.changes.of(Arc::clone(self))
    }

    /// The changes of the present configuration.
    pub(super) fn receivers(&self) -> Changes {
        self.shared().config.changes.clone()
    }

    pub(super) fn serves(&self, routes: &Arc<Routes>) {
        let mut all = self.routes.lock();
        all.retain(|routes| routes.strong_count() > 0);
        all.push(Arc::downgrade(routes));
    }
}

fn shared(
    mut config: GatewayBuilder,
    replaced: &watch::Sender<u64>,
    (metrics, waiting, links, callers): (
        &Arc<Metrics>,
        &Arc<WaitingCalls>,
        &Arc<Links>,
        &Arc<Callers>,
    ),
) -> Shared {
    config.changes.add(replaced.subscribe());
    Shared {
        config,
        metrics: Arc::clone(metrics),
        waiting: Arc::clone(waiting),
        links: Arc::clone(links),
        callers: Arc::clone(callers),
        requests: TaskTracker::new(),
    }
}

impl Gateway {
    /// Replaces the configuration while it serves: new requests use the engine of this builder, and
    /// over HTTP this access. Those in progress end with the previous engine, which must stay usable
    /// until [`ReplacedConfig::ended`]. Sessions continue: with their active skills, as far as they exist
    /// and are permitted. A session whose token is absent now, or has another identity, ends. Clients
    /// whose menu has changed are notified. Hosts and origins stay as they are.
    ///
    /// Without an access, the present one stays.
    ///
    /// # Errors
    /// [`GatewayError`] if the access is invalid; nothing has changed then.
    pub fn replace(
        &self,
        builder: GatewayBuilder,
        access: Option<&HttpAccess>,
    ) -> Result<ReplacedConfig, GatewayError> {
        let current = &self.0;
        let next = (&current.metrics, &current.waiting, &current.links, &current.callers);
        let next = Arc::new(shared(builder, &current.replaced, next));
        if let Some(access) = access {
            access.check()?;
            for token in &access.tokens {
                next.check(&token.access).map_err(GatewayError::Access)?;
            }
        }
        let before = std::mem::replace(&mut *current.shared.write(), next);
        if let Some(access) = access {
            let all: Vec<_> = current.routes.lock().iter().filter_map(Weak::upgrade).collect();
            all.iter().for_each(|routes| routes.replace(access));
        }
        current.replaced.send_modify(|times| *times += 1);
        current.metrics.reloaded(true);
        Ok(ReplacedConfig(before))
    }

    /// Counts a configuration that could not be used, for `/metrics`.
    pub fn replacement_failed(&self) {
        self.0.metrics.reloaded(false);
    }
}
