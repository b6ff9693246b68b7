//! Truncation of a result to its tool's cap.

use serde_json::{Value, json};
use toolcrib_core::{Tool, ToolCall, ToolContext, ToolOutput, ToolResult};
use toolcrib_engine::{Engine, Redactor, TurnOptions};

/// Whether readable text remains, and the data is complete.
pub(super) async fn fits(tool: &Tool, output: &ToolOutput, cap: usize) -> Result<(), String> {
    let result = cut(tool, output, cap).await?;
    if result.value.starts_with("[truncated — ") {
        return Err(format!(
            "a text of {} characters exceeds the cap of {cap}, and nothing of it is left when it \
             is cut",
            output.value.chars().count()
        ));
    }
    if result.structured != output.structured {
        return Err(format!(
            "its data exceeds the cap of {cap} characters, so programs get none of it"
        ));
    }
    Ok(())
}

/// Passes an existing output through an engine, so that the body need not run again.
async fn cut(tool: &Tool, output: &ToolOutput, cap: usize) -> Result<ToolResult, String> {
    let mut stand_in = Tool::builder(tool.name().as_str())
        .description(tool.description())
        .input_schema(json!({ "type": "object" }))
        .max_result_chars(cap);
    if tool.untrusted() {
        stand_in = stand_in.untrusted();
    }
    let output = output.clone();
    let stand_in = stand_in
        .handler(move |_: Value, _: ToolContext| {
            let output = output.clone();
            async move { output }
        })
        .map_err(|error| error.to_string())?;
    let engine = Engine::builder().redactor(Redactor::default()).tool(stand_in).build();
    let engine = engine.map_err(|error| error.to_string())?;
    let mut turn = engine.turn(TurnOptions::default()).map_err(|error| error.to_string())?;
    let mut iteration = turn.iteration().await.map_err(|error| error.to_string())?;
    let call = ToolCall::new("check", tool.name().as_str(), json!({}));
    iteration.execute(vec![call]).await.pop().ok_or_else(|| "the engine gave no result".to_owned())
}
