//! Asks the providers of a turn, once per iteration, and says so.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use futures_util::FutureExt as _;
use toolcrib_core::{
    Catalog, DiscoveryError, DiscoveryErrorClass, EventKind, FailedListing, Handed, ListContext,
    Listing, RunEvents, ToolProvider, list_in_order, millis, panic_text,
};

use crate::{
    redactor::Redactor,
    sources::{Fallback, Notice, Notices, Source},
};

/// What the sources of an iteration came to.
pub(crate) struct Discovered {
    pub(crate) catalog: Catalog,
    /// The sources that failed and did not end the iteration, in configured order.
    pub(crate) notices: Vec<Notice>,
}

/// All that the sources offer, in configured order, whatever order they answer in.
pub(crate) async fn discover<'a>(
    sources: impl Iterator<Item = &'a Source>,
    events: &Arc<RunEvents>,
    redactor: &Redactor,
    cx: &ListContext,
    into: Catalog,
) -> Result<Discovered, FailedListing> {
    let mut notices: Option<Notices> = None;
    let listing = list_in_order(sources.enumerate(), into, |(position, source), into| {
        let provider = Arc::clone(&source.provider);
        match Fallback::of(source, position, cx, events, redactor, &mut notices) {
            None => observed(provider, events, redactor, cx, into),
            Some((fallback, own)) => match observed(provider, events, redactor, cx, own) {
                Listing::Now(answer) => Listing::Now(fallback.settle(answer, into)),
                Listing::Later(future) => {
                    Listing::later(async move { fallback.settle(future.await, into) })
                }
            },
        }
    });
    let catalog = listing.wait().await?;
    let notices = notices.map(|notices| notices.in_order()).unwrap_or_default();
    Ok(Discovered { catalog, notices })
}

/// One provider's answer between `discovery_started` and `discovery_completed` or `_failed`.
/// A panic is a failure, and cancellation does not wait for a provider that ignores it.
fn observed(
    source: Arc<dyn ToolProvider>,
    events: &Arc<RunEvents>,
    redactor: &Redactor,
    cx: &ListContext,
    into: Catalog,
) -> Listing {
    let asked = Asked {
        events: Arc::clone(events),
        redactor: redactor.clone(),
        source: Arc::clone(&source),
        iteration: cx.iteration(),
        began: Instant::now(),
        handed: Handed::note(&into),
    };
    asked.started();
    let listing = catch_unwind(AssertUnwindSafe(|| source.list(cx, into)));
    match listing {
        Ok(Listing::Now(answer)) => Listing::Now(asked.ended(answer)),
        Ok(Listing::Later(future)) => {
            let cancellation = cx.cancellation().clone();
            Listing::later(async move {
                let answer = tokio::select! {
                    biased;
                    () = cancellation.cancelled() => Err(FailedListing {
                        error: DiscoveryError::new(
                            DiscoveryErrorClass::Cancelled,
                            "the run was cancelled",
                        ),
                        catalog: Catalog::new(),
                    }),
                    answer = AssertUnwindSafe(future).catch_unwind() => {
                        answer.unwrap_or_else(|panic| Err(panicked(&*panic)))
                    }
                };
                asked.ended(answer)
            })
        }
        Err(panic) => Listing::Now(asked.ended(Err(panicked(&*panic)))),
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> FailedListing {
    let message = format!("it panicked: {}", panic_text(panic));
    FailedListing {
        error: DiscoveryError::new(DiscoveryErrorClass::Panic, message),
        catalog: Catalog::new(),
    }
}

struct Asked {
    events: Arc<RunEvents>,
    redactor: Redactor,
    source: Arc<dyn ToolProvider>,
    iteration: u32,
    began: Instant,
    handed: Handed,
}

impl Asked {
    fn started(&self) {
        self.events.emit(Some(self.iteration), || EventKind::DiscoveryStarted {
            provider: self.source.path().into(),
        });
    }

    fn ended(&self, answer: Result<Catalog, FailedListing>) -> Result<Catalog, FailedListing> {
        let answer = answer.and_then(|catalog| self.handed.came_back(catalog));
        let answer = answer.map_err(|mut failed| {
            failed.error = failed.error.in_provider(|| self.source.path());
            // Here, once, for events, notices, and whoever the error is handed to.
            if let Cow::Owned(redacted) = self.redactor.text(failed.error.message()) {
                failed.error = failed.error.with_message(redacted);
            }
            failed
        });
        let duration_ms = millis(self.began.elapsed());
        self.events.emit(Some(self.iteration), || match &answer {
            Ok(catalog) => EventKind::DiscoveryCompleted {
                provider: self.source.path().into(),
                duration_ms,
                tool_count: catalog.offered().len().saturating_sub(self.handed.offered()),
            },
            Err(failed) => EventKind::DiscoveryFailed {
                provider: failed.error.provider().unwrap_or_default().into(),
                error: failed.error.message().to_owned(),
                error_class: failed.error.class(),
                duration_ms,
            },
        });
        answer
    }
}
