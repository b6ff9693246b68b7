//! Runs the body: spawned, so that a panic, a deadline or a body that never returns cannot hurt
//! the run.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinHandle},
    time::{Instant, sleep_until, timeout},
};
use toolcrib_core::{
    ErrorCode, EventKind, Progress, Tool, ToolContext, ToolError, ToolOutput, panic_text,
};

use super::{Batch, Call, Failure};

/// How many progress messages wait; more are dropped.
const PROGRESS_WAITING: usize = 64;

pub(super) type ProgressReceiver = mpsc::Receiver<Progress>;

pub(super) fn progress_channel() -> (mpsc::Sender<Progress>, ProgressReceiver) {
    mpsc::channel(PROGRESS_WAITING)
}

/// Why a body is asked to stop.
#[derive(Clone, Copy)]
enum Stop {
    Cancelled,
    Deadline(Duration),
}

pub(super) async fn run(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &Call,
    args: &Value,
    context: ToolContext,
    mut progress: ProgressReceiver,
) -> Result<ToolOutput, Failure> {
    if batch.cancellation.is_cancelled() {
        return Err(Failure::refused(
            ErrorCode::Cancelled,
            "the run was cancelled",
        ));
    }
    let allowed = tool.timeout().unwrap_or(batch.engine.limits.tool_timeout);
    let deadline = Instant::now() + allowed;
    let cancellation = context.cancellation().clone();
    let held = context.downgrade();
    let body = {
        let (tool, args) = (tool.clone(), args.clone());
        async move { tool.call(args, context).await }
    };
    let mut task = Spawned(tokio::spawn(body));

    let stop = loop {
        tokio::select! {
            biased;
            Some(message) = progress.recv() => report(batch, call, message),
            outcome = &mut task => {
                while let Ok(message) = progress.try_recv() {
                    report(batch, call, message);
                }
                return settled(tool, outcome);
            }
            () = batch.cancellation.cancelled() => break Stop::Cancelled,
            () = sleep_until(deadline) => break Stop::Deadline(allowed),
        }
    };

    // The body is asked to stop, then given a grace to say how it ended: what it says is true,
    // even when it is that the effect came about.
    cancellation.cancel();
    let grace = batch.engine.limits.cancel_grace;
    if let Ok(outcome) = timeout(grace, &mut task).await {
        return settled(tool, outcome).map_err(|failure| stopped(tool, stop, Some(failure)));
    }
    // A body that waits ends here. One that blocks or computes goes on, unseen and unheard.
    task.0.abort();
    let _ = timeout(grace, &mut task).await;
    let mut failure = stopped(tool, stop, None);
    failure.abandoned = !task.0.is_finished() || held.strong_count() > 0;
    Err(failure)
}

fn settled(
    tool: &Tool,
    outcome: Result<Result<ToolOutput, ToolError>, JoinError>,
) -> Result<ToolOutput, Failure> {
    match outcome {
        Ok(outcome) => outcome.map_err(Failure::from),
        Err(error) => {
            let cause = match error.try_into_panic() {
                Ok(panic) => format!("it panicked: {}", panic_text(&*panic)),
                Err(error) => error.to_string(),
            };
            // What a panic says was never meant for a model.
            Err(Failure::refused(
                ErrorCode::ExecutionFailed,
                format!("`{}` failed because of an internal error", tool.name()),
            )
            .caused_by(cause))
        }
    }
}

/// A body that was asked to stop: by whom, and whether its effect may have come about.
fn stopped(tool: &Tool, stop: Stop, said: Option<Failure>) -> Failure {
    let (code, what) = match stop {
        Stop::Cancelled => (ErrorCode::Cancelled, "was cancelled".to_owned()),
        Stop::Deadline(allowed) => (
            ErrorCode::Timeout,
            format!("did not finish within {allowed:?} and was stopped"),
        ),
    };
    let name = tool.name();
    match said {
        Some(said) => Failure {
            cause: Some(said.cause.unwrap_or(said.message)),
            ..Failure::refused(code, format!("`{name}` {what}"))
        },
        None if tool.annotations().read_only => Failure::refused(code, format!("`{name}` {what}")),
        None => Failure::refused(
            ErrorCode::OutcomeUnknown,
            format!("`{name}` {what}; it may have had its effect, so check before trying again"),
        )
        .caused_by(code.as_str()),
    }
}

fn report(batch: &Batch<'_>, call: &Call, progress: Progress) {
    batch
        .events
        .emit(Some(batch.iteration), || EventKind::ToolProgress {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            message: batch.engine.redactor.owned(progress.message),
            percent: progress.percent,
            audience: progress.audience,
        });
}

/// A task that ends with whoever waits for it: a run that is dropped leaves nothing behind.
struct Spawned<T>(JoinHandle<T>);

impl<T> Future for Spawned<T> {
    type Output = Result<T, JoinError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for Spawned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
