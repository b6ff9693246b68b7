//! From a listing that failed to one that an iteration can go on with.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

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

/// What becomes of one source's answer where its failure may not be the end of the iteration.
pub(crate) struct Fallback {
    source: Source,
    /// Where a failure is not the end of the iteration.
    last_good: Option<Arc<LastGood>>,
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
        source.last_good.as_ref()?;
        Some(Self::with_list(source, position, cx, events, redactor, notices))
    }

    /// The same for every source: a rule may say what the source does not.
    pub(crate) fn with_list(
        source: &Source,
        position: usize,
        cx: &ListContext,
        events: &Arc<RunEvents>,
        redactor: &Redactor,
        notices: &mut Option<Notices>,
    ) -> (Self, Catalog) {
        let last_good = source.last_good.clone();
        let own = last_good.as_ref().map(|last_good| last_good.spare()).unwrap_or_default();
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
        (fallback, own)
    }

    /// Puts what the source answered, or what takes its place, behind a list.
    pub(crate) fn settle(
        self,
        answer: Result<Catalog, FailedListing>,
        mut into: Catalog,
    ) -> Result<Catalog, FailedListing> {
        let error = match answer {
            Ok(listing) => {
                match self.last_good {
                    Some(last_good) => {
                        into.extend_from(&listing);
                        last_good.keep(self.key, listing);
                    }
                    None => into.append(listing),
                }
                return Ok(into);
            }
            Err(failed) => failed.error,
        };
        match (self.source.on_failure, error.class()) {
            (_, DiscoveryErrorClass::Cancelled)
            | (OnFailure::Fail, _)
            | (OnFailure::Stale, DiscoveryErrorClass::Gate) => {
                Err(FailedListing { error, catalog: into })
            }
            // The failure may have come before the gate was asked.
            (OnFailure::Stale, _) if self.source.passes_over_gate() => {
                Err(FailedListing { error, catalog: into })
            }
            (OnFailure::Stale, _) => {
                let Some((listing, age)) = self.last_good() else {
                    return Ok(self.omit(&error, into));
                };
                self.events.emit(Some(self.iteration), || EventKind::SourceStale {
                    provider: self.source.provider.path().into(),
                    age_ms: millis(age),
                    tool_count: listing.offered().len(),
                });
                into.extend_from(&listing);
                self.note(OnFailure::Stale, &error, Some(listing));
                Ok(into)
            }
            (OnFailure::Omit, _) => Ok(self.omit(&error, into)),
        }
    }

    /// Goes on without the source.
    pub(crate) fn omit(&self, error: &DiscoveryError, into: Catalog) -> Catalog {
        let listing = self.last_good().map(|(listing, _)| listing);
        self.events.emit(Some(self.iteration), || EventKind::SourceOmitted {
            provider: self.source.provider.path().into(),
            name: self.source.name(),
            tool_count: listing.as_ref().map(|listing| listing.offered().len()),
        });
        self.note(OnFailure::Omit, error, listing);
        into
    }

    fn last_good(&self) -> Option<(Arc<Catalog>, Duration)> {
        self.last_good.as_ref()?.get(&self.key)
    }

    fn note(&self, outcome: OnFailure, error: &DiscoveryError, last_good: Option<Arc<Catalog>>) {
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
