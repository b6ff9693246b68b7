//! Caches the tool block of a menu.

use std::sync::Arc;

use parking_lot::Mutex;

use serde_json::value::RawValue;
use toolcrib_core::{__internal::LruCache, Digest};

use super::{protocol::Offer, sent_parts::SentForm};

/// Maximum number of cached menus: those of a few concurrent runs, each before and after a skill.
const MAX_MENUS: usize = 16;

/// The tool blocks of the most recently sent menus. The key is the menu's model-visible text, so
/// the same tools are the same bytes from request to request.
pub(super) struct MenuCache(Mutex<LruCache<Digest, Arc<RawValue>>>);

impl Default for MenuCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_MENUS)))
    }
}

impl MenuCache {
    /// The menu's tool block, created on a miss. One with definitions that were sent before is shared
    /// with no other session.
    pub(super) fn get(
        &self,
        offer: Offer<'_>,
        first: &SentForm,
        make: impl FnOnce(Offer<'_>) -> String,
    ) -> Result<Arc<RawValue>, serde_json::Error> {
        let key = match first.digest() {
            Some(first) => Digest::of_all([&offer.digest(), &first]),
            None => offer.digest(),
        };
        let mut known = self.0.lock();
        if let Some(block) = known.get(&key) {
            return Ok(Arc::clone(block));
        }
        let block: Arc<RawValue> = RawValue::from_string(make(offer))?.into();
        known.insert(key, Arc::clone(&block));
        Ok(block)
    }
}
