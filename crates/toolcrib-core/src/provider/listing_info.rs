//! Cache status of a listing.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

/// The use of a cache for a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheStatus {
    /// No cache was involved.
    #[default]
    None,
    /// A fresh entry.
    Hit,
    /// No entry; joined a fetch that was already in progress for another caller.
    Joined,
    /// No entry; the source was queried for this listing.
    Miss,
    /// An expired entry was served.
    Stale,
}

/// Cache status, age and error of a listing: recorded in a [`Catalog`](crate::Catalog), for events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListingInfo {
    /// The use of a cache.
    pub cache: CacheStatus,
    /// The age of the entry, if cached.
    pub age: Option<Duration>,
    /// The source's error that caused an older entry to be served; for the operator.
    pub error: Option<Arc<str>>,
    /// How long the listing applies, as its source states: zero if the source states nothing, or if
    /// the listing may change at any time. [`Duration::MAX`] if it does not change. Default: zero.
    pub fresh_for: Duration,
}

impl ListingInfo {
    /// The record of a list that does not change.
    pub fn unchanging() -> Self {
        Self { fresh_for: Duration::MAX, ..Self::default() }
    }

    /// Merges both: the more informative status, the higher age, the shorter time.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.cache = self.cache.max(other.cache);
        self.age = self.age.max(other.age);
        self.fresh_for = self.fresh_for.min(other.fresh_for);
        if self.error.is_none() {
            self.error.clone_from(&other.error);
        }
    }
}

/// The rest of a stated time, in whole seconds, so that lists of one second are equal. Rounded up,
/// and never more than was stated.
pub fn time_left(stated: Duration, age: Duration) -> Duration {
    let left = stated.saturating_sub(age);
    let second = u64::from(left.subsec_nanos() > 0);
    stated.min(Duration::from_secs(left.as_secs().saturating_add(second)))
}
