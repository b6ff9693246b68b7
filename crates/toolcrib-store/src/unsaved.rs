//! Keys and values that no row of the file can have, in memory.

use std::{collections::BTreeMap, sync::Arc};

use toolcrib_core::{
    __internal::{LruCache, millis},
    KvArea, KvError, KvLimits, KvWrite,
};

use crate::session::now_ms;

/// The most areas in memory; the least recently used one is removed.
const MOST_AREAS: usize = 1_024;

/// The keys and values of areas.
pub(crate) struct UnsavedKeys(LruCache<KvArea, BTreeMap<Arc<str>, Entry>>);

struct Entry {
    value: Arc<str>,
    expires_ms: u64,
}

impl Default for UnsavedKeys {
    fn default() -> Self {
        Self(LruCache::new(MOST_AREAS))
    }
}

toolcrib_core::__internal::debug_fields!(UnsavedKeys, keys, keys.0.len());

impl UnsavedKeys {
    pub(crate) fn value(&mut self, area: &KvArea, key: &str) -> Option<Arc<str>> {
        let entry = self.0.get(area)?.get(key)?;
        (entry.expires_ms > now_ms()).then(|| Arc::clone(&entry.value))
    }

    pub(crate) fn keys(&mut self, area: &KvArea, prefix: &str) -> Vec<Arc<str>> {
        let now = now_ms();
        let all = self.0.get(area).into_iter().flat_map(|area| area.iter());
        let found = all.filter(|(key, entry)| entry.expires_ms > now && key.starts_with(prefix));
        found.map(|(key, _)| Arc::clone(key)).collect()
    }

    pub(crate) fn write(&mut self, area: &KvArea, write: &KvWrite<'_>) -> Result<(), KvError> {
        let KvWrite { key, value, expected, lives_for } = *write;
        if let Some(expected) = expected
            && self.value(area, key).as_deref() != expected
        {
            return Err(KvError::Changed);
        }
        let now = now_ms();
        if self.0.get(area).is_none() {
            // A place for an area can cost another area its keys.
            if value.is_none() {
                return Ok(());
            }
            self.0.insert(area.clone(), BTreeMap::new());
        }
        let Some(keys) = self.0.get(area) else { return Ok(()) };
        keys.retain(|_, entry| entry.expires_ms > now);
        let Some(value) = value else {
            keys.remove(key);
            return Ok(());
        };
        let others = keys.iter().filter(|(other, _)| ***other != *key);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (key, entry)| {
            (count + 1, bytes + key.len() + entry.value.len())
        });
        if count >= KvLimits::KEYS || bytes + key.len() + value.len() > KvLimits::BYTES {
            return Err(KvError::Full);
        }
        let expires_ms = now.saturating_add(millis(lives_for.min(KvLimits::TIME)));
        keys.insert(key.into(), Entry { value: value.into(), expires_ms });
        Ok(())
    }
}
