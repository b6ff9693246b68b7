//! The last listings of a source: what replaces a failed one, and what the next one is compared
//! with.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use toolcrib_core::{
    __internal::{ListingKey, ListingStore, StoredListing},
    CacheOptions, Catalog, DiscoveryError, KeyField, ListContext, Tool, ToolName, Ttl,
};

/// Maximum number of listings kept per source; the least recently used one is evicted.
const MOST_LISTINGS: usize = 64;

/// The last listings of one source, one for each tenant, principal and list of active skills. The
/// conversation is not part of the key: such a listing would be useful only to that conversation.
pub(crate) struct Listings(Mutex<ListingStore>);

impl Default for Listings {
    fn default() -> Self {
        let key = [KeyField::Tenant, KeyField::Principal, KeyField::ActiveSkills];
        // The source is queried in each iteration, and a failure is replaced however old the last
        // listing is.
        let options = CacheOptions::new(key, Ttl::after(Duration::ZERO))
            .stale_on_error(Duration::MAX)
            .max_entries(MOST_LISTINGS);
        Self(Mutex::new(ListingStore::new(options)))
    }
}

impl Listings {
    pub(crate) fn key(&self, cx: &ListContext) -> ListingKey {
        self.0.lock().key(cx)
    }

    /// Keeps a new listing. Returns the one before.
    pub(crate) fn keep(&self, key: ListingKey, listing: &Catalog) -> Option<Catalog> {
        // No code under this lock can panic half-way.
        let mut listings = self.0.lock();
        let before = listings.get(&key).map(|before| before.listing);
        let gone = listings.keep(key, listing.clone());
        drop(listings);
        // Outside the lock: tools may do anything when they are dropped.
        drop(gone);
        before
    }

    /// The last listing.
    pub(crate) fn last(&self, key: &ListingKey) -> Option<Catalog> {
        self.0.lock().get(key).map(|last| last.listing)
    }

    /// The listing that replaces a failed one.
    pub(crate) fn instead_of(
        &self,
        error: &DiscoveryError,
        key: &ListingKey,
    ) -> Option<StoredListing> {
        self.0.lock().instead_of(error, key)
    }
}

/// The difference to the previous listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) added: Vec<ToolName>,
    pub(crate) removed: Vec<ToolName>,
    pub(crate) changed: Vec<ToolName>,
}

impl Difference {
    /// `None` if the model would read the same. Listings of the same tools by `Arc` are recognized
    /// without comparing them.
    pub(crate) fn between(before: &Catalog, now: &Catalog) -> Option<Self> {
        if before.same(now) {
            return None;
        }
        let (before, now) = (before.offered(), now.offered());
        let by_name = |tools: &[Tool]| -> HashMap<ToolName, _> {
            tools.iter().map(|tool| (tool.name().clone(), tool.digest())).collect()
        };
        let (known, current) = (by_name(before), by_name(now));
        let mut difference = Self { added: Vec::new(), removed: Vec::new(), changed: Vec::new() };
        for tool in now {
            match known.get(tool.name()) {
                None => difference.added.push(tool.name().clone()),
                Some(digest) if *digest != tool.digest() => {
                    difference.changed.push(tool.name().clone());
                }
                Some(_) => {}
            }
        }
        for tool in before {
            if !current.contains_key(tool.name()) {
                difference.removed.push(tool.name().clone());
            }
        }
        let same = difference.added.is_empty()
            && difference.removed.is_empty()
            && difference.changed.is_empty();
        (!same).then_some(difference)
    }
}
