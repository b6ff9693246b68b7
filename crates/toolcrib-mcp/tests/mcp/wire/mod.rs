//! The client against servers that keep to the protocol and servers that do not, message by
//! message: over a pipe, as programs, and over HTTP.

mod calls;
mod flood;
mod greetings;
mod http;
mod http_eras;
mod http_faults;
mod http_redirects;
mod http_sessions;
mod http_streams;
mod lists;
#[cfg(not(portable))]
mod programs;
mod raw;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolcrib_core::{
    CancellationToken, ErrorCode, Identity, Progress, ProgressSink, Tool, ToolContext,
    ToolContextParts, ToolError, ToolOutput,
};
use toolcrib_mcp::McpClient;

/// A failed call.
#[derive(Debug)]
struct Failed {
    code: ErrorCode,
    /// The text for the model.
    message: String,
    /// The cause, for the operator.
    reason: String,
}

impl From<ToolError> for Failed {
    fn from(error: ToolError) -> Self {
        let reason = error.source.map(|source| source.to_string()).unwrap_or_default();
        Self { code: error.code, message: error.message, reason }
    }
}

type Outcome = Result<ToolOutput, Failed>;

/// A call without arguments.
async fn call(tool: &Tool) -> Outcome {
    call_with(tool, json!({}), CancellationToken::new()).await
}

async fn call_with(tool: &Tool, args: Value, cancellation: CancellationToken) -> Outcome {
    let parts = ToolContextParts { cancellation, ..ToolContextParts::detached() };
    Ok(tool.call(args, ToolContext::from(parts)).await?)
}

/// A call, and its progress as texts and percentages.
async fn call_seen(tool: &Tool) -> (Outcome, Vec<(String, Option<u8>)>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let progress: ProgressSink = Arc::new(move |progress: Progress| {
        heard.lock().unwrap().push((progress.message, progress.percent));
    });
    let parts = ToolContextParts { progress: Some(progress), ..ToolContextParts::detached() };
    let outcome = tool.call(json!({}), ToolContext::from(parts)).await;
    let seen = seen.lock().unwrap().clone();
    (outcome.map_err(Failed::from), seen)
}

/// A call on its way.
fn calling(tool: &Tool) -> JoinHandle<Outcome> {
    let tool = tool.clone();
    tokio::spawn(async move { call(&tool).await })
}

/// The client's session of that principal, which has a separate connection.
fn of(client: &McpClient, principal: &str) -> McpClient {
    let identity = Identity::conversation("test");
    client.on_behalf_of(&Identity { principal: Some(principal.into()), ..identity })
}
