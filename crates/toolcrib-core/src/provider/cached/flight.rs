use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
    task::Poll,
};

use futures_util::FutureExt as _;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    super::{DiscoveryError, DiscoveryErrorClass, Listing, ToolProvider},
    Cached, lock,
    options::Key,
    store::{Flight, Outcome},
};
use crate::{catalog::Catalog, context_list::ListContext, panic_text::panic_text};

/// A question to the provider inside. It begins when it is first polled, is asked once for all who
/// hold the flight, and ends with the last of them: then its own cancellation fires.
pub(super) fn flight(cache: &Arc<Cached>, key: Key, number: u64) -> Flight {
    let cancellation = CancellationToken::new();
    let cx = key.shown(cancellation.clone());
    let landing = Landing { cache: Arc::downgrade(cache), key, number };
    fly(Arc::clone(&cache.inner), cx, cancellation.drop_guard(), landing).boxed().shared()
}

async fn fly(
    inner: Arc<dyn ToolProvider>,
    cx: ListContext,
    abandoned: DropGuard,
    landing: Landing,
) -> Outcome {
    let asked = async {
        match Arc::clone(&inner).list(&cx, Catalog::new()) {
            Listing::Now(answer) => answer,
            Listing::Later(future) => {
                // The first poll tells whether the answer is there at once, and no more.
                once_more().await;
                future.await
            }
        }
    };
    let outcome = match AssertUnwindSafe(asked).catch_unwind().await {
        Ok(Ok(mut catalog)) => {
            catalog.take_answered();
            Ok(Arc::new(catalog))
        }
        Ok(Err(failed)) => Err(failed.error),
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

/// Comes back when it is polled again.
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

/// Where an answer goes. However the flight ends, the cache hears of it.
struct Landing {
    cache: Weak<Cached>,
    key: Key,
    number: u64,
}

impl Landing {
    fn keep(&self, listing: &Arc<Catalog>) {
        let Some(cache) = self.cache.upgrade() else { return };
        let mut store = lock(&cache.store);
        if !store.counts(&self.key, self.number) {
            return;
        }
        let replaced = store.keep(self.key.clone(), Arc::clone(listing), &cache.options);
        drop(store);
        drop(replaced);
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.upgrade() {
            lock(&cache.store).end(&self.key, self.number);
        }
    }
}
