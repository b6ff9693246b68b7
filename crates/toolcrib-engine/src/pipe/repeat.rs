//! Retries a call as the rules say. Each attempt goes from `grant` to `run` again, with a separate
//! intent and outcome; all stages before that decide once, for this call.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;
use toolcrib_core::{BreakerOpenError, ErrorCode, PendingCall, Stage, Tool, ToolOutput, Usage};

use super::{
    budget,
    call::{Batch, Call, Failure},
    intent,
};
use crate::reliability::{
    Attempts, ExhaustedReason, FailedAttempt, RecoveryStep, ReliabilityContext, TargetId,
};

pub(super) async fn repeat<'c>(
    batch: &Batch<'_>,
    recovery: &ReliabilityContext,
    tool: &Tool,
    call: &Call,
    args: &Value,
    pending: &impl Fn() -> PendingCall<'c>,
    shares: budget::Shares,
) -> Result<ToolOutput, Failure> {
    let mut attempts = recovery
        .attempts(Stage::Tool, [Arc::clone(&call.name)])
        .which_are(vec![TargetId::tool(tool)])
        .in_iteration(Some(batch.iteration))
        .cancelled_by(batch.cancellation.clone());
    loop {
        let (outcome, open) = match attempts.begin() {
            Ok(()) => (batch.make(tool, call, args, pending, shares).await?, None),
            Err(open) => (Err(not_made(tool, open)), Some(open)),
        };
        let is_made = open.is_none();
        let failure = match outcome {
            Ok(output) => {
                attempts.succeeded();
                recovery.used(Usage::of_tool(output.cost_usd));
                return Ok(output);
            }
            Err(failure) => failure,
        };
        recovery.used(Usage::of_tool(failure.cost_usd));
        if is_made {
            // Now: a retry may wait for long.
            intent::after(batch, Some(tool), call, Some(failure.code), None).await;
        }
        if !is_to_be_repeated(batch, &mut attempts, &failure, tool, open).await {
            return Err(failure);
        }
    }
}

/// Evaluates the rules, and waits if they say so. Once a rule of the policy halts at another call
/// of the iteration, nothing is retried.
async fn is_to_be_repeated(
    batch: &Batch<'_>,
    attempts: &mut Attempts,
    failure: &Failure,
    tool: &Tool,
    open: Option<BreakerOpenError>,
) -> bool {
    let message = failure.in_full();
    let attempt = failure.as_attempt(&message, tool, open);
    attempts.note(&attempt);
    tokio::select! {
        biased;
        _ = batch.halting.halted() => false,
        next = attempts.failed(&attempt) => matches!(next, RecoveryStep::Retry),
    }
}

fn not_made(tool: &Tool, open: BreakerOpenError) -> Failure {
    let name = tool.name();
    Failure::refused(
        ErrorCode::NotAvailable,
        format!("`{name}` cannot be used at the moment; go on without it, or try it again later"),
    )
    .caused_by(open.to_string())
}

impl Failure {
    /// The full text for the model and the operator.
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
        open: Option<BreakerOpenError>,
    ) -> FailedAttempt<'a> {
        let broken = self.code == ErrorCode::ExecutionFailed && !self.by_tool;
        let attempt = FailedAttempt::of_tool(self.code, message, tool.annotations(), broken);
        match open {
            Some(open) => attempt.not_made(open),
            // It still runs.
            None if self.abandoned => {
                FailedAttempt { unrepeatable: Some(ExhaustedReason::NotRepeatable), ..attempt }
            }
            None => attempt,
        }
    }
}
