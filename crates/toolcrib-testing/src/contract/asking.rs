//! A single listing with all its failure modes.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::runtime::Handle;
use toolcrib_core::{
    __internal::panic_text, CancellationToken, Catalog, DiscoveryError, ListContext, Listing,
    ToolProvider,
};

use super::{Clause, Findings};

pub(super) type Answer = Result<Catalog, Problem>;

/// A failure of a listing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("it failed: {0}")]
    Failed(DiscoveryError),
    #[error("it panicked: {0}")]
    Panicked(String),
    #[error("it did not answer within {0:?}")]
    Late(Duration),
}

impl Problem {
    pub(super) fn report(&self, findings: &mut Findings) {
        match self {
            panicked @ Self::Panicked(_) => {
                findings.broken(Clause::NeverPanics, panicked.to_string());
            }
            other => findings.broken(Clause::Answers, other.to_string()),
        }
    }
}

fn listing(provider: &Arc<dyn ToolProvider>, cx: &ListContext) -> Result<Listing, Problem> {
    catch_unwind(AssertUnwindSafe(|| Arc::clone(provider).list(cx)))
        .map_err(|panic| Problem::Panicked(panicked(&*panic)))
}

async fn later(future: BoxFuture<'static, Result<Catalog, DiscoveryError>>) -> Answer {
    match AssertUnwindSafe(future).catch_unwind().await {
        Ok(answer) => answer.map_err(Problem::Failed),
        Err(panic) => Err(Problem::Panicked(panicked(&*panic))),
    }
}

/// Starts the listing immediately; only the result may be asynchronous.
pub(super) fn ask(
    provider: &Arc<dyn ToolProvider>,
    cx: &ListContext,
) -> BoxFuture<'static, Answer> {
    match listing(provider, cx) {
        Ok(Listing::Now(answer)) => Box::pin(async { answer.map_err(Problem::Failed) }),
        Ok(Listing::Later(future)) => Box::pin(later(future)),
        Err(problem) => Box::pin(async { Err(problem) }),
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    panic_text(panic).to_owned()
}

/// The same context with a new token.
pub(super) fn fresh(context: &ListContext) -> (ListContext, CancellationToken) {
    let token = CancellationToken::new();
    let cx = ListContext::new(Arc::clone(context.identity()), token.clone())
        .with_iteration(context.iteration())
        .with_active_skills(Arc::clone(context.active_skills()));
    (cx, token)
}

pub(super) fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}
