use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
    task::Poll,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    super::{DiscoveryError, DiscoveryErrorClass, Listing, ToolProvider},
    Cached, Outcome,
    options::ListingKey,
};
use crate::{
    internal::panic_text::panic_text,
    provider::{catalog::Catalog, context_list::ListContext},
};

/// A request to the inner provider. It starts on the first poll. When it is dropped, its cancellation
/// fires.
pub(super) fn flight(
    cache: &Arc<Cached>,
    key: ListingKey,
    number: u64,
) -> BoxFuture<'static, Outcome> {
    let cancellation = CancellationToken::new();
    let cx = key.shown(cancellation.clone());
    let landing = CompletionGuard { cache: Arc::downgrade(cache), key, number };
    fly(Arc::clone(&cache.inner), cx, cancellation.drop_guard(), landing).boxed()
}

async fn fly(
    inner: Arc<dyn ToolProvider>,
    cx: ListContext,
    abandoned: DropGuard,
    landing: CompletionGuard,
) -> Outcome {
    let asked = async {
        match Arc::clone(&inner).list(&cx) {
            Listing::Now(answer) => answer,
            Listing::Later(future) => {
                // The first poll only shows whether the answer is immediate.
                once_more().await;
                future.await
            }
        }
    };
    let outcome = match AssertUnwindSafe(asked).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => {
            let message = format!("it panicked: {}", panic_text(&*panic));
            Err(DiscoveryError::new(DiscoveryErrorClass::Panic, message))
        }
    };
    let outcome = outcome.map_err(|error| error.in_provider(&*inner));
    drop(abandoned.disarm());
    if let Ok(listing) = &outcome {
        landing.keep(listing);
    }
    outcome
}

/// Completes on the second poll.
async fn once_more() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Delivers the outcome to the cache, however the flight ends.
struct CompletionGuard {
    cache: Weak<Cached>,
    key: ListingKey,
    number: u64,
}

impl CompletionGuard {
    fn keep(&self, listing: &Catalog) {
        let Some(cache) = self.cache.upgrade() else { return };
        let mut store = cache.store.lock();
        if !store.flights.is_current(&self.key, self.number) {
            return;
        }
        let replaced = store.listings.keep(self.key.clone(), listing.clone());
        drop(store);
        drop(replaced);
    }
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.upgrade() {
            cache.store.lock().flights.end(&self.key, self.number);
        }
    }
}
