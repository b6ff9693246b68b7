//! All ports of storage in one.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    artifacts::ArtifactStore,
    kv::{KvStore, LimitStore},
    policy::ApprovalStore,
    sessions::{SessionStore, UsageStore},
};

/// A store for all that outlives a process: sessions, calls that wait for approval, sums of usage, keys
/// and values, and limits. A host opens one and passes it on as the ports; an `Arc<dyn Store>` is an `Arc`
/// of each of them.
///
/// `toolcrib_testing::stores` tests an implementation, port by port.
pub trait Store: SessionStore + ApprovalStore + UsageStore + KvStore + LimitStore {
    /// The artifacts in this store, each kept for a time. Default: `None`, and a host keeps them elsewhere,
    /// such as in a folder.
    fn artifacts(&self, keep_for: Duration) -> Option<Arc<dyn ArtifactStore>> {
        let _ = keep_for;
        None
    }
}

impl fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}
