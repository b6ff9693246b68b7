//! Requests to servers beside calls, which go through the pipe as calls do.

use std::sync::Arc;

use rmcp::ErrorData;
use serde_json::{Map, Value};
use toolcrib_core::{ErrorCode, Tool, ToolCall, ToolResult};
use toolcrib_mcp::__internal as mcp;

use crate::client::{progress, request::RequestContext, step::Step};

impl RequestContext<'_> {
    /// Passes a request through the pipe, like a call.
    ///
    /// # Errors
    /// The server's protocol error, or `absent` for what does not exist or is not permitted.
    pub(crate) async fn through_the_pipe(
        &self,
        step: &Step,
        tool: Tool,
        arguments: Map<String, Value>,
        absent: impl FnOnce() -> ErrorData,
    ) -> Result<ToolResult, ErrorData> {
        let call =
            ToolCall::new(self.id.to_string(), tool.name().as_str(), Value::Object(arguments));
        let call_id = Arc::clone(&call.id);
        // Large and rare: on the heap, because each request has room for the rest.
        let execute = Box::pin(step.iteration.execute_apart(&tool, call, Some(self.port)));
        let forwarded = progress::forwarded(self.request, step, &call_id, execute);
        let mut results = std::pin::pin!(forwarded);
        let result = tokio::select! {
            biased;
            () = self.no_longer_needed() => {
                step.iteration.cancellation().cancel();
                results.await
            }
            result = &mut results => result,
        };
        let missing = || ErrorData::internal_error("the request has no result", None);
        let result = result.ok_or_else(missing)?;
        self.remember(step, &result).await?;
        match result.code {
            None => Ok(result),
            Some(ErrorCode::Denied) => Err(absent()),
            // The rules never admit it: its server has not failed.
            Some(ErrorCode::NotAvailable) if !step.iteration.admits(&tool, None) => Err(absent()),
            Some(code) => Err(error(&result, code)),
        }
    }
}

/// A failed result as an error of the protocol.
fn error(result: &ToolResult, code: ErrorCode) -> ErrorData {
    let text = result.value.to_string();
    match result.meta.as_deref().and_then(mcp::protocol_error) {
        Some((code, data)) => ErrorData::new(rmcp::model::ErrorCode(code), text, data),
        None if code == ErrorCode::InputInvalid => ErrorData::invalid_params(text, None),
        None => {
            let data = serde_json::json!({ "code": code });
            ErrorData::internal_error(text, Some(data))
        }
    }
}
