mod flight;
mod options;
mod store;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::FutureExt as _;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::options::{CacheOptions, KeyField, Ttl};
use self::{
    options::Key,
    store::{Flight, Kept, Outcome, Store},
};
use super::{DiscoveryError, FailedListing, Listing, ToolProvider};
use crate::{
    answered::{Answered, CacheUse},
    catalog::Catalog,
    context_list::ListContext,
};

/// Keeps a provider's answers, each for as long as the options say, under a key of declared fields
/// of the context.
///
/// - The provider inside sees those fields and nothing else, so no answer can depend on what the key
///   leaves out. The gates that look at more stand around the cache, not in it.
/// - However many ask for one key at the same time, the provider is asked once. Somebody who is
///   cancelled leaves the others alone; when the last has left, the question is dropped and its
///   cancellation fires.
/// - Errors are never kept. Whoever waited gets the error; the next one asks again.
/// - A fresh answer is given now, without a future and without an allocation, with the very same
///   tools as before.
/// - What has [had its time](CacheOptions::stale_for) may be given while a new answer is fetched in
///   the background. That is the cache's own work and no run's: one question per key, which no
///   run's cancellation ends. The end of the cache does, and so does the time of `stale_for`, unless
///   somebody waits for it by then. A failure of it is not reported; the age in the events tells.
///   It needs tokio's timer. Without a tokio runtime around it, whoever asks waits instead.
///
/// Mirrors its inner provider where it has to ask: now stays now, later stays later.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_core::{CacheOptions, KeyField, Ttl, cached, static_tools};
///
/// let options = CacheOptions::new([KeyField::Tenant], Ttl::after(Duration::from_secs(60)))
///     .stale_for(Duration::from_secs(30))
///     .stale_on_error(Duration::from_secs(3600));
/// let cache = cached(static_tools([]), options);
/// // Keep the handle, to say that the catalogue has changed:
/// cache.invalidate();
/// ```
///
/// There is no default for how long:
///
/// ```compile_fail
/// # use toolcrib_core::{CacheOptions, KeyField, cached, static_tools};
/// cached(static_tools([]), CacheOptions::new([KeyField::Tenant]));
/// ```
pub fn cached(inner: Arc<dyn ToolProvider>, options: CacheOptions) -> Arc<Cached> {
    let closing = CancellationToken::new();
    Arc::new(Cached {
        inner,
        options,
        store: Mutex::default(),
        _ends_background: closing.clone().drop_guard(),
        closing,
    })
}

/// A provider with a cache; see [`cached`].
pub struct Cached {
    inner: Arc<dyn ToolProvider>,
    options: CacheOptions,
    store: Mutex<Store>,
    /// What ends the fetches of the background.
    closing: CancellationToken,
    _ends_background: DropGuard,
}

impl Cached {
    /// Forgets all answers. What is being fetched is given to those who wait for it, and not kept.
    pub fn invalidate(&self) {
        let forgotten = lock(&self.store).forget_all();
        drop(forgotten);
    }

    /// Forgets the answer that such a context would be given.
    pub fn invalidate_key(&self, cx: &ListContext) {
        let forgotten = lock(&self.store).forget(&self.options.key(cx));
        drop(forgotten);
    }

