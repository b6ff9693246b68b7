//! A tool's body, run without an engine.

use std::time::Duration;

use serde_json::Value;
use tokio::task::{JoinHandle, yield_now};
use toolcrib_core::{CancellationToken, Tool, ToolContextParts, ToolError, ToolOutput, panic_text};

use crate::clock::within;

/// How a body ended.
pub(super) enum Ended {
    Returned(Result<ToolOutput, ToolError>),
    Panicked(String),
    Late,
}

/// Runs a tool's body as an engine does: spawned, with a token of its own.
pub(super) struct Body {
    pub(super) tool: Tool,
    pub(super) context: Box<dyn Fn() -> ToolContextParts + Send + Sync>,
}

impl Body {
    pub(super) async fn run(&self, args: &Value, limit: Duration) -> Ended {
        self.start(args).ended(limit).await
    }

    /// Runs, cancels while the body waits for something, and says how it ended then. `None` when
    /// it was over before.
    pub(super) async fn cancel(&self, args: &Value, limit: Duration) -> Option<Ended> {
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

    fn start(&self, args: &Value) -> Running {
        let token = CancellationToken::new();
        let parts = ToolContextParts { cancellation: token.clone(), ..(self.context)() };
        let (tool, args) = (self.tool.clone(), args.clone());
        let handle = tokio::spawn(async move { tool.call(args, parts.into()).await });
        Running { handle, token }
    }
}

/// A body that is told and ended when nobody waits for it any more.
struct Running {
    handle: JoinHandle<Result<ToolOutput, ToolError>>,
    token: CancellationToken,
}

impl Running {
    async fn ended(&mut self, limit: Duration) -> Ended {
        match within(limit, &mut self.handle).await {
            None => Ended::Late,
            Some(Ok(outcome)) => Ended::Returned(outcome),
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => Ended::Panicked(panic_text(&*panic).to_owned()),
                Err(error) => Ended::Panicked(error.to_string()),
            },
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.token.cancel();
        self.handle.abort();
    }
}
