//! Applies the tool's reducer, if there is one, which trims its output.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use toolcrib_core::{ReducerContext, Tool, ToolOutput};

use super::call::Batch;

pub(super) fn reduce(
    batch: &Batch<'_>,
    tool: &Tool,
    args: &Value,
    output: ToolOutput,
) -> ToolOutput {
    let Some(reducer) = batch.engine.reducers.get(tool.name()) else {
        return output;
    };
    let (cost_usd, untrusted) = (output.cost_usd, output.untrusted);
    let text_origin = output.text_origin;
    let cx = ReducerContext::new(args).turn(batch.info.turn);
    match catch_unwind(AssertUnwindSafe(|| reducer.reduce(output.clone(), cx))) {
        // A reducer can remove neither the cost nor the mark of an unknown author.
        Ok(reduced) => {
            // Parts that a reducer removed are not stored either.
            let is_same = reduced.value == output.value;
            let original = reduced.original.filter(|_| is_same);
            let untrusted = untrusted || reduced.untrusted;
            ToolOutput { original, cost_usd, untrusted, text_origin, ..reduced }
        }
        Err(_) => output,
    }
}
