//! From a listing that failed to one that an iteration can go on with.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcrib_core::{
    Catalog, DiscoveryError, DiscoveryErrorClass, EventKind, FailedListing, ListContext, RunEvents,
    millis,
};

use super::{
    Notice, OnFailure, Source,
    last_good::{Key, LastGood},
};
use crate::redactor::Redactor;

/// The notices of one iteration, in the order of the sources, whatever order they answer in.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<(usize, Notice)>>>);

impl Notices {
    pub(crate) fn in_order(&self) -> Vec<Notice> {
        let mut found = std::mem::take(&mut *self.lock());
        found.sort_by_key(|(position, _)| *position);
        found.into_iter().map(|(_, notice)| notice).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Notice)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of one source's answer where its failure is not the end of the iteration.
pub(crate) struct Fallback {
    source: Source,
    last_good: Arc<LastGood>,
    key: Key,
    iteration: u32,
    events: Arc<RunEvents>,
    redactor: Redactor,
    position: usize,
    notices: Notices,
}

impl Fallback {
    /// `None` where a failure ends the iteration. With it comes the list that the source is to fill:
    /// one of its own, so that whatever it does to that, nobody else's tools are lost.
    pub(crate) fn of(
        source: &Source,
        position: usize,
        cx: &ListContext,
        events: &Arc<RunEvents>,
        redactor: &Redactor,
        notices: &mut Option<Notices>,
    ) -> Option<(Self, Catalog)> {
        let last_good = Arc::clone(source.last_good.as_ref()?);
        let own = last_good.spare();
        let fallback = Self {
            source: source.clone(),
            last_good,
            key: Key::of(cx),
            iteration: cx.iteration(),
            events: Arc::clone(events),
            redactor: redactor.clone(),
            position,
            notices: notices.get_or_insert_default().clone(),
        };
        Some((fallback, own))
    }

    /// Puts what the source answered, or what takes its place, behind a list.
    pub(crate) fn settle(
        self,
        answer: Result<Catalog, FailedListing>,
        mut into: Catalog,
    ) -> Result<Catalog, FailedListing> {
        let error = match answer {
            Ok(listing) => {
                into.extend_from(&listing);
                self.last_good.keep(self.key, listing);
                return Ok(into);
            }
            Err(failed) => failed.error,
        };
        let last_good = self.last_good.get(&self.key);
        match (self.source.on_failure, error.class(), last_good) {
            (_, DiscoveryErrorClass::Cancelled, _)
            | (OnFailure::Fail, ..)
            | (OnFailure::Stale, DiscoveryErrorClass::Gate, _)
            | (OnFailure::Stale, _, None) => Err(FailedListing { error, catalog: into }),
            (OnFailure::Stale, _, Some((listing, age))) => {
                self.events.emit(Some(self.iteration), || EventKind::SourceStale {
                    provider: self.source.provider.path().into(),
                    age_ms: millis(age),
                    tool_count: listing.offered().len(),
                });
                into.extend_from(&listing);
                self.note(&error, Some(listing));
                Ok(into)
            }
            (OnFailure::Omit, _, last_good) => {
                let listing = last_good.map(|(listing, _)| listing);
                self.events.emit(Some(self.iteration), || EventKind::SourceOmitted {
                    provider: self.source.provider.path().into(),
                    name: self.source.name(),
                    tool_count: listing.as_ref().map(|listing| listing.offered().len()),
                });
                self.note(&error, listing);
                Ok(into)
            }
        }
    }

    fn note(&self, error: &DiscoveryError, last_good: Option<Arc<Catalog>>) {
        let notice = Notice {
            source: self.source.provider.path().into(),
            name: self.source.name(),
            outcome: self.source.on_failure,
            reason: self.redactor.text(error.message()).into(),
            last_good,
        };
        self.notices.lock().push((self.position, notice));
    }
}
