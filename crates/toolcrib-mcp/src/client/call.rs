//! One call of a remote tool.

use std::sync::{Arc, Weak};

use serde_json::Value;
use toolcrib_core::{
    Audience, BoxFuture, ContentBlock, ErrorCode, Progress, ToolBody, ToolContext, ToolError,
    ToolOutput,
};

use super::{McpError, sessions::Sessions, supervisor::Supervisor};
use crate::connection::{CallAnswer, CallRequest, RequestError};

/// The JSON-RPC error codes of refused calls.
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;

/// The body of a remote tool. It has no reference to the client: a client has the tools of its
/// list.
pub(super) struct RemoteCall {
    pub(super) sessions: Weak<Sessions>,
    /// The server's name, for calls after the client is gone.
    pub(super) server: Arc<str>,
    /// The server's name of the tool.
    pub(super) tool: Arc<str>,
    /// Whether it is trusted to be read-only.
    pub(super) read_only: bool,
    /// The audience of its progress.
    pub(super) audience: Audience,
}

impl ToolBody for RemoteCall {
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Some(sessions) = self.sessions.upgrade() else {
                let gone = format!("the client of MCP server `{}` is closed", self.server);
                return Err(ToolError::new(ErrorCode::NotAvailable, gone));
            };
            // The caller's session: a cached list may come from another's.
            let session = sessions.of(&sessions.whose(cx.identity())).map_err(not_available)?;
            self.run(&session, args, &cx).await
        })
    }

    fn runs_inline(&self) -> bool {
        true
    }
}

impl RemoteCall {
    async fn run(
        &self,
        supervisor: &Arc<Supervisor>,
        args: Value,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Value::Object(arguments) = args else {
            return Err(ToolError::input_invalid("the arguments must be a JSON object"));
        };
        let arguments = Arc::new(arguments);
        let idempotency_key = Arc::<str>::from(cx.idempotency_key());
        let mut tried_before = false;
        loop {
            let live = tokio::select! {
                biased;
                () = cx.cancellation().cancelled() => return Err(self.never_sent()),
                live = supervisor.connection() => live.map_err(not_available)?,
            };
            let (progress, audience) = (cx.clone(), self.audience);
            let request = CallRequest {
                tool: Arc::clone(&self.tool),
                arguments: Arc::clone(&arguments),
                idempotency_key: Arc::clone(&idempotency_key),
                on_progress: Arc::new(move |message, percent| {
                    progress.progress(Progress { message, percent, audience });
                }),
                cancellation: cx.cancellation().clone(),
            };
            match live.call(request).await {
                Ok(answer) => return self.answered(answer),
                // The server did not receive it, so this repeats nothing.
                Err(RequestError::NotSent(_)) if cx.cancellation().is_cancelled() => {
                    return Err(self.never_sent());
                }
                Err(RequestError::NotSent(_)) if !tried_before => {
                    tried_before = true;
                    live.settled().await;
                }
                Err(error) => return Err(self.failed(supervisor, error)),
            }
        }
    }

    fn answered(&self, answer: CallAnswer) -> Result<ToolOutput, ToolError> {
        let CallAnswer { output, is_error } = answer;
        if !is_error {
            return Ok(output);
        }
        let said = (!output.value.trim().is_empty()).then_some(output.value);
        let texts: Vec<_> =
            said.into_iter().chain(output.blocks.iter().map(ContentBlock::as_read)).collect();
        Err(if texts.is_empty() {
            ToolError::failed(format!("`{}` failed and did not say why", self.tool))
        } else {
            ToolError::failed(texts.join("\n"))
        })
    }

    fn failed(&self, supervisor: &Arc<Supervisor>, error: RequestError) -> ToolError {
        let server = supervisor.name();
        match error {
            RequestError::Refused { code, message } => {
                let is_unknown = code == METHOD_NOT_FOUND
                    || code == INVALID_PARAMS && names_no_tool(&message);
                if is_unknown {
                    supervisor.tools_changed();
                }
                // Never `not_available`, which says that nothing was done: a server that responds
                // was reached, and may refuse after it has done its work.
                ToolError::new(
                    match code {
                        INVALID_PARAMS if !is_unknown => ErrorCode::InputInvalid,
                        _ => ErrorCode::ExecutionFailed,
                    },
                    message,
                )
            }
            RequestError::NotSent(_) => ToolError::new(
                ErrorCode::NotAvailable,
                format!("MCP server `{server}` cannot be used at the moment; it did not take the call"),
            )
            .caused_by(error),
            RequestError::Malformed(_) | RequestError::Denied(_) if self.read_only => ToolError::failed(format!(
                "MCP server `{server}` gave an answer that cannot be used"
            ))
            .caused_by(error),
            RequestError::Malformed(_) | RequestError::Denied(_) => ToolError::new(
                ErrorCode::OutcomeUnknown,
                format!(
                    "MCP server `{server}` gave an answer that cannot be used; the call may have had \
                     its effect, so check before trying again"
                ),
            )
            .caused_by(error),
            RequestError::Lost(_) if self.read_only => ToolError::failed(format!(
                "the connection to MCP server `{server}` ended before an answer came; it changes \
                 nothing, so it can be called again"
            ))
            .caused_by(error),
            RequestError::Lost(_) => ToolError::new(
                ErrorCode::OutcomeUnknown,
                format!(
                    "the connection to MCP server `{server}` ended before an answer came; the call \
                     may have had its effect, so check before trying again"
                ),
            )
            .caused_by(error),
            RequestError::Cancelled if self.read_only => {
                ToolError::new(ErrorCode::Cancelled, "the call was cancelled").caused_by(error)
            }
            RequestError::Cancelled => ToolError::new(
                ErrorCode::OutcomeUnknown,
                format!(
                    "MCP server `{server}` received a cancellation of the call; it may have had \
                     its effect, so check before trying again"
                ),
            )
            .caused_by(error),
        }
    }

    fn never_sent(&self) -> ToolError {
        let text = format!(
            "MCP server `{}` was not connected in time; the call was not sent",
            self.server
        );
        ToolError::new(ErrorCode::Cancelled, text)
    }
}

/// An error before anything was sent.
fn not_available(error: McpError) -> ToolError {
    ToolError::new(ErrorCode::NotAvailable, error.for_model()).caused_by(error)
}

/// Whether a server reports an unknown tool. Most report it as invalid parameters, like the
/// protocol's examples, so only the text tells it.
fn names_no_tool(message: &str) -> bool {
    let message = message.chars().take(2_000).collect::<String>().to_lowercase();
    message.contains("unknown tool") || (message.contains("tool") && message.contains("not found"))
}
