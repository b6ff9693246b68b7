mod flight;
mod options;
mod store;

use std::sync::Arc;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::{runtime::Handle, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::{
    options::{CacheOptions, KeyField, ListingKey, Ttl},
    store::{ListingStore, StoredListing},
};
use super::{
    DiscoveryError, Listing, ToolProvider,
    catalog::Catalog,
    context_list::ListContext,
    listing_info::{CacheStatus, ListingInfo},
};
use crate::internal::single_flight::{Flight, SingleFlight};

/// Caches a provider's listings for a TTL, under a key of declared fields of the context.
///
/// - The inner provider sees only those fields, so no listing can depend on a field outside the
///   key. Gates that look at more fields belong around the cache, not inside.
/// - Single flight: concurrent requests for one key query the provider once. A cancelled caller
///   does not affect the others; when the last one leaves, the request is dropped and its
///   cancellation fires.
/// - Errors are never cached. All waiters get the error; the next request queries the provider
///   again.
/// - A fresh listing is returned immediately, without a future and without an allocation, with the
///   same tool instances as before.
/// - An expired listing may be served [while it is revalidated](CacheOptions::stale_for) in the
///   background. The cache owns that fetch: one per key, and no run's cancellation ends it. It ends
///   with the cache, or after the time of `stale_for` unless a caller waits for it by then. Its
///   failure is not reported; the age in the events shows it. It requires tokio's timer. Outside a
///   tokio runtime, the caller waits instead.
///
/// On a cache miss, immediate listings stay immediate and asynchronous ones stay asynchronous.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_core::{CacheOptions, KeyField, Ttl, cached, static_tools};
///
/// let options = CacheOptions::new([KeyField::Tenant], Ttl::after(Duration::from_secs(60)))
///     .stale_for(Duration::from_secs(30))
///     .stale_on_error(Duration::from_secs(3600));
/// let cache = cached(static_tools([]), options);
/// // Keep the handle, to say that the catalog has changed:
/// cache.invalidate();
/// ```
///
/// The TTL has no default:
///
/// ```compile_fail
/// # use toolcrib_core::{CacheOptions, KeyField, cached, static_tools};
/// cached(static_tools([]), CacheOptions::new([KeyField::Tenant]));
/// ```
pub fn cached(inner: Arc<dyn ToolProvider>, options: CacheOptions) -> Arc<Cached> {
    let closing = CancellationToken::new();
    Arc::new(Cached {
        inner,
        store: Mutex::new(Store {
            listings: ListingStore::new(options.clone()),
            flights: SingleFlight::default(),
        }),
        options,
        _ends_background: closing.clone().drop_guard(),
        closing,
    })
}

/// A caching provider; see [`cached`].
pub struct Cached {
    inner: Arc<dyn ToolProvider>,
    options: CacheOptions,
    store: Mutex<Store>,
    /// Ends the background fetches.
    closing: CancellationToken,
    _ends_background: DropGuard,
}

/// The result of one fetch, shared by all waiters.
type Outcome = Result<Catalog, DiscoveryError>;

/// The entries and the fetches in progress.
struct Store {
    listings: ListingStore,
    flights: SingleFlight<ListingKey, Outcome>,
}

impl Cached {
    /// Removes all entries of the cache. Fetches in progress are delivered to their waiters, but
    /// not cached.
    pub fn invalidate(&self) {
        let forgotten = {
            let mut store = self.store.lock();
            store.flights.clear();
            store.listings.take()
        };
        drop(forgotten);
    }

    /// Removes the entry for a context.
    pub fn invalidate_key(&self, cx: &ListContext) {
        let key = self.options.key(cx);
        let forgotten = {
            let mut store = self.store.lock();
            store.flights.forget(&key);
            store.listings.remove(&key)
        };
        drop(forgotten);
    }

    /// The number of entries, fresh or expired.
    pub fn len(&self) -> usize {
        self.store.lock().listings.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks up a key. One lock covers the lookup and the new flight, so that no caller fetches an
    /// entry that has just arrived.
    fn known(self: &Arc<Self>, key: &ListingKey) -> Lookup {
        // Declared before the lock: if it is the flight's last reference, the flight ends without
        // the lock.
        let under_way;
        let mut store = self.store.lock();
        let kept = store.listings.get(key);
        let kept = match kept {
            Some(kept) if kept.over_for.is_none() => return Lookup::Fresh(kept),
            kept => kept.filter(|kept| {
                kept.over_for.is_some_and(|over_for| self.options.serves_stale(over_for))
            }),
        };
        under_way = store.flights.join(key);
        if let Some(kept) = kept
            && let Ok(runtime) = Handle::try_current()
        {
            if under_way.is_none() {
                let flight = self.begin(&mut store, key);
                drop(store);
                self.fetch_in_background(&runtime, flight);
            }
            return Lookup::Stale(kept);
        }
        match under_way {
            Some(flight) => Lookup::Pending(flight, CacheStatus::Joined),
            None => Lookup::Pending(self.begin(&mut store, key), CacheStatus::Miss),
        }
    }

    fn begin(self: &Arc<Self>, store: &mut Store, key: &ListingKey) -> Flight<Outcome> {
        store.flights.begin(key.clone(), |number| flight::flight(self, key.clone(), number))
    }

    fn fetch_in_background(&self, runtime: &Handle, flight: Flight<Outcome>) {
        let closing = self.closing.clone();
        // After that time the old entry is no longer served while this fetch runs: callers wait and
        // keep the flight alive. A fetch that hangs must not block them all.
        let most = self.options.serves_stale_for();
        runtime.spawn(async move {
            tokio::select! {
                biased;
                () = closing.cancelled() => {}
                _ = flight => {}
                () = sleep(most) => {}
            }
        });
    }

    fn settle(
        &self,
        key: &ListingKey,
        outcome: Outcome,
        cache: CacheStatus,
    ) -> Result<Catalog, DiscoveryError> {
        let error = match outcome {
            Ok(listing) => {
                // Unless it was invalidated meanwhile.
                let kept = self.store.lock().listings.get(key);
                let fresh_for = kept.map(|kept| kept.fresh_for).unwrap_or_default();
                let info = ListingInfo { cache, fresh_for, ..ListingInfo::default() };
                return Ok(listing.with_listing_info(info));
            }
            Err(error) => error,
        };
        match self.store.lock().listings.instead_of(&error, key) {
            Some(kept) => Ok(kept.given(CacheStatus::Stale, Some(error.message().into()))),
            None => Err(error),
        }
    }
}

/// The result of a lookup.
enum Lookup {
    Fresh(StoredListing),
    /// The entry has expired; a fetch is in progress.
    Stale(StoredListing),
    /// A flight: started for this listing, or joined.
    Pending(Flight<Outcome>, CacheStatus),
}

impl StoredListing {
    fn given(self, cache: CacheStatus, error: Option<Arc<str>>) -> Catalog {
        let Self { listing, age, fresh_for, .. } = self;
        listing.with_listing_info(ListingInfo { cache, age: Some(age), error, fresh_for })
    }
}

impl ToolProvider for Cached {
    fn id(&self) -> &str {
        "cached"
    }

    fn path(&self) -> String {
        format!("cached > {}", self.inner.path())
    }

    forward!(leaf, covers, is_gated);

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let key = self.options.key(cx);
        let (mut flight, cache) = match self.known(&key) {
            Lookup::Fresh(kept) => return Listing::now(kept.given(CacheStatus::Hit, None)),
            Lookup::Stale(kept) => return Listing::now(kept.given(CacheStatus::Stale, None)),
            Lookup::Pending(flight, cache) => (flight, cache),
        };
        if let Some(outcome) = (&mut flight).now_or_never() {
            return Listing::Now(self.settle(&key, outcome, cache));
        }
        let cancellation = cx.cancellation().clone();
        Listing::later(async move {
            let outcome = tokio::select! {
                biased;
                () = cancellation.cancelled() => Err(DiscoveryError::cancelled()),
                outcome = flight => outcome,
            };
            self.settle(&key, outcome, cache)
        })
    }
}

crate::internal::debug_fields!(
    Cached,
    cached,
    provider = cached.inner.path(),
    options = cached.options,
    entries = cached.len(),
    ..
);
