//! Asks the providers of a turn, once per iteration unless a rule has one asked again, and says so.
//! An iteration that is for one tool alone waits only for the sources that may have it.

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
    Catalog, DiscoveryError, DiscoveryErrorClass, EventKind, FailedListing, Handed, ListContext,
    Listing, RunEvents, Stage, ToolProvider, list_in_order, millis, panic_text,
};

use self::recovering::{Endings, recovering};
use crate::{
    redactor::Redactor,
    reliability::{GaveUp, Recovery},
    sources::{Changes, Difference, Fallback, Key, Notice, Notices, Source},
};

/// What the sources of an iteration came to.
pub(crate) struct Discovered {
    pub(crate) catalog: Catalog,
    /// The sources that failed and did not end the iteration, in configured order.
    pub(crate) notices: Vec<Notice>,
}

/// What ends an iteration before it begins.
pub(crate) struct Undiscovered {
    pub(crate) failed: FailedListing,
    /// How rules gave up the source that failed, if they were about it.
    pub(crate) gave_up: Option<GaveUp>,
}

/// What an iteration needs of its sources.
#[derive(Clone, Copy)]
pub(crate) struct Needs<'a> {
    /// The one tool that it is for; `None` for a menu.
    pub(crate) tool: Option<&'a str>,
    /// How long a source may take to answer. Default: as long as it takes.
    pub(crate) within: Option<Duration>,
}

impl Needs<'_> {
    /// Whether the iteration needs this source, or what rules may have asked in its place.
    fn include(&self, source: &Source, recovery: Option<&Recovery>) -> bool {
        self.tool.is_none_or(|tool| {
            source.may_have(tool) || recovery.is_some_and(|rules| rules.may_have(tool))
        })
    }
}

/// How long an answer is waited for.
#[derive(Clone, Copy)]
enum Patience {
    Endless,
    Until(Deadline),
    /// It counts only if it is there at once.
    None,
}

/// The sources of an iteration, asked. It borrows nothing, so a turn may go on meanwhile.
pub(crate) struct Pending {
    listing: Listing,
    notices: Option<Notices>,
    endings: Option<Endings>,
}

/// Asks all sources, in configured order.
pub(crate) fn ask<'a>(
    sources: impl Iterator<Item = &'a Source>,
    events: &Arc<RunEvents>,
    redactor: &Redactor,
    cx: &ListContext,
    recovery: Option<&Recovery>,
    needs: Needs<'_>,
    into: Catalog,
) -> Pending {
    let mut notices: Option<Notices> = None;
    let recovery = recovery.filter(|recovery| recovery.is_about(Stage::Discover));
    let endings = recovery.map(|_| Endings::default());
    let waits = match needs.within {
        Some(within) => Patience::Until(Deadline::now() + within),
        None => Patience::Endless,
    };
    let listing = list_in_order(sources.enumerate(), into, |(position, source), into| {
        let is_needed = needs.include(source, recovery);
        let patience = if is_needed { waits } else { Patience::None };
        if let (Some(recovery), Some(endings)) = (recovery, &endings) {
            let notices = &mut notices;
            let fallback = Fallback::with_list(source, position, cx, events, redactor, notices);
            let asking = Asking::new(source, events, redactor, cx, patience);
            return recovering(source, position, asking, recovery, fallback, endings, into);
        }
        let asking = |into| {
            let (provider, changes) = (Arc::clone(&source.provider), source.changes.clone());
            observed(provider, changes, events, redactor, cx, patience, 1, into)
        };
        let fallback = if is_needed {
            Fallback::of(source, position, cx, events, redactor, &mut notices)
        } else {
            Some(Fallback::with_list(source, position, cx, events, redactor, &mut notices))
        };
        match fallback {
            None => asking(into),
            Some((fallback, own)) => match asking(own) {
                Listing::Now(Err(failed)) if !is_needed => {
                    Listing::now(fallback.omit(&failed.error, into))
                }
                Listing::Now(answer) => Listing::Now(fallback.settle(answer, into)),
                Listing::Later(future) => {
                    Listing::later(async move { fallback.settle(future.await, into) })
                }
            },
        }
    });
    Pending { listing, notices, endings }
}

impl Pending {
    /// All that the sources offer, in configured order, whatever order they answer in.
    pub(crate) async fn answered(self) -> Result<Discovered, Undiscovered> {
        let Self { listing, notices, endings } = self;
        let catalog = listing.wait().await.map_err(|failed| Undiscovered {
            failed,
            gave_up: endings.and_then(|endings| endings.first()),
        })?;
        let notices = notices.map(|notices| notices.in_order()).unwrap_or_default();
        Ok(Discovered { catalog, notices })
    }
}

/// What it takes to ask a provider, kept for asking again.
struct Asking {
    changes: Option<Arc<Changes>>,
    events: Arc<RunEvents>,
    redactor: Redactor,
    cx: ListContext,
    patience: Patience,
}

impl Asking {
    fn new(
        source: &Source,
        events: &Arc<RunEvents>,
        redactor: &Redactor,
        cx: &ListContext,
        patience: Patience,
    ) -> Self {
        Self {
            changes: source.changes.clone(),
            events: Arc::clone(events),
            redactor: redactor.clone(),
            cx: cx.clone(),
            patience,
        }
    }

