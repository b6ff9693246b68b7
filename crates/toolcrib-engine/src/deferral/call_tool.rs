use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::{CALL_TOOL, InvalidToolError, Tool, ToolContext, ToolError, ToolOutput, err};

use super::{closed, framework_tool};

static TOOL: LazyLock<Result<Tool, InvalidToolError>> = LazyLock::new(|| {
    framework_tool(CALL_TOOL)
        .description(
            "Calls a tool that `search_tools` has found. `arguments` must fit the tool's \
             `input_schema`.",
        )
        .input_schema(closed(
            &json!({
                "tool": { "type": "string", "description": "The name of the tool." },
                "arguments": { "type": "object", "description": "The arguments of the tool." },
            }),
            &["tool", "arguments"],
        ))
        .inline()
        .handler(refuse)
});

/// The tool. The pipe replaces a call of it by a call of its target before any other stage, so the
/// body only sees calls that may not be replaced.
pub(crate) fn call_tool() -> Option<&'static Tool> {
    TOOL.as_ref().ok()
}

#[derive(Deserialize)]
struct Args {
    tool: Box<str>,
    #[serde(rename = "arguments")]
    _arguments: Value,
}

async fn refuse(args: Args, _cx: ToolContext) -> Result<ToolOutput, ToolError> {
    Err(match &*args.tool {
        CALL_TOOL => err("`call_tool` cannot call itself; name another tool"),
        _ => err("calls through `call_tool` are not permitted here; call the tool directly"),
    })
}
