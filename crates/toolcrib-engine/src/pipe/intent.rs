//! Records the intent before the effect, and the outcome after it.

use std::{
    error::Error,
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
};

use futures_util::FutureExt as _;
use toolcrib_core::{__internal::panic_text, ErrorCode, Journal, PendingCall, Tool, ToolResult};

use super::call::{Batch, Call, Failure};

/// The journals of a call: the engine's, then the turn's.
fn journals<'a>(batch: &'a Batch<'_>) -> impl Iterator<Item = &'a Arc<dyn Journal>> {
    batch.engine.journal.iter().chain(batch.journal)
}

/// A call that cannot be recorded is not made.
pub(super) async fn before<'c>(
    batch: &Batch<'_>,
    call: &Call,
    pending: &impl Fn() -> PendingCall<'c>,
) -> Result<(), Failure> {
    for journal in journals(batch) {
        written(batch, async { journal.intent(pending()).await }).await?;
    }
    call.has_intent.store(true, Ordering::Relaxed);
    Ok(())
}

/// Before a wait that may be long, or for something that may have effects.
pub(super) async fn before_wait(batch: &Batch<'_>) -> Result<(), Failure> {
    for journal in journals(batch) {
        written(batch, async { journal.before_wait().await }).await?;
    }
    Ok(())
}

/// Refuses a call if a journal fails, or if the run is cancelled.
async fn written(
    batch: &Batch<'_>,
    write: impl Future<Output = Result<(), Box<dyn Error + Send + Sync>>>,
) -> Result<(), Failure> {
    let written = tokio::select! {
        biased;
        () = batch.cancellation.cancelled() => {
            return Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"));
        }
        written = AssertUnwindSafe(write).catch_unwind() => written,
    };
    let cause = match written {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("the journal panicked: {}", panic_text(&*panic)),
    };
    let message = "the call could not be recorded, so it was not made";
    Err(Failure::refused(ErrorCode::ExecutionFailed, message).caused_by(cause))
}

/// The effect has happened or not. A journal that fails now keeps an intent without an outcome,
/// which is the purpose of recording it first. Without effect for a call without an intent.
pub(super) async fn after(
    batch: &Batch<'_>,
    tool: Option<&Tool>,
    call: &Call,
    code: Option<ErrorCode>,
    result: Option<&ToolResult>,
) {
    let (Some(tool), Ok(args)) = (tool, &call.args) else { return };
    if !call.has_intent.load(Ordering::Relaxed) {
        return;
    }
    for journal in journals(batch) {
        let pending = batch.pending(tool, call, args);
        let written = async { journal.outcome(pending, code, result).await };
        let _ = AssertUnwindSafe(written).catch_unwind().await;
    }
}
