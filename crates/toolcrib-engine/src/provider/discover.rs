//! Lists the providers of a turn, once per iteration unless a rule requests a retry, and emits the
//! events. An iteration for a single tool waits only for the sources that may have it.

mod recovering;

use std::{
    borrow::Cow,
    error::Error,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;
use tokio::time::{Instant as Deadline, sleep_until};
use toolcrib_core::{
    __internal::{CatalogBuilder, ListingKey, list_in_order, millis, panic_text},
    Catalog, DiscoveryError, DiscoveryErrorClass, EventKind, ListContext, Listing, ListingInfo,
    Stage, ToolProvider, TurnEvents,
};

use self::recovering::{Endings, recovering};
use super::{Difference, Fallback, Listings, Notice, Notices, Source};
use crate::{
    reliability::{ReliabilityContext, RetryExhausted},
    secrets::Redactor,
};

/// The listings of an iteration's sources.
pub(crate) struct DiscoveredTools {
    pub(crate) catalog: Catalog,
    /// The sources that failed and did not end the iteration, in configured order.
    pub(crate) notices: Vec<Notice>,
}

/// The error that ends an iteration before it begins.
pub(crate) struct DiscoveryFailure {
    pub(crate) error: DiscoveryError,
    /// How rules gave up on the failed source, if rules applied to it.
    pub(crate) exhausted: Option<RetryExhausted>,
}

/// The sources that an iteration needs.
#[derive(Clone, Copy)]
pub(crate) struct Needs<'a> {
    /// The only tool that it needs; `None` for a menu.
    pub(crate) tool: Option<&'a str>,
    /// Time limit for a source's listing. Default: none.
    pub(crate) within: Option<Duration>,
}

impl Needs<'_> {
    /// Whether the iteration needs this source, or the alternatives that rules may use.
    fn include(&self, source: &Source, recovery: Option<&ReliabilityContext>) -> bool {
        self.tool.is_none_or(|tool| {
            source.may_have(tool) || recovery.is_some_and(|rules| rules.may_have(tool))
        })
    }
}

/// How long to wait for a listing.
#[derive(Clone, Copy)]
enum Patience {
    Endless,
    Until(Deadline),
    /// The listing counts only if it is ready at once.
    None,
}

/// The running listings of an iteration. It borrows nothing, so a turn may continue meanwhile.
pub(crate) struct Pending {
    listing: Listing,
    notices: Option<Notices>,
    endings: Option<Endings>,
}

/// Lists all sources, in configured order. A result that is the same as the `last` one is that
/// instance.
pub(crate) fn ask<'a>(
    sources: impl Iterator<Item = &'a Source>,
    events: &Arc<TurnEvents>,
    redactor: &Redactor,
    cx: &ListContext,
    recovery: &ReliabilityContext,
    needs: Needs<'_>,
    last: Catalog,
) -> Pending {
    let mut notices: Option<Notices> = None;
    let recovery = Some(recovery).filter(|recovery| recovery.is_about(Stage::Discover));
    let endings = recovery.map(|_| Endings::default());
    let waits = match needs.within {
        Some(within) => Patience::Until(Deadline::now() + within),
        None => Patience::Endless,
    };
    let whole = CatalogBuilder::like(last);
    let listing = list_in_order(sources.enumerate(), whole, |(position, source)| {
        let is_needed = needs.include(source, recovery);
        let asking = ListingRequest {
            listings: source.listings(events.has_listeners()).cloned(),
            events: Arc::clone(events),
            redactor: redactor.clone(),
            cx: cx.clone(),
            patience: if is_needed { waits } else { Patience::None },
            is_baseline: source.is_baseline,
        };
        if recovery.is_none() && is_needed && source.ends_iteration() {
            return asking.ask(Arc::clone(&source.provider), 1);
        }
        let fallback = Fallback::new(source, position, cx, events, redactor, &mut notices);
        if let (Some(recovery), Some(endings)) = (recovery, &endings) {
            return recovering(source, position, asking, recovery, fallback, endings);
        }
        match asking.ask(Arc::clone(&source.provider), 1) {
            Listing::Now(Err(error)) if !is_needed => Listing::now(fallback.omit(&error)),
            answer => answer.then(|answer| fallback.settle(answer)),
        }
    });
    Pending { listing, notices, endings }
}

impl Pending {
    /// All catalogs in configured order, independent of the order of completion.
    pub(crate) async fn answered(self) -> Result<DiscoveredTools, DiscoveryFailure> {
        let Self { listing, notices, endings } = self;
        let catalog = listing.wait().await.map_err(|error| DiscoveryFailure {
            error,
            exhausted: endings.and_then(|endings| endings.first()),
        })?;
        let notices = notices.map(|notices| notices.in_order()).unwrap_or_default();
        Ok(DiscoveredTools { catalog, notices })
    }
}

/// All that is needed to list a provider, kept for retries.
struct ListingRequest {
    listings: Option<Arc<Listings>>,
    events: Arc<TurnEvents>,
    redactor: Redactor,
    cx: ListContext,
    patience: Patience,
    is_baseline: bool,
}

impl ListingRequest {
    /// Whether the iteration continues without it unless it answers at once.
    fn is_optional(&self) -> bool {
        matches!(self.patience, Patience::None)
    }

