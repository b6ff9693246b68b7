//! Runs a tool's body without an engine.

use std::time::Duration;

use serde_json::Value;
use tokio::task::{JoinHandle, yield_now};
use toolcrib_core::{
    __internal::panic_text, CancellationToken, Tool, ToolContextParts, ToolError, ToolOutput,
};

use crate::clock::within;

/// The end of a body.
pub(super) enum BodyOutcome {
    Returned(Result<ToolOutput, ToolError>),
    Panicked(String),
    Late,
}

/// Runs a tool's body as an engine does: spawned, with a separate token.
pub(super) struct Body {
    pub(super) tool: Tool,
    pub(super) context: Box<dyn Fn() -> ToolContextParts + Send + Sync>,
}

impl Body {
    pub(super) async fn run(&self, args: &Value, limit: Duration) -> BodyOutcome {
        self.start(args).ended(limit).await
    }

    /// Runs the body, cancels while it waits, and returns how it ended. `None` if it ended before.
    pub(super) async fn cancel(&self, args: &Value, limit: Duration) -> Option<BodyOutcome> {
        let mut running = self.start(args);
        for _ in 0..3 {
            yield_now().await;
        }
        if running.handle.is_finished() {
            return None;
        }
        running.token.cancel();
        Some(running.ended(limit).await)
    }

    fn start(&self, args: &Value) -> RunningBody {
        let token = CancellationToken::new();
        let parts = ToolContextParts { cancellation: token.clone(), ..(self.context)() };
        let (tool, args) = (self.tool.clone(), args.clone());
        let handle = tokio::spawn(async move { tool.call(args, parts.into()).await });
        RunningBody { handle, token }
    }
}

/// Cancels and aborts the body when it is dropped.
struct RunningBody {
    handle: JoinHandle<Result<ToolOutput, ToolError>>,
    token: CancellationToken,
}

impl RunningBody {
    async fn ended(&mut self, limit: Duration) -> BodyOutcome {
        match within(limit, &mut self.handle).await {
            None => BodyOutcome::Late,
            Some(Ok(outcome)) => BodyOutcome::Returned(outcome),
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => BodyOutcome::Panicked(panic_text(&*panic).to_owned()),
                Err(error) => BodyOutcome::Panicked(error.to_string()),
            },
        }
    }
}

impl Drop for RunningBody {
    fn drop(&mut self) {
        self.token.cancel();
        self.handle.abort();
    }
}
