//! Records the intent before the effect, and the outcome after it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use toolcrib_core::{__internal::panic_text, ErrorCode, PendingCall};

use super::call::{Batch, Failure};

/// A call that cannot be recorded is not made.
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
        "the call could not be recorded, so it was not made",
    )
    .caused_by(cause))
}

/// The effect has happened or not. A journal that fails now keeps an intent without an outcome,
/// which is the purpose of recording it first.
pub(super) async fn after(batch: &Batch<'_>, call: PendingCall<'_>, code: Option<ErrorCode>) {
    if let Some(journal) = &batch.engine.journal {
        let _ = AssertUnwindSafe(async { journal.outcome(call, code).await }).catch_unwind().await;
    }
}
