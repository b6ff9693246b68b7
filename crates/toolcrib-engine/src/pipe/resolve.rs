//! Finds the tool. Only what stands in the menu can be called, under exactly its name.

use toolcrib_core::{ErrorCode, Tool};

use super::{Batch, Call, Failure, record, shortened};

pub(super) fn resolve<'a>(batch: &Batch<'a>, call: &Call) -> Result<&'a Tool, Failure> {
    if let Some(tool) = batch.menu.get(&call.name) {
        return Ok(tool);
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
