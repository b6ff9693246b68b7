//! A memo of values derived from schemas, by the digest of their content.

use std::collections::HashMap;

use parking_lot::RwLock;
use toolcrib_core::Digest;

/// Maximum number of remembered schemas, and the maximum sum of their weights; compiled schemas of
/// this weight take about 150 MB. Beyond either, all are dropped and created again as needed: a
/// catalog that keeps changing must not fill the memory.
const REMEMBERED: usize = 10_000;
const HEAVIEST: usize = 100_000;

/// Values by the digest of their source.
#[derive(Debug)]
pub(super) struct Memory<T>(RwLock<Entries<T>>);

#[derive(Debug)]
struct Entries<T> {
    made: HashMap<Digest, T>,
    weight: usize,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(RwLock::new(Entries { made: HashMap::new(), weight: 0 }))
    }
}

impl<T: Clone> Memory<T> {
    pub(super) fn get(&self, digest: Digest) -> Option<T> {
        self.0.read().made.get(&digest).cloned()
    }

    pub(super) fn remember(
        &self,
        digest: Digest,
        make: impl FnOnce() -> T,
        weigh: impl FnOnce(&T) -> usize,
    ) -> T {
        self.get(digest).unwrap_or_else(|| {
            // Not under the lock: concurrent callers create equal values.
            let made = make();
            let weight = weigh(&made);
            let mut known = self.0.write();
            if known.made.len() >= REMEMBERED || known.weight.saturating_add(weight) > HEAVIEST {
                known.made.clear();
                known.weight = 0;
            }
            if known.made.insert(digest, made.clone()).is_none() {
                known.weight += weight;
            }
            made
        })
    }
}
