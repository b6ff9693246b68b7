//! One listing, whatever a provider does.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::Value;
use tokio::runtime::Handle;
use toolcrib_core::{
    CancellationToken, Catalog, FailedListing, ListContext, Listing, Tool, ToolContext,
    ToolProvider, panic_text,
};

use super::{Clause, Findings};

pub(super) type Answer = Result<Catalog, Problem>;

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("it failed: {}", .0.error)]
    Failed(FailedListing),
    #[error("it panicked: {0}")]
    Panicked(String),
    #[error("there was no answer within {0:?}")]
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

fn listing(
    provider: &Arc<dyn ToolProvider>,
    cx: &ListContext,
    into: Catalog,
) -> Result<Listing, Problem> {
    catch_unwind(AssertUnwindSafe(|| Arc::clone(provider).list(cx, into)))
        .map_err(|panic| Problem::Panicked(panicked(&*panic)))
}

async fn later(future: BoxFuture<'static, Result<Catalog, FailedListing>>) -> Answer {
    match AssertUnwindSafe(future).catch_unwind().await {
        Ok(answer) => answer.map_err(Problem::Failed),
        Err(panic) => Err(Problem::Panicked(panicked(&*panic))),
    }
}

/// Asks at once; only the answer may wait.
pub(super) fn ask(
    provider: &Arc<dyn ToolProvider>,
    cx: &ListContext,
    into: Catalog,
) -> BoxFuture<'static, Answer> {
    match listing(provider, cx, into) {
        Ok(Listing::Now(answer)) => Box::pin(async { answer.map_err(Problem::Failed) }),
        Ok(Listing::Later(future)) => Box::pin(later(future)),
        Err(problem) => Box::pin(async { Err(problem) }),
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    panic_text(panic).to_owned()
}

/// The same context with a token of its own.
pub(super) fn fresh(context: &ListContext) -> (ListContext, CancellationToken) {
    let token = CancellationToken::new();
    let cx = ListContext::new(Arc::clone(context.identity()), token.clone())
        .with_iteration(context.iteration())
        .with_active_skills(Arc::clone(context.active_skills()));
    (cx, token)
}

/// A list that others have put something into.
pub(super) fn handed() -> Catalog {
    let mut catalog = Catalog::new();
    for name in ["check_handed_first", "check_handed_second"] {
        let tool = Tool::builder(name).description("Was in the list before.");
        if let Ok(tool) = tool.handler(|_: Value, _: ToolContext| async { "" }) {
            catalog.hold_back(tool.clone(), "check".into(), "held back before");
            catalog.offer(tool);
        }
    }
    catalog
}

pub(super) fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}
