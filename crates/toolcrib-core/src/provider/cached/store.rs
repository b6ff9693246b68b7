use std::time::Duration;

use tokio::time::Instant;

use super::{
    super::DiscoveryError,
    options::{CacheOptions, ListingKey},
};
use crate::{
    internal::lru_cache::LruCache,
    provider::{catalog::Catalog, context_list::ListContext},
};

/// The last listings of a source, one per key, with the rules for their use: the one mechanism by
/// which an older listing is served, in [`Cached`](super::Cached) and for a source that an engine
/// declares stale.
#[derive(Debug)]
pub struct ListingStore {
    options: CacheOptions,
    entries: LruCache<ListingKey, Entry>,
}

#[derive(Debug)]
struct Entry {
    listing: Catalog,
    made: Instant,
    /// `None`: never expires.
    fresh_until: Option<Instant>,
}

/// A stored listing and its age.
#[derive(Debug)]
pub struct StoredListing {
    /// The listing.
    pub listing: Catalog,
    /// The time since it was listed.
    pub age: Duration,
    /// The time since it expired; `None` while it is fresh.
    pub(super) over_for: Option<Duration>,
    /// The rest of its TTL: zero once it has expired.
    pub(super) fresh_for: Duration,
}

impl ListingStore {
    /// Creates a store without entries.
    pub fn new(options: CacheOptions) -> Self {
        Self { entries: LruCache::new(options.max_entries), options }
    }

    /// The key of a listing in this context.
    pub fn key(&self, cx: &ListContext) -> ListingKey {
        self.options.key(cx)
    }

    /// The listing of a key. Counts as a use.
    pub fn get(&mut self, key: &ListingKey) -> Option<StoredListing> {
        let (entry, now) = (self.entries.get(key)?, Instant::now());
        let age = now.saturating_duration_since(entry.made);
        let over_for = entry
            .fresh_until
            .filter(|until| now >= *until)
            .map(|until| now.saturating_duration_since(until));
        let fresh_for = if over_for.is_some() { Duration::ZERO } else { self.options.left(age) };
        Some(StoredListing { listing: entry.listing.clone(), age, over_for, fresh_for })
    }

    /// The listing that replaces a failed one.
    pub fn instead_of(
        &mut self,
        error: &DiscoveryError,
        key: &ListingKey,
    ) -> Option<StoredListing> {
        if !error.class().allows_stale() {
            return None;
        }
        self.get(key).filter(|stored| {
            stored.over_for.is_none_or(|over_for| self.options.serves_on_error(over_for))
        })
    }

    /// Stores a listing under its key. Returns the replaced or evicted one, to be dropped without a
    /// lock.
    pub fn keep(&mut self, key: ListingKey, listing: Catalog) -> Option<Catalog> {
        let made = Instant::now();
        let fresh_until = self.options.fresh_until(made);
        let gone = self.entries.insert(key, Entry { listing, made, fresh_until });
        gone.map(|entry| entry.listing)
    }

    /// Removes a listing.
    pub(super) fn remove(&mut self, key: &ListingKey) -> Option<Catalog> {
        self.entries.remove(key).map(|entry| entry.listing)
    }

    /// Removes all listings.
    pub(super) fn take(&mut self) -> Self {
        Self { options: self.options.clone(), entries: self.entries.take() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
