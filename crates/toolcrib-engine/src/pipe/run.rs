//! Runs the body: spawned, so that a panic, a deadline or a body that never returns cannot affect
//! the turn; a body that is declared not to block runs on the task of its call.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Weak,
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
    __internal::panic_text, CancellationToken, ErrorCode, Tool, ToolContext, ToolContextParts,
    ToolError, ToolOutput,
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
    let mut limits = TimeLimits::of(batch, tool)?;
    let cancellation = context.cancellation().clone();
    let held = context.downgrade();
    let mut body = Body::begin(tool, args.clone(), context, call.has_siblings);

    let mut deadline = pin!(sleep(limits.allowed));
    let mut quiet = pin!(sleep(limits.idle.unwrap_or(limits.allowed)));
    let reason = loop {
        tokio::select! {
            biased;
            outcome = &mut body => {
                progress.report(batch, call);
                // It may have observed the cancellation before this loop did.
                let is_cancelled = batch.cancellation.is_cancelled();
                return settled(tool, outcome).map_err(|failure| match is_cancelled {
                    true => stopped(tool, CancelReason::Cancelled, Some(failure)),
                    false => failure,
                });
            }
            () = batch.cancellation.cancelled() => break CancelReason::Cancelled,
            () = &mut deadline => match limits.extended(wait.so_far(), progress.last_at()) {
                Ok(until) => deadline.as_mut().reset(until),
                Err(reason) => break reason,
            },
            () = &mut quiet, if limits.idle.is_some() => {
                match limits.idle_until(wait.so_far(), progress.last_at()) {
                    Ok(until) => quiet.as_mut().reset(until),
                    Err(reason) => break reason,
                }
            }
            // Last, so that a flood of messages cannot extend a body's time.
            () = progress.due() => progress.report(batch, call),
        }
    };
    // Later messages are too late.
    progress.report(batch, call);
    drop(progress);

    cancellation.cancel();
    stop(tool, body, reason, &held, batch.engine.limits.cancel_grace).await
}

/// Gives a cancelled body a grace period to report its outcome: its report is accepted, even if the
/// effect happened.
async fn stop(
    tool: &Tool,
    mut body: Body,
    reason: CancelReason,
    held: &Weak<ToolContextParts>,
    grace: Duration,
) -> Result<ToolOutput, Failure> {
    if let Ok(outcome) = timeout(grace, &mut body).await {
        return settled(tool, outcome).map_err(|failure| stopped(tool, reason, Some(failure)));
    }
    // A body that waits ends here. One that blocks or computes continues; its result is ignored.
    body.abort();
    let _ = timeout(grace, &mut body).await;
    let mut failure = stopped(tool, reason, None);
    failure.abandoned = !body.is_finished() || held.strong_count() > 0;
    Err(failure)
}

/// The time limits of a running body.
struct TimeLimits {
    began: Instant,
    /// The time that the body has from its beginning, and from each progress.
    allowed: Duration,
    /// The limit of the whole, however much progress it makes.
    most: Duration,
    /// The time without progress after which it is stopped, if shorter.
    idle: Option<Duration>,
    /// The time of waiting for a client that the deadline was moved by.
    credited: Duration,
    /// The time of waiting for a client, when it was last checked for progress.
    waited: Duration,
}

impl TimeLimits {
    fn of(batch: &Batch<'_>, tool: &Tool) -> Result<Self, Failure> {
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
        let idle = limits.idle_timeout.filter(|idle| *idle < allowed);
        let (began, credited, waited) = (Instant::now(), Duration::ZERO, Duration::ZERO);
        Ok(Self { began, allowed, most, idle, credited, waited })
    }

    /// The next deadline of a body whose last one has passed, if it has waited for its client or
    /// made progress since. Otherwise why it is stopped.
    fn extended(
        &mut self,
        waited: Duration,
        progress: Option<Instant>,
    ) -> Result<Instant, CancelReason> {
        let now = Instant::now();
        let waited = waited.saturating_sub(self.credited);
        if !waited.is_zero() {
            self.credited += waited;
            return Ok(now + waited.max(LEAST_DELAY));
        }
        let (allowed, end) = (self.allowed, self.began + self.credited + self.most);
        match progress {
            _ if end <= now => Err(CancelReason::Deadline(self.most)),
            None => Err(CancelReason::Deadline(allowed)),
            Some(last) if last + allowed <= now => Err(CancelReason::Idle(allowed)),
            Some(last) => Ok(end.min(last + allowed)),
        }
    }

    /// When a body without further progress is idle. A body that waits for its client or person is
    /// not.
    fn idle_until(
        &mut self,
        waited: Duration,
        progress: Option<Instant>,
    ) -> Result<Instant, CancelReason> {
        let now = Instant::now();
        let idle = self.idle.unwrap_or(self.allowed);
        let since = if waited > self.waited { now } else { progress.unwrap_or(self.began) };
        self.waited = waited;
        let until = since + idle;
        if until <= now { Err(CancelReason::Idle(idle)) } else { Ok(until) }
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
