//! The server at the end of all calls: one tool that returns its argument, with rmcp.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

/// The name of its one tool.
pub(crate) const TOOL: &str = "echo";

/// The one server. It waits this long before each response.
#[derive(Debug, Clone)]
pub(crate) struct Echo(pub(crate) Duration);

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![tool()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
        let text = request.arguments.as_ref().and_then(|arguments| arguments.get("text"));
        let text = text.and_then(Value::as_str).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "description": "The text to return." } },
        "required": ["text"],
        "additionalProperties": false,
    });
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    Tool::new(TOOL, "Returns its text.", schema)
}
