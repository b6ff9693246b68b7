//! Replaces a failed listing by one that an iteration can continue with.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{
    __internal::{ListingKey, StoredListing, millis},
    Catalog, DiscoveryError, DiscoveryErrorClass, EventKind, ListContext, TurnEvents,
};

use super::{Listings, Notice, OnFailure, Source};
use crate::secrets::Redactor;

/// The notices of one iteration, in the order of the sources, independent of completion order.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<(usize, Notice)>>>);

impl Notices {
    pub(crate) fn in_order(&self) -> Vec<Notice> {
        let mut found = std::mem::take(&mut *self.lock());
        found.sort_by_key(|(position, _)| *position);
        found.into_iter().map(|(_, notice)| notice).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Notice)>> {
        self.0.lock()
    }
}

/// How a source's failed listing is replaced, if its failure may not end the iteration.
pub(crate) struct Fallback {
    source: Source,
    /// `Some` if a failure does not end the iteration.
    listings: Option<(Arc<Listings>, ListingKey)>,
    iteration: u32,
    events: Arc<TurnEvents>,
    redactor: Redactor,
    position: usize,
    notices: Notices,
}

impl Fallback {
    /// For every source: a rule may handle failures that the source does not.
    pub(crate) fn new(
        source: &Source,
        position: usize,
        cx: &ListContext,
        events: &Arc<TurnEvents>,
        redactor: &Redactor,
        notices: &mut Option<Notices>,
    ) -> Self {
        Self {
            source: source.clone(),
            listings: source.listings(false).map(|kept| (Arc::clone(kept), kept.key(cx))),
            iteration: cx.iteration(),
            events: Arc::clone(events),
            redactor: redactor.clone(),
            position,
            notices: notices.get_or_insert_default().clone(),
        }
    }

    /// The source's listing, or its replacement.
    pub(crate) fn settle(
        self,
        answer: Result<Catalog, DiscoveryError>,
    ) -> Result<Catalog, DiscoveryError> {
        let error = match answer {
            Ok(listing) => return Ok(listing),
            Err(error) => error,
        };
        match (self.source.on_failure, error.class()) {
            (_, DiscoveryErrorClass::Cancelled)
            | (OnFailure::Fail, _)
            | (OnFailure::Stale, DiscoveryErrorClass::Gate) => Err(error),
            // The failure may have happened before the gate decided.
            (OnFailure::Stale, _) if self.source.passes_over_gate() => Err(error),
            (OnFailure::Stale, _) => {
                let kept = self.listings.as_ref();
                let Some(StoredListing { listing, age, .. }) =
                    kept.and_then(|(listings, key)| listings.instead_of(&error, key))
                else {
                    return Ok(self.omit(&error));
                };
                // It may be older than a secret.
                let listing = self.redactor.catalog(listing);
                self.events.emit(Some(self.iteration), || EventKind::ProviderStale {
                    provider: self.source.provider.path().into(),
                    age_ms: millis(age),
                    tool_count: listing.offered().len(),
                });
                self.note(OnFailure::Stale, &error, Some(listing.clone()));
                Ok(listing)
            }
            (OnFailure::Omit, _) => Ok(self.omit(&error)),
        }
    }

    /// Continues without the source: an empty list.
    pub(crate) fn omit(&self, error: &DiscoveryError) -> Catalog {
        let kept = self.listings.as_ref();
        let listing = kept.and_then(|(listings, key)| listings.last(key));
        let listing = listing.map(|listing| self.redactor.catalog(listing));
        self.events.emit(Some(self.iteration), || EventKind::ProviderOmitted {
            provider: self.source.provider.path().into(),
            name: self.source.name(),
            tool_count: listing.as_ref().map(|listing| listing.offered().len()),
        });
        self.note(OnFailure::Omit, error, listing);
        Catalog::new()
    }

    fn note(&self, outcome: OnFailure, error: &DiscoveryError, last_good: Option<Catalog>) {
        let notice = Notice {
            source: self.source.provider.path().into(),
            name: self.source.name(),
            outcome,
            reason: self.redactor.text(error.message()).into(),
            last_good,
        };
        self.notices.lock().push((self.position, notice));
    }
}
