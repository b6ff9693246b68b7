//! Runs the body: spawned, so that a panic, a deadline or a body that never returns cannot affect
//! the turn; a body that is declared not to block runs on the task of its call.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{FutureExt as _, TryFutureExt as _, future::BoxFuture};
use serde_json::Value;
use tokio::{
    task::{JoinHandle, yield_now},
    time::{Instant, sleep, timeout},
};
use toolcrib_core::{
    __internal::panic_text, CancellationToken, ErrorCode, Tool, ToolContext, ToolError, ToolOutput,
};

use super::{
    call::{Batch, Call, Failure},
    client::ClientWait,
    progress::Reports,
};

/// The multiple of its timeout that a call of an MCP server with progress may take.
const WITH_PROGRESS: u32 = 10;

/// The shortest delay of a deadline while a call waits for its client.
const LEAST_DELAY: Duration = Duration::from_millis(50);

/// Why a body is cancelled.
#[derive(Clone, Copy)]
enum CancelReason {
    Cancelled,
    Deadline(Duration),
    Idle(Duration),
}

pub(super) async fn run(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &Call,
    args: &Value,
    context: ToolContext,
    mut progress: Reports,
    wait: &ClientWait,
) -> Result<ToolOutput, Failure> {
    if batch.cancellation.is_cancelled() {
        return Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"));
    }
    let limits = &batch.engine.limits;
    let mut allowed = tool.timeout().unwrap_or(limits.tool_timeout);
    // The protocol lets progress of a server extend the wait, with a limit of the whole.
    let mut most = allowed.saturating_mul(tool.mcp_server().map_or(1, |_| WITH_PROGRESS));
    if let Some(of_batch) = limits.batch_timeout {
        let since = batch.began.get_or_init(std::time::Instant::now).elapsed();
        let rest = of_batch.saturating_sub(since);
        (allowed, most) = (allowed.min(rest), most.min(rest));
    }
    if allowed.is_zero() {
        let message = format!("`{}` was not run: the time of its batch is over", tool.name());
        return Err(Failure::refused(ErrorCode::Timeout, message));
    }
    let cancellation = context.cancellation().clone();
    let held = context.downgrade();
    let began = Instant::now();
    let mut body = Body::begin(tool, args.clone(), context, call.has_siblings);

    let mut deadline = pin!(sleep(allowed));
    let idle = limits.idle_timeout.filter(|idle| *idle < allowed);
    let mut quiet = pin!(sleep(idle.unwrap_or(allowed)));
    let mut quiet_credited = Duration::ZERO;
    // The time of waiting for a client that the deadline was moved by.
    let mut credited = Duration::ZERO;
    let stop = loop {
        tokio::select! {
            biased;
            outcome = &mut body => {
                progress.report(batch, call);
                let outcome = settled(tool, outcome);
                return if batch.cancellation.is_cancelled() {
                    // It observed the cancellation before this loop did.
                    outcome.map_err(|failure| stopped(tool, CancelReason::Cancelled, Some(failure)))
                } else {
                    outcome
                };
            }
            () = batch.cancellation.cancelled() => break CancelReason::Cancelled,
            () = &mut deadline => {
                let waited = wait.so_far().saturating_sub(credited);
                let until = match waited.is_zero() {
                    true => match extended(allowed, most, began + credited, progress.last_at()) {
                        Ok(until) => until,
                        Err(stop) => break stop,
                    },
                    false => Instant::now() + waited.max(LEAST_DELAY),
                };
                credited += waited;
                deadline.as_mut().reset(until);
            }
            () = &mut quiet, if idle.is_some() => {
                let idle = idle.unwrap_or(allowed);
                // A body that waits for its client or person is not idle.
                let waited = wait.so_far();
                let until = match waited > quiet_credited {
                    true => Instant::now() + idle,
                    false => progress.last_at().unwrap_or(began) + idle,
                };
                quiet_credited = waited;
                if until <= Instant::now() {
                    break CancelReason::Idle(idle);
                }
                quiet.as_mut().reset(until);
            }
            // Last, so that a flood of messages cannot extend a body's time.
            () = progress.due() => progress.report(batch, call),
        }
    };
    // Later messages are too late.
    progress.report(batch, call);
    drop(progress);

    // The body is cancelled, then given a grace period to report its outcome: its report is
    // accepted, even if the effect happened.
    cancellation.cancel();
    let grace = limits.cancel_grace;
    if let Ok(outcome) = timeout(grace, &mut body).await {
        return settled(tool, outcome).map_err(|failure| stopped(tool, stop, Some(failure)));
    }
    // A body that waits ends here. One that blocks or computes continues; its result is ignored.
    body.abort();
    let _ = timeout(grace, &mut body).await;
    let mut failure = stopped(tool, stop, None);
    failure.abandoned = !body.is_finished() || held.strong_count() > 0;
    Err(failure)
}

