//! Asks whether a call that a rule wants asked about may run. Without an approver, or with one
//! that panics, it may not.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use toolcrib_core::{Approval, ErrorCode, PendingCall, Rule, panic_text};

use super::{Batch, Call, Failure, record};

pub(super) async fn approve(
    batch: &Batch<'_>,
    call: &Call,
    pending: PendingCall<'_>,
    rule: &Rule,
) -> Result<(), Failure> {
    let label = &rule.label;
    let denied = |message: String, why: String| {
        record::denied(batch, call, Arc::clone(label), Some(why.as_str().into()));
        Err(Failure::refused(ErrorCode::Denied, message).caused_by(format!("{label}: {why}")))
    };
    let told = |otherwise: String| rule.tell_model.as_deref().map_or(otherwise, str::to_owned);
    let Some(approver) = &batch.engine.approver else {
        return denied(
            told(format!("calling `{}` needs an approval that nobody here can give", call.name)),
            "no approver is configured".to_owned(),
        );
    };
    let decision = AssertUnwindSafe(async { approver.approve(pending).await }).catch_unwind();
    tokio::select! {
        biased;
        () = batch.cancellation.cancelled() => {
            Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"))
        }
        _ = batch.halting.halted() => Err(batch.not_begun()),
        decision = decision => match decision {
            Ok(Approval::Approved) => Ok(()),
            Ok(Approval::Refused(message)) => denied(message, "refused".to_owned()),
            Err(panic) => denied(
                told(format!("calling `{}` was not approved", call.name)),
                format!("the approver panicked: {}", panic_text(&*panic)),
            ),
        },
    }
}
