//! Tools and their results, as the protocol writes them.

use std::sync::Arc;

use rmcp::model::{
    CallToolResult, ContentBlock as Wire, JsonObject, Tool as WireTool, ToolAnnotations,
};
use serde_json::Value;
use toolcrib_core::{Tool, ToolOutput};

use crate::wire;

pub(super) fn tool(tool: &Tool) -> WireTool {
    let object =
        |schema: &Value| Arc::<JsonObject>::new(schema.as_object().cloned().unwrap_or_default());
    let said = tool.annotations();
    let mut annotations = ToolAnnotations::default();
    annotations.read_only_hint = Some(said.read_only);
    annotations.destructive_hint = Some(said.destructive);
    annotations.idempotent_hint = Some(said.idempotent);
    let mut described = WireTool::new(
        tool.name().to_string(),
        tool.description().to_owned(),
        object(tool.input_schema()),
    );
    described.title = tool.title().map(str::to_owned);
    described.output_schema = tool.output_schema().map(object);
    described.annotations = Some(annotations);
    described
}

pub(super) fn output(output: ToolOutput) -> CallToolResult {
    let mut content = vec![Wire::text(output.value)];
    content.extend(output.blocks.iter().filter_map(wire::block));
    let mut result = CallToolResult::success(content);
    result.structured_content = output.structured;
    result
}
