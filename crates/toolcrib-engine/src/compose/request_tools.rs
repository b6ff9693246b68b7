//! The requests of servers in the form that rules judge.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib_core::{Annotations, BoxFuture, Tool, ToolBody, ToolContext, ToolError, ToolOutput};

/// The requests of servers in the form that rules judge, made once for each server and kind.
#[derive(Debug, Default)]
pub(crate) struct RequestTools(Mutex<HashMap<&'static str, HashMap<String, Tool>>>);

impl RequestTools {
    pub(crate) fn tool(&self, server: &str, toolset: &'static str) -> Option<Tool> {
        let mut tools = self.0.lock();
        let of_kind = tools.entry(toolset).or_default();
        if let Some(tool) = of_kind.get(server) {
            return Some(tool.clone());
        }
        let tool = request_tool(server, toolset)?;
        of_kind.insert(server.to_owned(), tool.clone());
        Some(tool)
    }
}

fn request_tool(server: &str, toolset: &'static str) -> Option<Tool> {
    let kind = toolset.strip_prefix("mcp.").unwrap_or(toolset);
    Tool::builder(format!("mcp__{server}__{kind}"))
        .description("A request of an MCP server.")
        .toolset(toolset)
        .origin(format!("mcp:{server}"))
        .mcp_server(server)
        .annotations(Annotations { read_only: true, ..Annotations::default() })
        .body(JudgedOnly)
        .ok()
}

/// The body of a tool that is only judged.
pub struct JudgedOnly;

impl ToolBody for JudgedOnly {
    fn call(
        self: Arc<Self>,
        _: Value,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::failed("this is not a tool")) })
    }
}
