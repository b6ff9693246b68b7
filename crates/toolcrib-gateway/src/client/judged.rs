//! The offers of a server beside tools, in the form that rules judge and the pipe runs.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolcrib_core::{Annotations, BoxFuture, Tool, ToolBody, ToolContext, ToolError, ToolOutput};
pub(crate) use toolcrib_engine::__internal::JudgedOnly;
use toolcrib_mcp::{__internal::AssetKind, McpClient};

/// The toolset by which rules name prompts.
pub(crate) const PROMPTS: &str = "mcp.prompts";

/// The toolset by which rules name resources.
pub(crate) const RESOURCES: &str = "mcp.resources";

/// A server's offers beside tools, in the form that rules judge and the pipe runs.
pub(crate) fn tool(
    server: &str,
    name: &str,
    toolset: &'static str,
    body: impl ToolBody,
) -> Option<Tool> {
    named(server, format!("mcp__{server}__{name}"), toolset, body)
}

/// The same with the whole name.
pub(crate) fn named(
    server: &str,
    name: String,
    toolset: &'static str,
    body: impl ToolBody,
) -> Option<Tool> {
    Tool::builder(name)
        .description("Read by an MCP client.")
        .input_schema(serde_json::json!({ "type": "object", "additionalProperties": true }))
        .toolset(toolset)
        .origin(format!("mcp:{server}"))
        .mcp_server(server)
        .untrusted()
        .annotations(Annotations { read_only: true, idempotent: true, ..Annotations::default() })
        .body(body)
        .ok()
}

/// The prompt of a server with this exposed name, or its resources, in the form that rules judge; `None`
/// if the server does not offer them.
pub async fn judged_offer(client: &McpClient, name: &str) -> Option<Tool> {
    let server = client.name().as_str();
    let own = name.strip_prefix("mcp__")?.strip_prefix(server)?.strip_prefix("__")?;
    let listed = client.assets(AssetKind::Prompts).await.unwrap_or_default();
    let is_prompt = |item: &Map<String, Value>| {
        let own = item.get("name").and_then(Value::as_str);
        own.is_some_and(|own| client.exposed_name(own) == name)
    };
    if listed.iter().any(is_prompt) {
        return named(server, name.to_owned(), PROMPTS, JudgedOnly);
    }
    let offers = client.offers().await.ok().filter(|_| own == "resources")?;
    offers.capabilities.resources.as_ref()?;
    tool(server, own, RESOURCES, JudgedOnly)
}

/// A body that is a function.
pub(crate) struct Body<F>(pub(crate) F);

impl<F, T> ToolBody for Body<F>
where
    F: Fn(ToolContext) -> T + Send + Sync + 'static,
    T: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    fn call(
        self: Arc<Self>,
        _: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(self.0(cx))
    }

    fn runs_inline(&self) -> bool {
        true
    }
}
