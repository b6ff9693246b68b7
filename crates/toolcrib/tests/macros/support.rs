//! One call through a whole engine.

use serde_json::Value;
use toolcrib::{
    Engine, Tool,
    secrets::{SecretError, secrets_fn},
    tool::{IntoTool, ToolCall, ToolResult},
    turn::TurnOptions,
};

/// The tool, as an engine takes it.
pub(crate) fn made(tool: impl IntoTool) -> Tool {
    tool.into_tool().unwrap()
}

/// One call: a turn, an iteration, the whole pipe.
pub(crate) async fn call(tool: impl IntoTool, args: Value) -> ToolResult {
    let tool = made(tool);
    let name = tool.name().to_string();
    let no_secrets = secrets_fn(|name| Err(SecretError::Unknown { name: name.into() }));
    let engine = Engine::builder().tool(tool).secrets(no_secrets).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call_1", name.as_str(), args)]).await.remove(0)
}

/// What the model reads of a call that succeeds.
pub(crate) async fn text(tool: impl IntoTool, args: Value) -> String {
    let result = call(tool, args).await;
    assert_eq!(result.code, None, "{}", result.text);
    result.text.to_string()
}
