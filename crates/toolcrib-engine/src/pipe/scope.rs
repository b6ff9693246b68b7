//! Bounds what the body can reach.

use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcrib_core::{ErrorCode, PendingCall, ToolContext, ToolName, panic_text};

use super::{Batch, Failure};

pub(super) fn scope(
    batch: &Batch<'_>,
    call: PendingCall<'_>,
    context: ToolContext,
) -> Result<ToolContext, Failure> {
    let name = call.tool.name().clone();
    let Some(scoper) = &batch.engine.scoper else {
        if call.tool.capabilities().need_scoper() {
            return Err(cannot_be_bounded(
                &name,
                "the tool declares capabilities, and the engine has no scoper to hand them out",
            ));
        }
        return Ok(context);
    };
    match catch_unwind(AssertUnwindSafe(|| scoper.scope(call, context))) {
        Ok(Ok(context)) => Ok(context),
        Ok(Err(error)) => Err(Failure { by_tool: false, ..error.into() }),
        Err(panic) => {
            Err(cannot_be_bounded(&name, format!("the scoper panicked: {}", panic_text(&*panic))))
        }
    }
}

fn cannot_be_bounded(tool: &ToolName, cause: impl Into<String>) -> Failure {
    let message = format!("the tool `{tool}` cannot be bounded as it must be, so it was not run");
    Failure::refused(ErrorCode::NotAvailable, message).caused_by(cause)
}
