//! Shows middleware a call that passed validation and policy: it may deny, rewrite or answer. A
//! middleware that gives no verdict denies.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use toolcrib_core::{
    __internal::panic_text, CallDecision, ErrorCode, EventKind, Middleware, PendingCall, Tool,
    ToolOutput, args_digest,
};

use super::{
    arguments,
    call::{Batch, Call, Failure},
    intent, record,
};
use crate::user_future::UserFuture;

/// Maximum number of rewrites of one call. Only several middleware that undo each other reach it.
const MOST_REWRITES: usize = 8;

/// The middleware of an engine, on its way through one call.
pub(super) struct Chain {
    began: Instant,
    allowed: Duration,
    rewrites: usize,
    /// The middleware that wrote the current arguments: it is not consulted about them again.
    author: Option<usize>,
}

/// The chain's verdict on a call.
pub(super) enum ChainVerdict {
    /// All admit it.
    Proceed,
    /// One changed the arguments; validate them, and consult the chain again.
    Rewritten,
    /// One answered.
    Answered(ToolOutput),
}

impl Chain {
    pub(super) fn of(batch: &Batch<'_>, tool: &Tool) -> Self {
        let allowed = tool.timeout().unwrap_or(batch.engine.limits.tool_timeout);
        Self { began: Instant::now(), allowed, rewrites: 0, author: None }
    }

    pub(super) async fn consult(
        &mut self,
        batch: &Batch<'_>,
        tool: &Tool,
        call: &mut Call,
    ) -> Result<ChainVerdict, Failure> {
        for (position, brought) in batch.engine.middleware.iter().enumerate() {
            if self.author == Some(position) {
                continue;
            }
            let by = || Arc::clone(&brought.item.label);
            intent::before_wait(batch).await?;
            match self.verdict(batch, tool, call, &*brought.item.middleware).await {
                Ok(CallDecision::Proceed) => {}
                Ok(CallDecision::Rewrite(args)) if call.args.as_ref().is_ok_and(|a| *a == args) => {
                }
                Ok(CallDecision::Rewrite(args)) => {
                    let args = arguments::admitted(args).map_err(|not_json| {
                        let cause = format!(
                            "the arguments that it passes instead are refused: {}",
                            not_json.problem
                        );
                        refused(batch, call, by(), cause)
                    })?;
                    self.rewrites += 1;
                    if self.rewrites > MOST_REWRITES {
                        let cause = format!("rewritten more than {MOST_REWRITES} times");
                        return Err(refused(batch, call, by(), cause));
                    }
                    self.author = Some(position);
                    rewrite(batch, tool, call, by(), args);
                    return Ok(ChainVerdict::Rewritten);
                }
                Ok(CallDecision::Answer(output)) => {
                    batch.events.emit(Some(batch.iteration), || EventKind::ToolAnswered {
                        call_id: Arc::clone(&call.id),
                        tool: Arc::clone(&call.name),
                        middleware: by(),
                    });
                    return Ok(ChainVerdict::Answered(output));
                }
                Ok(CallDecision::Deny(message)) => {
                    record::denied(batch, call, by(), Some(message.as_str().into()));
                    let refusal = Failure::refused(ErrorCode::Denied, message);
                    return Err(refusal.caused_by(format!("denied by {}", by())));
                }
                // An unknown verdict denies.
                Ok(_) => return Err(refused(batch, call, by(), "unknown verdict".to_owned())),
                Err(MissingVerdict::Cancelled) => {
                    return Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"));
                }
                Err(MissingVerdict::Failed(cause)) => {
                    return Err(refused(batch, call, by(), cause));
                }
            }
        }
        Ok(ChainVerdict::Proceed)
    }

    async fn verdict(
        &self,
        batch: &Batch<'_>,
        tool: &Tool,
        call: &Call,
        middleware: &dyn Middleware,
    ) -> Result<CallDecision, MissingVerdict> {
        let Ok(args) = &call.args else {
            return Err(MissingVerdict::Failed("the arguments are not valid JSON".to_owned()));
        };
        let pending = PendingCall {
            tool,
            call_id: &call.id,
            args,
            args_digest: call.args_digest,
            identity: batch.events.identity(),
            turn_id: batch.events.turn_id(),
            personality: &batch.situation.personality.id,
        };
        let verdict = UserFuture::answer(
            || middleware.call(pending),
            |verdict| verdict.map_err(|error| format!("it failed: {error}")),
        );
        let left = self.allowed.saturating_sub(self.began.elapsed());
        tokio::select! {
            biased;
            () = batch.cancellation.cancelled() => Err(MissingVerdict::Cancelled),
            verdict = timeout(left, AssertUnwindSafe(verdict).catch_unwind()) => {
                Err(MissingVerdict::Failed(match verdict {
                    Ok(Ok(Ok(verdict))) => return Ok(verdict),
                    Ok(Ok(Err(problem))) => problem,
                    Ok(Err(panic)) => format!("it panicked: {}", panic_text(&*panic)),
                    Err(_) => "it gave no verdict within the call's time limit".to_owned(),
                }))
            }
        }
    }
}

/// The reason for a missing verdict.
enum MissingVerdict {
    Cancelled,
    Failed(String),
}

/// No verdict, or one that cannot be followed. The reason is for the operator.
fn refused(batch: &Batch<'_>, call: &Call, by: Arc<str>, cause: String) -> Failure {
    let full = format!("{by}: {cause}");
    record::denied(batch, call, by, Some(cause.into()));
    let message = format!("calling `{}` could not be checked, so it was not made", call.name);
    Failure::refused(ErrorCode::Denied, message).caused_by(full)
}

fn rewrite(batch: &Batch<'_>, tool: &Tool, call: &mut Call, middleware: Arc<str>, mut args: Value) {
    arguments::normalize(&mut args, Some(tool));
    let before = record::shown(batch, call);
    call.rewritten = true;
    call.args_digest = args_digest(&call.name, &args);
    call.args = Ok(args);
    batch.events.emit(Some(batch.iteration), || EventKind::ToolRewritten {
        call_id: Arc::clone(&call.id),
        tool: Arc::clone(&call.name),
        middleware,
        before,
        args: record::shown(batch, call),
        args_digest: call.args_digest,
    });
}
