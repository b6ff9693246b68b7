//! Makes a call as often as rules have it. Each time it goes from `scope` to `run` anew, with an intent
//! and an outcome of its own; all that stands in front of that is decided once, for this very call.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;
use toolcrib_core::{ErrorCode, PendingCall, Stage, Tool, ToolOutput, Usage};

use super::{Batch, Call, Failure, budget};
use crate::{
    breaker::BreakerOpen,
    reliability::{Attempts, FailedAttempt, GaveUpCode, NextStep, Recovery, Which},
};

pub(super) async fn repeat<'c>(
    batch: &Batch<'_>,
    recovery: &Recovery,
    tool: &Tool,
    call: &Call,
    args: &Value,
    pending: &impl Fn() -> PendingCall<'c>,
    shares: budget::Shares,
) -> Result<ToolOutput, Failure> {
    let mut attempts = recovery
        .attempts(Stage::Tool, [Arc::clone(&call.name)])
        .which_are(vec![Which::tool(tool)])
        .in_iteration(Some(batch.iteration))
        .cancelled_by(batch.cancellation.clone());
    loop {
        let (outcome, open) = match attempts.begin() {
            Ok(()) => (batch.make(tool, call, args, pending, shares).await?, None),
            Err(open) => (Err(not_made(tool, open)), Some(open)),
        };
        let failure = match outcome {
            Ok(output) => {
                attempts.succeeded();
                recovery.used(Usage::of_tool(output.cost_usd));
                return Ok(output);
            }
            Err(failure) => failure,
        };
        recovery.used(Usage::of_tool(failure.cost_usd));
        if !is_to_be_repeated(batch, &mut attempts, &failure, tool, open).await {
            return Err(failure);
        }
    }
}

/// Asks the rules, and waits if they say so. Once a rule of the policy halts at another call of the
/// iteration, nothing is run again.
async fn is_to_be_repeated(
    batch: &Batch<'_>,
    attempts: &mut Attempts,
    failure: &Failure,
    tool: &Tool,
    open: Option<BreakerOpen>,
) -> bool {
    let message = failure.in_full();
    let attempt = failure.as_attempt(&message, tool, open);
    attempts.note(&attempt);
    tokio::select! {
        biased;
        _ = batch.halting.halted() => false,
        next = attempts.failed(&attempt) => matches!(next, NextStep::Retry),
    }
}

fn not_made(tool: &Tool, open: BreakerOpen) -> Failure {
    let name = tool.name();
    Failure::refused(
        ErrorCode::NotAvailable,
        format!("`{name}` cannot be used at the moment; go on without it, or try it again later"),
    )
    .caused_by(open.to_string())
}

impl Failure {
    /// What the model and the operator read of it.
    fn in_full(&self) -> Cow<'_, str> {
        match &self.cause {
            Some(cause) => format!("{}: {cause}", self.message).into(),
            None => Cow::Borrowed(&self.message),
        }
    }

    fn as_attempt<'a>(
        &self,
        message: &'a str,
        tool: &Tool,
        open: Option<BreakerOpen>,
    ) -> FailedAttempt<'a> {
        let broken = self.code == ErrorCode::ExecutionFailed && !self.by_tool;
        let attempt = FailedAttempt::of_tool(self.code, message, tool.annotations(), broken);
        match open {
            Some(open) => attempt.not_made(open),
            // It still runs.
            None if self.abandoned => {
                FailedAttempt { unrepeatable: Some(GaveUpCode::NotRepeatable), ..attempt }
            }
            None => attempt,
        }
    }
}
