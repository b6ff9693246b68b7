//! The server's side of the protocol.

use std::{
    borrow::Cow,
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
        ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext, serve_server_with_ct},
};
use serde_json::Value;
use tokio::{
    io::{DuplexStream, duplex, split},
    sync::mpsc,
    time::{sleep, timeout},
};
use toolcrib_core::{CancellationToken, Progress, Tool, ToolContext, ToolContextParts, ToolOutput};

use super::script::{Listener, Script};
use crate::wire;

/// The capacity of the pipe, each way.
const PIPE_BYTES: usize = 64 * 1024;
/// How long a cancelled body may take to end.
const CANCEL_GRACE: Duration = Duration::from_millis(250);
/// The number of buffered progress messages of a body.
const PROGRESS_WAITING: usize = 64;

/// Opens a connection and returns the client's end of it.
pub(super) fn open(script: &Arc<Script>) -> io::Result<DuplexStream> {
    script.connections.fetch_add(1, Ordering::Relaxed);
    let end = CancellationToken::new();
    {
        let mut state = script.state();
        if let Some(left) = state.refuse.checked_sub(1) {
            state.refuse = left;
            return Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "the test refuses \
                connections",
            ));
        }
        state.ends.retain(|end| !end.is_cancelled());
        state.ends.push(end.clone());
    }
    let (client, server) = duplex(PIPE_BYTES);
    let over = CancellationToken::new();
    let handler = Handler { script: Arc::clone(script), end: end.clone(), over: over.clone() };
    tokio::spawn(async move {
        if let Ok(running) = serve_server_with_ct(handler, split(server), end.clone()).await {
            let _ = running.waiting().await;
        }
        end.cancel();
        over.cancel();
    });
    Ok(client)
}

/// One connection.
struct Handler {
    script: Arc<Script>,
    /// Ends it at once.
    end: CancellationToken,
    /// Fires when it has ended.
    over: CancellationToken,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let version = if self.script.legacy {
            ProtocolVersion::LATEST_WITH_INITIALIZE
        } else {
            ProtocolVersion::LATEST
        };
        ServerConfig::new(capabilities)
            .with_protocol_version(version)
            .with_server_info(Implementation::new("mock", env!("CARGO_PKG_VERSION")))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(if self.script.legacy {
            ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE)
        } else {
            ProtocolVersion::KNOWN_VERSIONS
        })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.script.state().listeners.push(Listener::Peer(context.peer));
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.script.state().listeners.push(Listener::Subscription(context.sink().clone()));
        context.cancelled().await;
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.script.lists.fetch_add(1, Ordering::Relaxed);
        let (refusal, delay) = {
            let mut state = self.script.state();
            (state.fail_lists.pop_front(), state.delay)
        };
        tokio::select! {
            () = sleep(delay) => {}
            () = self.given_up(&context) => return Err(given_up()),
        }
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        let start = match request.and_then(|request| request.cursor) {
            None => 0,
            Some(cursor) => cursor
                .parse::<usize>()
                .map_err(|_| ErrorData::invalid_params("unknown cursor", None))?,
        };
        let state = self.script.state();
        let end = start.saturating_add(self.script.page_size);
        let page = state.tools.iter().skip(start).take(self.script.page_size);
        let mut result = ListToolsResult::with_all_items(page.map(described).collect());
        result.next_cursor = (end < state.tools.len()).then(|| end.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.script.calls.fetch_add(1, Ordering::Relaxed);
        let (refusal, delay, crash, tool) = {
            let mut state = self.script.state();
            let tool = state.tools.iter().find(|tool| **tool.name() == *request.name).cloned();
            let crash = std::mem::take(&mut state.crash_during_call);
            (state.fail_calls.pop_front(), state.delay, crash, tool)
        };
        let done = async {
            sleep(delay).await;
            if let Some(refusal) = refusal {
                return Err(refusal.into());
            }
            let Some(tool) = tool else {
                let unknown = format!("Unknown tool: {}", request.name);
                return Err(ErrorData::invalid_params(unknown, None));
            };
            Ok(run(&tool, request.arguments.unwrap_or_default().into(), &context).await)
        };
        tokio::pin!(done);
        let answer = tokio::select! {
            biased;
            () = self.given_up(&context) => {
                if !self.end.is_cancelled() {
                    self.script.cancelled.fetch_add(1, Ordering::Relaxed);
                    // The body is cancelled too, and may have to clean up.
                    let _ = timeout(CANCEL_GRACE, done).await;
                }
                return Err(given_up());
            }
            answer = &mut done => answer,
        };
        if crash {
            self.end.cancel();
            // Sends nothing while a client is connected.
            self.over.cancelled().await;
            return Err(given_up());
        }
        answer.map(CallToolResponse::from)
    }
}

impl Handler {
    /// Done when a request is cancelled, or the connection ends with it.
    async fn given_up(&self, context: &RequestContext<RoleServer>) {
        tokio::select! {
            () = context.ct.cancelled() => {}
            () = self.end.cancelled() => {}
        }
    }
}

fn given_up() -> ErrorData {
    ErrorData::internal_error("the client no longer waits", None)
}

/// Runs the tool's body, and forwards its progress meanwhile.
async fn run(tool: &Tool, args: Value, context: &RequestContext<RoleServer>) -> CallToolResult {
    let (sender, mut progress) = mpsc::channel(PROGRESS_WAITING);
    let mut parts = ToolContextParts::detached();
    parts.cancellation = context.ct.clone();
    parts.progress = Some(Arc::new(move |message| drop(sender.try_send(message))));
    let token = context.meta.get_progress_token();
    let mut body = tool.call(args, ToolContext::from(parts));
    let mut said = 0_u32;
    let outcome = loop {
        tokio::select! {
            biased;
            Some(message) = progress.recv() => {
                said += 1;
                tell(context, token.clone(), said, message).await;
            }
            outcome = &mut body => break outcome,
        }
    };
    // The last message may have come with its end.
    while let Ok(message) = progress.try_recv() {
        said += 1;
        tell(context, token.clone(), said, message).await;
    }
    match outcome {
        Ok(output) => written(output),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.message)]),
    }
}

async fn tell(
    context: &RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    said: u32,
    message: Progress,
) {
    let Some(token) = token else {
        return;
    };
    let mut params = match message.percent {
        Some(percent) => {
            ProgressNotificationParam::new(token, f64::from(percent)).with_total(100.0)
        }
        None => ProgressNotificationParam::new(token, f64::from(said)),
    };
    params.message = Some(message.message);
    // If the client is gone, so is the call.
    let _ = context.peer.notify_progress(params).await;
}

fn described(tool: &Tool) -> rmcp::model::Tool {
    wire::tool(tool, tool.output_schema().and_then(Value::as_object))
}

fn written(output: ToolOutput) -> CallToolResult {
    let mut content = vec![ContentBlock::text(output.value)];
    content.extend(output.blocks.iter().filter_map(wire::block));
    let mut result = CallToolResult::success(content);
    result.structured_content = output.structured;
    result
}
