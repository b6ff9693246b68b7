//! Takes known secrets out, before anything is cut, stored or shown.

use super::{Batch, Ended};

pub(super) fn redact(batch: &Batch<'_>, ended: &mut Ended) {
    let redactor = &batch.engine.redactor;
    match &mut ended.outcome {
        Ok(output) => {
            output.value = redactor.owned(std::mem::take(&mut output.value));
            output.structured = output.structured.take().map(|data| redactor.json(data));
        }
        Err(failure) => {
            failure.message = redactor.owned(std::mem::take(&mut failure.message));
            failure.cause = failure.cause.take().map(|cause| redactor.owned(cause));
        }
    }
}
