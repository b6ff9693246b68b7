//! Reliability rules for a failed source. No other source is listed again for it, and the configured
//! order is kept.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use toolcrib_core::{
    BreakerOpenError, DiscoveryError, Fallback as Instead, Listing, Stage, ToolProvider,
};

use super::ListingRequest;
use crate::{
    provider::{Fallback, Source},
    reliability::{
        ExhaustedReason, FailedAttempt, RecoveryStep, ReliabilityContext, RetryExhausted,
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
    let first = match first {
        Listing::Now(Ok(listing)) => {
            attempts.succeeded_at_once();
            return Listing::Now(fallback.settle(Ok(listing)));
        }
        // Rules apply only to sources that are needed.
        Listing::Now(Err(error)) if asking.is_optional() => {
            return Listing::now(fallback.omit(&error));
        }
        first => first,
    };
    let endings = endings.clone();
    Listing::later(async move {
        let mut answer = first.wait().await;
        loop {
            let error = match answer {
                Ok(listing) => {
                    attempts.succeeded();
                    return fallback.settle(Ok(listing));
                }
                Err(error) => error,
            };
            let provider = match attempts.failed(&FailedAttempt::of_discovery(&error)).await {
                RecoveryStep::Retry => {
                    attempts.choice().and_then(|choice| providers.get(choice)).cloned()
                }
                RecoveryStep::Other(choice) => providers.get(choice).cloned(),
                RecoveryStep::Fallback(Instead::Source(provider)) => Some(provider),
                RecoveryStep::Accept => return Ok(fallback.omit(&error)),
                RecoveryStep::Cancelled => {
                    endings.note(position, None);
                    return Err(DiscoveryError::cancelled());
                }
                RecoveryStep::RetryExhausted(exhausted) => {
                    // A rule that fails fast overrides the source's own failure setting.
                    let settled = if exhausted.code == ExhaustedReason::FailFast {
                        Err(error)
                    } else {
                        fallback.settle(Err(error))
                    };
                    return settled.inspect_err(|_| endings.note(position, Some(exhausted)));
                }
                RecoveryStep::Failed | RecoveryStep::Fallback(_) => None,
            };
            let Some(provider) = provider else {
                let settled = fallback.settle(Err(error));
                return settled.inspect_err(|_| endings.note(position, None));
            };
            answer = match attempts.begin() {
                Ok(()) => asking.ask(provider, attempts.attempts()),
                Err(open) => not_asked(open, &*provider),
            }
            .wait()
            .await;
        }
    })
}

fn not_asked(open: BreakerOpenError, provider: &dyn ToolProvider) -> Listing {
    Listing::failed(open.into_discovery_error().in_provider(provider))
}