    /// How many answers are kept, fresh or not.
    pub fn len(&self) -> usize {
        lock(&self.store).len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kept(&self, key: &Key) -> Option<Kept> {
        lock(&self.store).get(key, Instant::now())
    }

    /// What can be said under a key: under one lock, so that nobody asks for what has just come in.
    fn known(self: &Arc<Self>, key: &Key) -> Known {
        // Declared before the lock: if it is the last to hold its flight, that ends without it.
        let under_way;
        let mut store = lock(&self.store);
        let kept = store.get(key, Instant::now());
        let kept = match kept {
            Some(kept) if kept.over_for.is_none() => return Known::Fresh(kept),
            kept => kept.filter(|kept| {
                kept.over_for.is_some_and(|over_for| self.options.serves_stale(over_for))
            }),
        };
        under_way = store.under_way(key);
        if let Some(kept) = kept
            && let Ok(runtime) = Handle::try_current()
        {
            if under_way.is_none() {
                let flight = self.begin(&mut store, key);
                drop(store);
                self.fetch_in_background(&runtime, flight);
            }
            return Known::Stale(kept);
        }
        match under_way {
            Some(flight) => Known::Asking(flight, CacheUse::Joined),
            None => Known::Asking(self.begin(&mut store, key), CacheUse::Miss),
        }
    }

    fn begin(self: &Arc<Self>, store: &mut Store, key: &Key) -> Flight {
        let number = store.next_number();
        let flight = flight::flight(self, key.clone(), number);
        store.begin(key.clone(), number, &flight);
        flight
    }

    fn fetch_in_background(&self, runtime: &Handle, flight: Flight) {
        let closing = self.closing.clone();
        // Beyond that time nobody is given the old answer while this is fetched: whoever asks waits,
        // and keeps alive what it waits for. A fetch that hangs must not be what they all wait for.
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
        key: &Key,
        outcome: Outcome,
        cache: CacheUse,
        mut into: Catalog,
    ) -> Result<Catalog, FailedListing> {
        let error = match outcome {
            Ok(listing) => {
                into.extend_from(&listing);
                into.note_answered(Answered { cache, ..Answered::default() });
                return Ok(into);
            }
            Err(error) => error,
        };
        let kept = if error.class().allows_stale() { self.kept(key) } else { None };
        let usable = |kept: &Kept| {
            kept.over_for.is_none_or(|over_for| self.options.serves_on_error(over_for))
        };
        match kept.filter(usable) {
            Some(kept) => Ok(kept.given(into, CacheUse::Stale, Some(error.message().into()))),
            None => Err(FailedListing { error, catalog: into }),
        }
    }
}

/// What can be said at once.
enum Known {
    Fresh(Kept),
    /// Its time is over; a new one is being fetched.
    Stale(Kept),
    /// The answer of a flight: one that was begun for this listing, or one that it joins.
    Asking(Flight, CacheUse),
}

impl Kept {
    fn given(self, mut into: Catalog, cache: CacheUse, error: Option<Arc<str>>) -> Catalog {
        into.extend_from(&self.listing);
        into.note_answered(Answered { cache, age: Some(self.age), error });
        into
    }
}

impl ToolProvider for Cached {
    fn id(&self) -> &str {
        "cached"
    }

    fn path(&self) -> String {
        format!("cached > {}", self.inner.path())
    }

    fn leaf(&self) -> &str {
        self.inner.leaf()
    }

    fn covers(&self) -> Option<&str> {
        self.inner.covers()
    }

    fn is_gated(&self) -> bool {
        self.inner.is_gated()
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let key = self.options.key(cx);
        let (mut flight, cache) = match self.known(&key) {
            Known::Fresh(kept) => return Listing::now(kept.given(into, CacheUse::Hit, None)),
            Known::Stale(kept) => return Listing::now(kept.given(into, CacheUse::Stale, None)),
            Known::Asking(flight, cache) => (flight, cache),
        };
        if let Some(outcome) = (&mut flight).now_or_never() {
            return Listing::Now(self.settle(&key, outcome, cache, into));
        }
        let cancellation = cx.cancellation().clone();
        Listing::later(async move {
            let outcome = tokio::select! {
                biased;
                () = cancellation.cancelled() => Err(DiscoveryError::cancelled()),
                outcome = flight => outcome,
            };
            self.settle(&key, outcome, cache, into)
        })
    }
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached")
            .field("provider", &self.inner.path())
            .field("options", &self.options)
            .field("entries", &self.len())
            .finish_non_exhaustive()
    }
}

/// A lock that a panicking holder leaves usable: nothing under it can panic half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
