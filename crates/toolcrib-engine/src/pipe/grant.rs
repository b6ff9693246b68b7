//! Grants a call the capabilities that its tool declares.

use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcrib_core::{__internal::panic_text, ErrorCode, PendingCall, ToolContext, ToolName};

use super::call::{Batch, Failure};

pub(super) fn grant(
    batch: &Batch<'_>,
    call: PendingCall<'_>,
    context: ToolContext,
) -> Result<ToolContext, Failure> {
    if batch.engine.kv.is_none() && !call.tool.capabilities().kv.is_empty() {
        let cause = "the tool keeps keys and values, and the engine has no store of them";
        let told = format!("the tool `{}` has no store here, so it was not run", call.tool.name());
        return Err(Failure::refused(ErrorCode::NotAvailable, told).caused_by(cause));
    }
    if call.tool.has_own_handles() {
        return Ok(context);
    }
    let name = call.tool.name().clone();
    let Some(capability_granter) = &batch.engine.capability_granter else {
        if call.tool.requires_granter() {
            return Err(cannot_be_bounded(
                &name,
                "the tool declares capabilities, and the engine has no capability granter",
            ));
        }
        return Ok(context);
    };
    match catch_unwind(AssertUnwindSafe(|| capability_granter.grant(call, context))) {
        Ok(Ok(context)) => Ok(context),
        Ok(Err(error)) => Err(Failure { by_tool: false, ..error.into() }),
        Err(panic) => Err(cannot_be_bounded(
            &name,
            format!("the capability granter panicked: {}", panic_text(&*panic)),
        )),
    }
}

fn cannot_be_bounded(tool: &ToolName, cause: impl Into<String>) -> Failure {
    let message = format!("the tool `{tool}` could not be limited as required, so it was not run");
    Failure::refused(ErrorCode::NotAvailable, message).caused_by(cause)
}
