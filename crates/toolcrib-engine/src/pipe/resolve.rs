//! Finds the tool. Only what stands in the menu can be called, under exactly its name; what lives for
//! an iteration until the turn is acked.

use toolcrib_core::{ErrorCode, Lifetime, Tool};

use super::{Batch, Call, Failure, record, shortened};

pub(super) fn resolve<'a>(batch: &Batch<'a>, call: &Call) -> Result<&'a Tool, Failure> {
    let is_over = |tool: &Tool| batch.is_acked && tool.ephemeral() == Some(Lifetime::Iteration);
    if let Some(tool) = batch.menu.get(&call.name).filter(|tool| !is_over(tool)) {
        return Ok(tool);
    }
    if batch.withheld.is_away(&call.name) {
        let message = format!(
            "`{}` cannot be used at the moment, because where it runs cannot be reached; try again in \
             a few seconds, and go on without it if that fails too",
            shortened(&call.name)
        );
        return Err(Failure::refused(ErrorCode::NotAvailable, message));
    }
    // The model reads the same of a tool that is withheld and of one that never was.
    let refusal = Failure::refused(
        ErrorCode::NotAvailable,
        format!(
            "there is no tool `{}`; call one of the tools that are offered",
            shortened(&call.name)
        ),
    );
    let Some((rule, reason)) = batch.withheld.denying_rule(&call.name) else {
        return Err(refusal);
    };
    let cause = format!("withheld by {rule}");
    record::denied(batch, call, rule, reason);
    Err(refusal.caused_by(cause))
}