    /// One provider's listing between `discovery_started` and `discovery_completed` or `_failed`. A
    /// panic is a failure; cancellation does not wait for a provider that ignores it.
    fn ask(&self, provider: Arc<dyn ToolProvider>, attempt: u32) -> Listing {
        let Self { listings, events, redactor, cx, patience, is_baseline } = self;
        let patience = *patience;
        let asked = ListingAttempt {
            events: Arc::clone(events),
            redactor: redactor.clone(),
            source: Arc::clone(&provider),
            listings: listings.as_ref().map(|listings| (Arc::clone(listings), listings.key(cx))),
            iteration: cx.iteration(),
            attempt,
            began: Instant::now(),
            is_baseline: *is_baseline,
        };
        asked.started();
        let listing = catch_unwind(AssertUnwindSafe(|| provider.list(cx)));
        match listing {
            Ok(Listing::Now(answer)) => Listing::Now(asked.ended(answer)),
            Ok(Listing::Later(_)) if matches!(patience, Patience::None) => {
                Listing::Now(asked.ended(Err(too_late(patience))))
            }
            Ok(Listing::Later(future)) => {
                let cancellation = cx.cancellation().clone();
                Listing::later(async move {
                    let answer = tokio::select! {
                        biased;
                        () = cancellation.cancelled() => Err(DiscoveryError::cancelled()),
                        answer = AssertUnwindSafe(future).catch_unwind() => {
                            answer.unwrap_or_else(|panic| Err(panicked(&*panic)))
                        }
                        () = patience.is_over() => Err(too_late(patience)),
                    };
                    asked.ended(answer)
                })
            }
            Err(panic) => Listing::Now(asked.ended(Err(panicked(&*panic)))),
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> DiscoveryError {
    let message = format!("it panicked: {}", panic_text(panic));
    DiscoveryError::new(DiscoveryErrorClass::Panic, message)
}

impl Patience {
    async fn is_over(self) {
        match self {
            Self::Until(deadline) => sleep_until(deadline).await,
            Self::Endless | Self::None => std::future::pending().await,
        }
    }
}

fn too_late(patience: Patience) -> DiscoveryError {
    let message = match patience {
        Patience::None => "it did not answer at once, and the call does not need it",
        Patience::Endless | Patience::Until(_) => "it did not answer in time",
    };
    DiscoveryError::new(DiscoveryErrorClass::Timeout, message)
}

struct ListingAttempt {
    events: Arc<TurnEvents>,
    redactor: Redactor,
    source: Arc<dyn ToolProvider>,
    listings: Option<(Arc<Listings>, ListingKey)>,
    iteration: u32,
    attempt: u32,
    began: Instant,
    is_baseline: bool,
}

impl ListingAttempt {
    fn started(&self) {
        self.events.emit(Some(self.iteration), || EventKind::DiscoveryStarted {
            provider: self.source.path().into(),
            attempt: self.attempt,
        });
    }

    fn ended(self, answer: Result<Catalog, DiscoveryError>) -> Result<Catalog, DiscoveryError> {
        let listed = |catalog| match self.is_baseline {
            true => self.redactor.catalog(catalog).with_listing_info(ListingInfo::unchanging()),
            false => self.redactor.catalog(catalog),
        };
        let answer = answer.map(listed).map_err(|error| {
            let error = error.in_provider(&*self.source);
            // Redacted once, for events, notices and the error's receiver.
            let message = self.redactor.text(error.message());
            let hides_secret = |error: &(dyn Error + 'static)| {
                matches!(self.redactor.text(&error.to_string()), Cow::Owned(_))
            };
            let mut sources = iter::successors(error.source(), |error| (*error).source());
            if matches!(message, Cow::Owned(_)) || sources.any(hides_secret) {
                let message = message.into_owned();
                return error.with_message(message);
            }
            error
        });
        let duration_ms = millis(self.began.elapsed());
        self.events.emit(Some(self.iteration), || match &answer {
            Ok(catalog) => EventKind::DiscoveryCompleted {
                provider: self.source.path().into(),
                leaf: self.source.leaf().into(),
                duration_ms,
                tool_count: catalog.offered().len(),
                cache: catalog.listing_info().cache,
                age_ms: catalog.listing_info().age.map(millis),
                error: catalog
                    .listing_info()
                    .error
                    .as_deref()
                    .map(|error| self.redactor.text(error).into_owned()),
            },
            Err(error) => EventKind::DiscoveryFailed {
                provider: error.provider().unwrap_or_default().into(),
                leaf: error.leaf().unwrap_or_default().into(),
                error: error.message().to_owned(),
                error_class: error.class(),
                duration_ms,
                attempt: self.attempt,
            },
        });
        if let Ok(catalog) = &answer {
            self.keep(catalog);
        }
        answer
    }

    /// Keeps the listing, and reports how it differs from the one before.
    fn keep(self, catalog: &Catalog) {
        let Some((listings, key)) = self.listings else { return };
        let before = listings.keep(key, catalog).filter(|_| self.events.has_listeners());
        let difference = before.and_then(|before| Difference::between(&before, catalog));
        let Some(Difference { added, removed, changed }) = difference else { return };
        self.events.emit(Some(self.iteration), || EventKind::ToolsChanged {
            provider: self.source.path().into(),
            added,
            removed,
            changed,
        });
    }
}
