//! The resources that calls change, one call at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

/// The number of resources from which on those are forgotten that no call uses.
const FORGET_FROM: usize = 256;

/// The resources that running calls change, by key.
#[derive(Debug, Default)]
pub(crate) struct Resources(Mutex<HashMap<String, Weak<AsyncMutex<()>>>>);

impl Resources {
    /// The lock of a resource. While a call has it, no other call changes the resource.
    pub(crate) fn of(&self, key: String) -> Arc<AsyncMutex<()>> {
        let mut used = self.0.lock();
        if used.len() >= FORGET_FROM {
            used.retain(|_, resource| resource.strong_count() > 0);
        }
        let known = used.get(&key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let resource = Arc::default();
            used.insert(key, Arc::downgrade(&resource));
            resource
        })
    }
}