/// The next deadline of a body whose last one has passed: progress extends it, up to the limit of the
/// whole. Otherwise why it is stopped.
fn extended(
    allowed: Duration,
    most: Duration,
    began: Instant,
    last: Option<Instant>,
) -> Result<Instant, CancelReason> {
    let (now, end) = (Instant::now(), began + most);
    match last {
        _ if end <= now => Err(CancelReason::Deadline(most)),
        None => Err(CancelReason::Deadline(allowed)),
        Some(last) if last + allowed <= now => Err(CancelReason::Idle(allowed)),
        Some(last) => Ok(end.min(last + allowed)),
    }
}

fn settled(tool: &Tool, outcome: Result<BodyResult, BodyFailure>) -> Result<ToolOutput, Failure> {
    match outcome {
        Ok(said) => said.map_err(Failure::from),
        // A panic's message is not meant for a model.
        Err(BodyFailure(cause)) => Err(Failure::refused(
            ErrorCode::ExecutionFailed,
            format!("`{}` failed because of an internal error", tool.name()),
        )
        .caused_by(cause)),
    }
}

/// The failure of a cancelled body: the reason, and whether its effect may have happened.
fn stopped(tool: &Tool, stop: CancelReason, said: Option<Failure>) -> Failure {
    let (code, what) = match stop {
        CancelReason::Cancelled => (ErrorCode::Cancelled, "was cancelled".to_owned()),
        CancelReason::Deadline(allowed) => {
            (ErrorCode::Timeout, format!("did not finish within {allowed:?} and was stopped"))
        }
        CancelReason::Idle(idle) => {
            (ErrorCode::Timeout, format!("made no progress for {idle:?} and was stopped"))
        }
    };
    let name = tool.name();
    let unknown = match &said {
        Some(said) => said.code == ErrorCode::OutcomeUnknown,
        None => !tool.annotations().read_only,
    };
    let failure = if unknown {
        Failure::refused(
            ErrorCode::OutcomeUnknown,
            format!("`{name}` {what}; it may have had its effect, so check before trying again"),
        )
        .caused_by(code.as_str())
    } else {
        Failure::refused(code, format!("`{name}` {what}"))
    };
    let Some(said) = said else {
        return failure;
    };
    let cause = said.cause.unwrap_or_else(|| said.message.clone());
    if said.by_tool {
        // The body's report is useful, and is the tool's own text.
        let message = format!("{}. It said: {}", failure.message, said.message);
        Failure { message, by_tool: true, ..failure }.caused_by(cause)
    } else {
        failure.caused_by(cause)
    }
}

/// A body's result.
type BodyResult = Result<ToolOutput, ToolError>;

/// Why a body returned nothing, for the operator.
struct BodyFailure(String);

impl BodyFailure {
    fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self(format!("it panicked: {}", panic_text(panic)))
    }
}

/// A running body. Dropping it ends it. A body that blocks cannot be aborted; it is notified
/// through its token.
struct Body {
    runs: Execution,
    cancellation: CancellationToken,
}

enum Execution {
    /// On a separate task.
    Apart(JoinHandle<BodyResult>),
    /// On the task of its call.
    Here(BoxFuture<'static, Result<BodyResult, BodyFailure>>),
    Over,
}

impl Body {
    fn begin(tool: &Tool, args: Value, context: ToolContext, has_siblings: bool) -> Self {
        let cancellation = context.cancellation().clone();
        let runs_inline = tool.runs_inline();
        let tool = tool.clone();
        let body = async move {
            // A call beside it may halt the run, which its failure must not overtake.
            if runs_inline && has_siblings {
                yield_now().await;
            }
            tool.call(args, context).await
        };
        let runs = if runs_inline {
            let body = AssertUnwindSafe(body).catch_unwind();
            Execution::Here(body.map_err(|panic| BodyFailure::panicked(&*panic)).boxed())
        } else {
            Execution::Apart(tokio::spawn(body))
        };
        Self { runs, cancellation }
    }

    /// Ends it at its next await point.
    fn abort(&mut self) {
        match &self.runs {
            Execution::Apart(task) => task.abort(),
            Execution::Here(_) | Execution::Over => self.runs = Execution::Over,
        }
    }

    fn is_finished(&self) -> bool {
        match &self.runs {
            Execution::Apart(task) => task.is_finished(),
            Execution::Here(_) => false,
            Execution::Over => true,
        }
    }
}

impl Future for Body {
    type Output = Result<BodyResult, BodyFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.runs {
            Execution::Apart(task) => {
                return Pin::new(task).poll(cx).map_err(|error| match error.try_into_panic() {
                    Ok(panic) => BodyFailure::panicked(&*panic),
                    Err(error) => BodyFailure(error.to_string()),
                });
            }
            Execution::Here(body) => ready!(body.poll_unpin(cx)),
            Execution::Over => Err(BodyFailure("it was ended".to_owned())),
        };
        self.runs = Execution::Over;
        Poll::Ready(outcome)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.cancellation.cancel();
        self.abort();
    }
}
