//! Intent before effect, outcome after.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use toolcrib_core::{ErrorCode, PendingCall, panic_text};

use super::{Batch, Failure};

/// What cannot be written down is not done.
pub(super) async fn before(batch: &Batch<'_>, call: PendingCall<'_>) -> Result<(), Failure> {
    let Some(journal) = &batch.engine.journal else {
        return Ok(());
    };
    let written = AssertUnwindSafe(async { journal.intent(call).await }).catch_unwind();
    let written = tokio::select! {
        biased;
        () = batch.cancellation.cancelled() => {
            return Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"));
        }
        written = written => written,
    };
    let cause = match written {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("the journal panicked: {}", panic_text(&*panic)),
    };
    Err(Failure::refused(
        ErrorCode::ExecutionFailed,
        "the call could not be written down, so it was not made",
    )
    .caused_by(cause))
}

/// The effect has come about or not; a journal that fails now can only be left behind with an
/// intent that has no outcome, which is what it is for.
pub(super) async fn after(batch: &Batch<'_>, call: PendingCall<'_>, code: Option<ErrorCode>) {
    if let Some(journal) = &batch.engine.journal {
        let _ = AssertUnwindSafe(async { journal.outcome(call, code).await }).catch_unwind().await;
    }
}
