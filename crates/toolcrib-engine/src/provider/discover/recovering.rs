//! Reliability rules for a failed source. No other source is listed again for it, and the configured
//! order is kept.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use toolcrib_core::{
    BreakerOpenError, Catalog, DiscoveryError, Fallback as Instead, Listing, Stage, ToolProvider,
};

use super::ListingRequest;
use crate::{
    provider::{Fallback, Source},
    reliability::{
        Attempts, ExhaustedReason, FailedAttempt, RecoveryStep, ReliabilityContext, RetryExhausted,
    },
};

/// How each source failed for good, by its position.
#[derive(Clone, Default)]
pub(crate) struct Endings(Arc<Mutex<BTreeMap<usize, Option<RetryExhausted>>>>);

impl Endings {
    fn note(&self, position: usize, exhausted: Option<RetryExhausted>) {
        self.0.lock().insert(position, exhausted);
    }

    /// The ending of the first failed source in order; the iteration fails with its error.
    pub(crate) fn first(&self) -> Option<RetryExhausted> {
        let endings = self.0.lock();
        endings.values().next().cloned().flatten()
    }
}

/// Lists a source, with the retries of the rules.
pub(crate) fn recovering(
    source: &Source,
    position: usize,
    asking: ListingRequest,
    recovery: &ReliabilityContext,
    fallback: Fallback,
    endings: &Endings,
) -> Listing {
    let providers = source.in_turn();
    let choices: Vec<Arc<str>> = providers.iter().map(|one| one.path().into()).collect();
    let mut attempts = recovery
        .attempts(Stage::Discover, choices)
        .which_are(source.which_in_turn())
        .in_iteration(Some(asking.cx.iteration()));
    let first = match attempts.begin() {
        Ok(()) => asking.ask(Arc::clone(&source.provider), 1),
        Err(open) => not_asked(open, &*source.provider),
    };
    match first {
        Listing::Now(Ok(listing)) => {
            attempts.succeeded_at_once();
            Listing::Now(fallback.settle(Ok(listing)))
        }
        // Rules apply only to sources that are needed.
        Listing::Now(Err(error)) if asking.is_optional() => Listing::now(fallback.omit(&error)),
        first => {
            let endings = endings.clone();
            let retries = Retries { providers, asking, attempts, fallback, position, endings };
            Listing::later(retries.until_settled(first))
        }
    }
}

/// The retries of one source.
struct Retries {
    /// The providers to choose from.
    providers: Vec<Arc<dyn ToolProvider>>,
    asking: ListingRequest,
    attempts: Attempts,
    fallback: Fallback,
    position: usize,
    endings: Endings,
}

impl Retries {
    /// Lists again until a listing succeeds, or no rule retries.
    async fn until_settled(mut self, first: Listing) -> Result<Catalog, DiscoveryError> {
        let mut answer = first.wait().await;
        loop {
            let error = match answer {
                Ok(listing) => {
                    self.attempts.succeeded();
                    return self.fallback.settle(Ok(listing));
                }
                Err(error) => error,
            };
            let provider = match self.attempts.failed(&FailedAttempt::of_discovery(&error)).await {
                RecoveryStep::Retry => {
                    self.attempts.choice().and_then(|choice| self.providers.get(choice)).cloned()
                }
                RecoveryStep::Other(choice) => self.providers.get(choice).cloned(),
                RecoveryStep::Fallback(Instead::Source(provider)) => Some(provider),
                RecoveryStep::Accept => return Ok(self.fallback.omit(&error)),
                RecoveryStep::Cancelled => {
                    self.endings.note(self.position, None);
                    return Err(DiscoveryError::cancelled());
                }
                RecoveryStep::RetryExhausted(exhausted) => {
                    // A rule that fails fast overrides the source's own failure setting.
                    let settled = match exhausted.code {
                        ExhaustedReason::FailFast => Err(error),
                        _ => self.fallback.settle(Err(error)),
                    };
                    return settled
                        .inspect_err(|_| self.endings.note(self.position, Some(exhausted)));
                }
                RecoveryStep::Failed | RecoveryStep::Fallback(_) => None,
            };
            let Some(provider) = provider else {
                let settled = self.fallback.settle(Err(error));
                return settled.inspect_err(|_| self.endings.note(self.position, None));
            };
            answer = match self.attempts.begin() {
                Ok(()) => self.asking.ask(provider, self.attempts.attempts()),
                Err(open) => not_asked(open, &*provider),
            }
            .wait()
            .await;
        }
    }
}

fn not_asked(open: BreakerOpenError, provider: &dyn ToolProvider) -> Listing {
    Listing::failed(open.into_discovery_error().in_provider(provider))
}
