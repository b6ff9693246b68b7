//! The replicas of a gateway, with what they share: a store, and a key that seals what clients carry to any of them.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use toolcrib_capabilities::__internal::SealingKey;
use toolcrib_core::{
    __internal::{millis, now_ms},
    Store,
};
use uuid::Uuid;

use crate::error::GatewayError;

/// How long a call waits for its client, and how long requests are passed on to the replica that has something:
/// its address may be that of another program later.
pub(crate) const LOCATED_FOR: Duration = Duration::from_secs(10 * 60);

/// The purpose of the seals by which a replica proves that it is one.
const PROOF: &str = "proof";

/// The replicas of a gateway, among which a load balancer chooses: processes with one configuration, one store and one
/// secret. A session that begins at one of them continues at each, limits of tokens count for all, and a
/// request that continues a call reaches the replica that has it. Clones share it.
#[derive(Clone)]
pub struct Replicas(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    key: SealingKey,
    /// The random name of this process: addresses may be equal, and are used again.
    process: String,
    /// Where the other replicas reach this one.
    address: OnceLock<SocketAddr>,
}

/// The name of something that one process has, as clients carry it.
#[derive(Serialize, Deserialize)]
struct Located<T> {
    process: String,
    at: Option<SocketAddr>,
    /// Until when it is reached there, in milliseconds since 1970.
    until_ms: u64,
    name: T,
}

/// Another process that has something.
pub(crate) struct OtherReplica {
    process: String,
    pub(crate) address: SocketAddr,
}

impl Replicas {
    /// Replicas with this store, and with a key that each makes of the same secret, of at least 32 bytes. Who
    /// knows it can take over each session.
    ///
    /// # Errors
    /// [`GatewayError::ShortSecret`].
    pub fn new(store: Arc<dyn Store>, secret: &str) -> Result<Self, GatewayError> {
        let key = SealingKey::of(secret).ok_or(GatewayError::ShortSecret)?;
        let process = Uuid::new_v4().simple().to_string();
        Ok(Self(Arc::new(Shared { store, key, process, address: OnceLock::new() })))
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

    /// Seals the name of something that this process has. `None` if the system has no randomness.
    pub(crate) fn located(&self, purpose: &str, name: impl Serialize) -> Option<Arc<str>> {
        let (process, at) = (self.0.process.clone(), self.0.address.get().copied());
        let until_ms = now_ms().saturating_add(millis(LOCATED_FOR));
        self.seal(purpose, &Located { process, at, until_ms, name })
    }

    /// The name of something that this process has.
    pub(crate) fn here<T: DeserializeOwned>(&self, purpose: &str, sealed: &str) -> Option<T> {
        let located: Located<T> = self.open(purpose, sealed)?;
        (located.process == self.0.process).then_some(located.name)
    }

    /// The other process that has something, if it can be reached.
    pub(crate) fn elsewhere(&self, purpose: &str, sealed: &str) -> Option<OtherReplica> {
        let Located::<IgnoredAny> { process, at, until_ms, .. } = self.open(purpose, sealed)?;
        let address = at.filter(|at| self.0.address.get() != Some(at))?;
        let is_there = process != self.0.process && now_ms() < until_ms;
        is_there.then_some(OtherReplica { process, address })
    }

    /// Proves to another replica which process this is, with a challenge of it.
    pub(crate) fn proof(&self, challenge: &str) -> Option<Arc<str>> {
        self.seal(PROOF, &(&self.0.process, challenge))
    }

    /// Whether what a peer has returned proves that it is this replica.
    pub(crate) fn proves(&self, peer: &OtherReplica, challenge: &str, proof: &str) -> bool {
        let proven: Option<(String, String)> = self.open(PROOF, proof);
        proven.is_some_and(|(process, of)| process == peer.process && of == challenge)
    }
}

toolcrib_core::__internal::debug_fields!(Replicas, replicas, address = replicas.0.address);
