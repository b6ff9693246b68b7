//! The replicas of a gateway, with what they share: a store, and a key that seals what clients carry to any of them.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use toolcrib_capabilities::__internal::SealingKey;
use toolcrib_core::Store;

use crate::error::GatewayError;

/// The replicas of a gateway, among which a load balancer chooses: processes with one configuration, one store and one
/// secret. A session that begins at one of them continues at each, limits of tokens count for all, and a
/// request that continues a call reaches the replica that has it. Clones share it.
#[derive(Clone)]
pub struct Replicas(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    key: SealingKey,
    /// Where the other replicas reach this one.
    address: OnceLock<SocketAddr>,
}

/// The name of something that one replica has, as clients carry it.
#[derive(Serialize, Deserialize)]
struct Located<T> {
    at: SocketAddr,
    name: T,
}

impl Replicas {
    /// Replicas with this store, and with a key that each makes of the same secret, of at least 32 bytes. Who
    /// knows it can take over each session.
    ///
    /// # Errors
    /// [`GatewayError::ShortSecret`].
    pub fn new(store: Arc<dyn Store>, secret: &str) -> Result<Self, GatewayError> {
        let key = SealingKey::of(secret).ok_or(GatewayError::ShortSecret)?;
        Ok(Self(Arc::new(Shared { store, key, address: OnceLock::new() })))
    }

    /// Sets where the other replicas reach this one, over HTTP without TLS. The first address counts. Without
    /// one, a call that waits for its client's input can be continued only if the load balancer sends the
    /// request here.
    pub fn reached_at(&self, address: SocketAddr) {
        let _ = self.0.address.set(address);
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Seals facts for one purpose. `None` if the system has no randomness.
    pub(crate) fn seal(&self, purpose: &str, facts: &impl Serialize) -> Option<Arc<str>> {
        let facts = serde_json::to_string(facts).ok()?;
        self.0.key.seal(purpose, &facts).map(Into::into)
    }

    /// The facts that a replica sealed for this purpose.
    pub(crate) fn open<T: DeserializeOwned>(&self, purpose: &str, sealed: &str) -> Option<T> {
        serde_json::from_str(&self.0.key.open(purpose, sealed)?).ok()
    }

    /// Seals the name of something that this replica has. `None` without an address of it.
    pub(crate) fn located(&self, purpose: &str, name: impl Serialize) -> Option<Arc<str>> {
        self.seal(purpose, &Located { at: *self.0.address.get()?, name })
    }

    /// The name of something that a replica has, and its address, unless it is this one.
    pub(crate) fn locate<T: DeserializeOwned>(
        &self,
        purpose: &str,
        sealed: &str,
    ) -> Option<(T, Option<SocketAddr>)> {
        let Located { at, name } = self.open(purpose, sealed)?;
        Some((name, Some(at).filter(|at| self.0.address.get() != Some(at))))
    }
}

toolcrib_core::__internal::debug_fields!(Replicas, replicas, address = replicas.0.address);
