//! One cache for all that keeps a limited number of entries.

use std::{borrow::Borrow, hash::Hash, mem};

use indexmap::IndexMap;

/// A map with a cap; beyond it, the least recently used entry is evicted (LRU).
///
/// Getting or inserting an entry counts as a use. An eviction looks at each entry once. Values that
/// leave are returned, so that the caller can drop them after it has released its lock.
#[derive(Debug)]
pub struct LruCache<K, V> {
    /// Each with the number of its last use.
    entries: IndexMap<K, (u64, V)>,
    uses: u64,
    cap: usize,
}

impl<K: Hash + Eq, V> LruCache<K, V> {
    /// An empty cache of at most `cap` entries, at least one.
    pub fn new(cap: usize) -> Self {
        Self { entries: IndexMap::default(), uses: 0, cap: cap.max(1) }
    }

    /// The value of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.uses += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.uses;
        Some(value)
    }

    /// Stores a value as the most recently used one. Returns the key's old value, or the one that
    /// was evicted.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.uses += 1;
        if let Some((_, old)) = self.entries.insert(key, (self.uses, value)) {
            return Some(old);
        }
        if self.entries.len() <= self.cap {
            return None;
        }
        self.evict(|_| true)
    }

    /// Removes the least recently used of the values that satisfy a condition.
    pub fn evict(&mut self, may_go: impl Fn(&V) -> bool) -> Option<V> {
        let entries = self.entries.values().enumerate().filter(|(_, (_, value))| may_go(value));
        let (oldest, _) = entries.min_by_key(|(_, (used, _))| *used)?;
        self.entries.swap_remove_index(oldest).map(|(_, (_, evicted))| evicted)
    }

    /// Removes all entries that satisfy a condition.
    pub fn extract(&mut self, mut is_extracted: impl FnMut(&K, &V) -> bool) -> Vec<V> {
        let extracted = self.entries.extract_if(.., |key, (_, value)| is_extracted(key, value));
        extracted.map(|(_, (_, value))| value).collect()
    }

    /// The value of a key. Does not count as a use.
    pub fn peek<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// The value that was used last.
    pub fn latest(&self) -> Option<&V> {
        self.entries.values().max_by_key(|(used, _)| *used).map(|(_, value)| value)
    }

    /// The keys, in no order. Does not count as a use.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.keys()
    }

    /// Removes a key and returns its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.swap_remove(key).map(|(_, value)| value)
    }

    /// Removes all entries, and returns them.
    pub fn take(&mut self) -> Self {
        Self { entries: mem::take(&mut self.entries), ..*self }
    }

    /// The values, in no order. Does not count as a use.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|(_, value)| value)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The model: a list in the order of use.
        #[test]
        fn the_least_recently_used_entry_is_evicted(
            cap in 0_usize..6,
            operations in proptest::collection::vec((0_u8..4, 0_u8..9, any::<u16>()), 0..200),
        ) {
            let mut cache = LruCache::<u8, u16>::new(cap);
            let mut model: Vec<(u8, u16)> = Vec::new();
            for (operation, key, value) in operations {
                let known = model.iter().position(|(known, _)| *known == key);
                let before = known.map(|at| model.remove(at));
                match operation {
                    0 => prop_assert_eq!(cache.remove(&key), before.map(|(_, value)| value)),
                    1 => {
                        prop_assert_eq!(cache.get(&key).copied(), before.map(|(_, value)| value));
                        model.extend(before);
                    }
                    _ => {
                        model.push((key, value));
                        let evicted = (model.len() > cap.max(1)).then(|| model.remove(0));
                        let gone = before.or(evicted).map(|(_, value)| value);
                        prop_assert_eq!(cache.insert(key, value), gone);
                    }
                }
                let mut values: Vec<_> = cache.values().copied().collect();
                let mut expected: Vec<_> = model.iter().map(|(_, value)| *value).collect();
                values.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(values, expected);
            }
            prop_assert_eq!(cache.take().len(), model.len());
            prop_assert!(cache.is_empty());
        }
    }
}
