//! Trims an output to what matters, where somebody knows how.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use toolcrib_core::{Tool, ToolOutput};

use super::Batch;

pub(super) fn reduce(
    batch: &Batch<'_>,
    tool: &Tool,
    args: &Value,
    output: ToolOutput,
) -> ToolOutput {
    let Some(reducer) = batch.engine.reducers.get(tool.name().as_str()) else {
        return output;
    };
    let cost_usd = output.cost_usd;
    match catch_unwind(AssertUnwindSafe(|| reducer.item.reduce(output.clone(), args))) {
        // A reducer cannot lose what was paid.
        Ok(reduced) => ToolOutput { cost_usd, ..reduced },
        Err(_) => output,
    }
}