    /// Whether the iteration goes on without it unless it answers at once.
    fn is_optional(&self) -> bool {
        matches!(self.patience, Patience::None)
    }

    fn ask(&self, provider: Arc<dyn ToolProvider>, attempt: u32, into: Catalog) -> Listing {
        let changes = self.changes.clone();
        let Self { events, redactor, cx, patience, .. } = self;
        observed(provider, changes, events, redactor, cx, *patience, attempt, into)
    }
}

/// One provider's answer between `discovery_started` and `discovery_completed` or `_failed`.
/// A panic is a failure, and cancellation does not wait for a provider that ignores it.
#[expect(clippy::too_many_arguments, reason = "what is asked, of whom, and how it is told")]
fn observed(
    source: Arc<dyn ToolProvider>,
    changes: Option<Arc<Changes>>,
    events: &Arc<RunEvents>,
    redactor: &Redactor,
    cx: &ListContext,
    patience: Patience,
    attempt: u32,
    into: Catalog,
) -> Listing {
    let asked = Asked {
        events: Arc::clone(events),
        redactor: redactor.clone(),
        source: Arc::clone(&source),
        changes,
        key: Key::of(cx),
        iteration: cx.iteration(),
        attempt,
        began: Instant::now(),
        handed: Handed::note(&into),
    };
    asked.started();
    let listing = catch_unwind(AssertUnwindSafe(|| source.list(cx, into)));
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
                    () = cancellation.cancelled() => Err(FailedListing {
                        error: DiscoveryError::cancelled(),
                        catalog: Catalog::new(),
                    }),
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

fn panicked(panic: &(dyn std::any::Any + Send)) -> FailedListing {
    let message = format!("it panicked: {}", panic_text(panic));
    FailedListing {
        error: DiscoveryError::new(DiscoveryErrorClass::Panic, message),
        catalog: Catalog::new(),
    }
}

impl Patience {
    async fn is_over(self) {
        match self {
            Self::Until(deadline) => sleep_until(deadline).await,
            Self::Endless | Self::None => std::future::pending().await,
        }
    }
}

fn too_late(patience: Patience) -> FailedListing {
    let message = match patience {
        Patience::None => "it did not answer at once, and the call does not need it",
        Patience::Endless | Patience::Until(_) => "it did not answer in time",
    };
    FailedListing {
        error: DiscoveryError::new(DiscoveryErrorClass::Timeout, message),
        catalog: Catalog::new(),
    }
}

struct Asked {
    events: Arc<RunEvents>,
    redactor: Redactor,
    source: Arc<dyn ToolProvider>,
    changes: Option<Arc<Changes>>,
    key: Key,
    iteration: u32,
    attempt: u32,
    began: Instant,
    handed: Handed,
}

impl Asked {
    fn started(&self) {
        self.events.emit(Some(self.iteration), || EventKind::DiscoveryStarted {
            provider: self.source.path().into(),
            attempt: self.attempt,
        });
    }

    fn ended(self, answer: Result<Catalog, FailedListing>) -> Result<Catalog, FailedListing> {
        let answer = answer.and_then(|catalog| self.handed.came_back(catalog));
        let mut answer = answer.map_err(|mut failed| {
            failed.error = failed.error.in_provider(&*self.source);
            // Here, once, for events, notices, and whoever the error is handed to.
            let message = self.redactor.text(failed.error.message());
            let hides_secret = |error: &(dyn Error + 'static)| {
                matches!(self.redactor.text(&error.to_string()), Cow::Owned(_))
            };
            let mut sources = iter::successors(failed.error.source(), |error| (*error).source());
            if matches!(message, Cow::Owned(_)) || sources.any(hides_secret) {
                let message = message.into_owned();
                failed.error = failed.error.with_message(message);
            }
            failed
        });
        let duration_ms = millis(self.began.elapsed());
        let answered = answer.as_mut().map(Catalog::take_answered).unwrap_or_default();
        self.events.emit(Some(self.iteration), || match &answer {
            Ok(catalog) => EventKind::DiscoveryCompleted {
                provider: self.source.path().into(),
                leaf: self.source.leaf().into(),
                duration_ms,
                tool_count: catalog.offered().len().saturating_sub(self.handed.offered()),
                cache: answered.cache,
                age_ms: answered.age.map(millis),
                error: answered.error.map(|error| self.redactor.text(&error).into_owned()),
            },
            Err(failed) => EventKind::DiscoveryFailed {
                provider: failed.error.provider().unwrap_or_default().into(),
                leaf: failed.error.leaf().unwrap_or_default().into(),
                error: failed.error.message().to_owned(),
                error_class: failed.error.class(),
                duration_ms,
                attempt: self.attempt,
            },
        });
        if let Ok(catalog) = &answer {
            self.tell_changes(catalog);
        }
        answer
    }

    /// Says how the answer differs from the one before, if somebody listens.
    fn tell_changes(self, catalog: &Catalog) {
        let Some(changes) = self.changes.filter(|_| self.events.is_heard()) else { return };
        let offered = catalog.offered().get(self.handed.offered()..).unwrap_or_default();
        let Some(difference) = changes.heard(self.key, offered) else { return };
        let Difference { added, removed, changed } = difference;
        self.events.emit(Some(self.iteration), || EventKind::ToolsChanged {
            provider: self.source.path().into(),
            added,
            removed,
            changed,
        });
    }
}
