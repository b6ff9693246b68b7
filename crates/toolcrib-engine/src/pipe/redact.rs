//! Takes known secrets out, before anything is cut, stored or shown.

use serde_json::json;
use toolcrib_core::{dismantle, nests_too_deep};

use super::{Batch, Ended};

pub(super) fn redact(batch: &Batch<'_>, ended: &mut Ended) {
    let redactor = &batch.engine.redactor;
    match &mut ended.outcome {
        Ok(output) => {
            output.value = redactor.owned(std::mem::take(&mut output.value));
            output.structured = output.structured.take().map(|data| {
                if nests_too_deep(&data) {
                    dismantle(data);
                    return json!({ "truncated": true, "reason": "nests too deep" });
                }
                redactor.json(data)
            });
            for block in &mut output.blocks {
                *block = block.clone().map_texts(|text| redactor.text(text).into_owned());
            }
        }
        Err(failure) => {
            failure.message = redactor.owned(std::mem::take(&mut failure.message));
            failure.cause = failure.cause.take().map(|cause| redactor.owned(cause));
        }
    }
}
