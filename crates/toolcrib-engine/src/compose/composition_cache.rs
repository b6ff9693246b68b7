use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::__internal::LruCache;

use super::{Composition, Situation};

/// How many are kept; the least recently used one is evicted.
const MOST: usize = 64;

/// An engine's latest results of composing, one for each [`Situation`]. A turn with an unchanged
/// list reuses them. If each request is a separate turn, most do.
pub(crate) struct CompositionCache(Mutex<LruCache<Situation, Arc<Composition>>>);

impl Default for CompositionCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MOST)))
    }
}

impl CompositionCache {
    /// The menu that was composed last in such a situation. The caller checks that it is still
    /// valid.
    pub(crate) fn get(&self, situation: &Situation) -> Option<Arc<Composition>> {
        self.0.lock().get(situation).cloned()
    }

    /// Keeps a menu, and replaces the one of the same situation.
    pub(crate) fn keep(&self, composed: &Arc<Composition>) {
        let situation = composed.withheld.situation().clone();
        let gone = self.0.lock().insert(situation, Arc::clone(composed));
        // After the lock is released: tools may do anything when they are dropped.
        drop(gone);
    }
}
