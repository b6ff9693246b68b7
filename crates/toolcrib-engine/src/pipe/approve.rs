//! Asks whether a call that a rule wants asked about may run. Without an approver, or with one
//! that panics, it may not.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use toolcrib_core::{Approval, ErrorCode, PendingCall, panic_text};

use super::{Batch, Failure};

pub(super) async fn approve(
    batch: &Batch<'_>,
    call: PendingCall<'_>,
    rule: &Arc<str>,
) -> Result<(), Failure> {
    let name = call.tool.name().clone();
    let denied = |message: String, cause: String| {
        Err(Failure::refused(ErrorCode::Denied, message).caused_by(format!("{rule}: {cause}")))
    };
    let Some(approver) = &batch.engine.approver else {
        return denied(
            format!("calling `{name}` needs an approval that nobody here can give"),
            "no approver is configured".to_owned(),
        );
    };
    let decision = AssertUnwindSafe(async { approver.approve(call).await }).catch_unwind();
    tokio::select! {
        biased;
        () = batch.cancellation.cancelled() => {
            Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"))
        }
        decision = decision => match decision {
            Ok(Approval::Approved) => Ok(()),
            Ok(Approval::Refused(message)) => denied(message, "refused".to_owned()),
            Err(panic) => denied(
                format!("calling `{name}` was not approved"),
                format!("the approver panicked: {}", panic_text(&*panic)),
            ),
        },
    }
}
