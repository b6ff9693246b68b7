//! A source that fails, and what rules do about it. Nobody else is asked again for it: each source
//! fills a list of its own, and their order stays that of the configuration.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use toolcrib_core::{
    Catalog, DiscoveryError, FailedListing, Fallback as Instead, Listing, Stage, ToolProvider,
};

use super::Asking;
use crate::{
    breaker::BreakerOpen,
    reliability::{FailedAttempt, GaveUp, GaveUpCode, NextStep, Recovery},
    sources::{Fallback, Source},
};

/// How each source ended that failed for good, by its position.
#[derive(Clone, Default)]
pub(super) struct Endings(Arc<Mutex<BTreeMap<usize, Option<GaveUp>>>>);

impl Endings {
    fn note(&self, position: usize, gave_up: Option<GaveUp>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(position, gave_up);
    }

    /// That of the first in order, whose error it is that the iteration fails with.
    pub(super) fn first(&self) -> Option<GaveUp> {
        let endings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        endings.values().next().cloned().flatten()
    }
}

/// Asks a source, as often as rules have it, and puts what came of it behind a list.
pub(super) fn recovering(
    source: &Source,
    position: usize,
    asking: Asking,
    recovery: &Recovery,
    (fallback, own): (Fallback, Catalog),
    endings: &Endings,
    into: Catalog,
) -> Listing {
    let providers = source.in_turn();
    let choices: Vec<Arc<str>> = providers.iter().map(|one| one.path().into()).collect();
    let mut attempts = recovery
        .attempts(Stage::Discover, choices)
        .which_are(source.which_in_turn())
        .in_iteration(Some(asking.cx.iteration()));
    let first = match attempts.begin() {
        Ok(()) => asking.ask(Arc::clone(&source.provider), 1, own),
        Err(open) => not_asked(open, &*source.provider, own),
    };
    let first = match first {
        Listing::Now(Ok(listing)) => {
            attempts.succeeded_at_once();
            return Listing::Now(fallback.settle(Ok(listing), into));
        }
        // Rules are for what is needed.
        Listing::Now(Err(failed)) if asking.is_optional() => {
            return Listing::now(fallback.omit(&failed.error, into));
        }
        first => first,
    };
    let endings = endings.clone();
    Listing::later(async move {
        let mut answer = first.wait().await;
        loop {
            let FailedListing { error, mut catalog } = match answer {
                Ok(listing) => {
                    attempts.succeeded();
                    return fallback.settle(Ok(listing), into);
                }
                Err(failed) => failed,
            };
            catalog.clear();
            let provider = match attempts.failed(&FailedAttempt::of_discovery(&error)).await {
                NextStep::Retry => {
                    attempts.choice().and_then(|choice| providers.get(choice)).cloned()
                }
                NextStep::Other(choice) => providers.get(choice).cloned(),
                NextStep::Fallback(Instead::Source(provider)) => Some(provider),
                NextStep::Accept => return Ok(fallback.omit(&error, into)),
                NextStep::Cancelled => {
                    endings.note(position, None);
                    return Err(FailedListing {
                        error: DiscoveryError::cancelled(),
                        catalog: into,
                    });
                }
                NextStep::GaveUp(gave_up) => {
                    // A rule that fails fast is louder than what the source says of its failures.
                    let settled = if gave_up.code == GaveUpCode::FailFast {
                        Err(FailedListing { error, catalog: into })
                    } else {
                        fallback.settle(Err(FailedListing { error, catalog }), into)
                    };
                    return settled.inspect_err(|_| endings.note(position, Some(gave_up)));
                }
                NextStep::Failed | NextStep::Fallback(_) => None,
            };
            let Some(provider) = provider else {
                let settled = fallback.settle(Err(FailedListing { error, catalog }), into);
                return settled.inspect_err(|_| endings.note(position, None));
            };
            answer = match attempts.begin() {
                Ok(()) => asking.ask(provider, attempts.attempts(), catalog),
                Err(open) => not_asked(open, &*provider, catalog),
            }
            .wait()
            .await;
        }
    })
}

fn not_asked(open: BreakerOpen, provider: &dyn ToolProvider, list: Catalog) -> Listing {
    Listing::failed(list, open.into_discovery_error().in_provider(provider))
}
