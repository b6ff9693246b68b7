//! Helpers of the client's tests.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    Catalog, ErrorCode, Tool, ToolBuilder, ToolCall, ToolContext, ToolContextParts, ToolOutput,
    ToolResult,
};
use toolcrib_engine::{Engine, EngineBuilder, Iteration, OnFailure, Redactor, TurnOptions};
use toolcrib_mcp::{McpClient, MockMcpBuilder, MockServer, mock_mcp_client};

/// A tool with everything but a body, that takes what it is given.
pub(crate) fn builder(name: &str) -> ToolBuilder {
    Tool::builder(name)
        .description("A tool of the tests.")
        .input_schema(json!({ "type": "object" }))
}

/// A tool that answers with its name and its arguments.
pub(crate) fn echo(name: &str) -> Tool {
    let text = name.to_owned();
    builder(name)
        .handler(move |args: Value, _: ToolContext| {
            let text = format!("{text}: {args}");
            async move { text }
        })
        .unwrap()
}

pub(crate) fn mock(tools: &[&str]) -> MockMcpBuilder {
    mock_mcp_client(tools.iter().map(|name| echo(name)))
}

pub(crate) fn built(builder: MockMcpBuilder) -> (McpClient, MockServer) {
    builder.build().unwrap()
}

/// An engine that knows no secrets of the machine it is tested on.
pub(crate) fn engine() -> EngineBuilder {
    Engine::builder().redactor(Redactor::default())
}

/// An engine with that client as its only source.
pub(crate) fn engine_of(client: &McpClient, on_failure: OnFailure) -> Engine {
    engine().provider_with(Arc::new(client.clone()), on_failure).build().unwrap()
}

pub(crate) async fn iteration(engine: &Engine) -> Iteration {
    engine.turn(TurnOptions::default()).unwrap().iteration().await.unwrap()
}

pub(crate) fn menu(iteration: &Iteration) -> Vec<String> {
    iteration.menu().names().map(ToString::to_string).collect()
}

pub(crate) async fn offered(engine: &Engine) -> Vec<String> {
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    menu(&turn.iteration().await.unwrap())
}

/// One call through the pipe, in a separate turn.
pub(crate) async fn once(engine: &Engine, name: &str, args: Value) -> ToolResult {
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call", name, args)]).await.remove(0)
}

/// The tool of that name, as the client offers it.
pub(crate) async fn tool_of(client: &McpClient, name: &str) -> Tool {
    let name = client.name().tool_name(name);
    client.tools().await.unwrap().into_iter().find(|tool| *tool.name() == *name).unwrap()
}

/// A call of a tool's body alone.
pub(crate) async fn call(tool: &Tool) -> Result<ToolOutput, (ErrorCode, String)> {
    let cx = ToolContext::from(ToolContextParts::detached());
    tool.call(json!({}), cx).await.map_err(|error| (error.code, error.message))
}

pub(crate) fn names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name().as_str()).collect()
}

/// The withheld tools, as `name: reason`.
pub(crate) fn withheld_by_provider(catalog: &Catalog) -> Vec<String> {
    catalog
        .withheld_by_provider()
        .iter()
        .map(|held| format!("{}: {}", held.tool.name(), held.reason))
        .collect()
}
