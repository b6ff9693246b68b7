//! Finds the tool. Only tools on the menu can be called, by their exact names; tools with the
//! lifetime of an iteration can be called until the turn is acknowledged.

use toolcrib_core::{__internal::shortened, ErrorCode, Lifetime, Tool};

use super::{
    call::{Batch, Call, Failure},
    called_name::near_names,
    record,
};

pub(super) fn resolve<'a>(batch: &Batch<'a>, call: &Call) -> Result<&'a Tool, Failure> {
    let is_over = |tool: &Tool| batch.is_acked && tool.ephemeral() == Some(Lifetime::Iteration);
    if let Some(tool) = batch.menu.get(&call.name).filter(|tool| !is_over(tool)) {
        return Ok(tool);
    }
    if batch.withheld.is_away(&call.name) {
        let message = format!(
            "`{}` cannot be used at the moment, because its server cannot be reached; try again in \
             a few seconds, and go on without it if that fails too",
            shortened(&call.name)
        );
        return Err(Failure::refused(ErrorCode::NotAvailable, message));
    }
    // The model gets the same message for a withheld tool and a nonexistent one.
    let near: Vec<_> =
        near_names(batch.menu, &call.name).into_iter().map(|name| format!("`{name}`")).collect();
    let help = match near.is_empty() {
        true => "call one of the tools that are offered".to_owned(),
        false => {
            format!("did you mean {}? Call one of the tools that are offered", near.join(" or "))
        }
    };
    let refusal = Failure::refused(
        ErrorCode::NotAvailable,
        format!("unknown tool `{}`; {help}", shortened(&call.name)),
    );
    let Some((rule, reason)) = batch.withheld.denying_rule(&call.name) else {
        return Err(refusal);
    };
    let cause = format!("withheld by {rule}");
    record::denied(batch, call, rule, reason);
    Err(refusal.caused_by(cause))
}
