//! Bounds what the body can reach.

use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcrib_core::{ErrorCode, PendingCall, ToolContext, panic_text};

use super::{Batch, Failure};

pub(super) fn scope(
    batch: &Batch<'_>,
    call: PendingCall<'_>,
    context: ToolContext,
) -> Result<ToolContext, Failure> {
    let Some(scoper) = &batch.engine.scoper else {
        return Ok(context);
    };
    let name = call.tool.name().clone();
    match catch_unwind(AssertUnwindSafe(|| scoper.scope(call, context))) {
        Ok(Ok(context)) => Ok(context),
        Ok(Err(error)) => Err(Failure { by_tool: false, ..error.into() }),
        Err(panic) => Err(Failure::refused(
            ErrorCode::NotAvailable,
            format!("the tool `{name}` cannot be bounded as it must be, so it was not run"),
        )
        .caused_by(format!("the scoper panicked: {}", panic_text(&*panic)))),
    }
}
