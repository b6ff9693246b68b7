//! Asks whether a call that a rule wants asked about may run. Without an approver, or with one
//! that panics, it may not.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use toolcrib_core::{Approval, ErrorCode, PendingCall, panic_text};

use super::{Batch, Call, Failure, record};

pub(super) async fn approve(
    batch: &Batch<'_>,
    call: &Call,
    pending: PendingCall<'_>,
    rule: &Arc<str>,
) -> Result<(), Failure> {
    let denied = |message: String, why: String| {
        record::denied(batch, call, Arc::clone(rule), Some(why.as_str().into()));
        Err(Failure::refused(ErrorCode::Denied, message).caused_by(format!("{rule}: {why}")))
    };
    let Some(approver) = &batch.engine.approver else {
        return denied(
            format!("calling `{}` needs an approval that nobody here can give", call.name),
            "no approver is configured".to_owned(),
        );
    };
    let decision = AssertUnwindSafe(async { approver.approve(pending).await }).catch_unwind();
    tokio::select! {
        biased;
        () = batch.cancellation.cancelled() => {
            Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"))
        }
        decision = decision => match decision {
            Ok(Approval::Approved) => Ok(()),
            Ok(Approval::Refused(message)) => denied(message, "refused".to_owned()),
            Err(panic) => denied(
                format!("calling `{}` was not approved", call.name),
                format!("the approver panicked: {}", panic_text(&*panic)),
            ),
        },
    }
}
