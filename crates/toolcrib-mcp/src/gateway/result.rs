//! What a call came to, as the protocol writes it.

use rmcp::model::{CallToolResult, ContentBlock as Wire, JsonObject, MetaObject};
use serde_json::json;
use toolcrib_core::ToolResult;

use crate::wire::block;

/// Under which key a failed call says the class of its failure.
const CODE: &str = "toolcrib/code";

/// A result, as the pipe made it: the text that a model reads, fenced where somebody else wrote it,
/// then the blocks, and the data where the tool declares its schema. A kind of block that is newer
/// than this stands in the text alone.
pub(super) fn wire(result: ToolResult, declares_output: bool) -> CallToolResult {
    let mut content = Vec::with_capacity(1 + result.blocks.len());
    content.push(Wire::text(&*result.text));
    content.extend(result.blocks.iter().filter_map(block));
    let Some(code) = result.code else {
        let mut wire = CallToolResult::success(content);
        wire.structured_content = result.structured.filter(|_| declares_output);
        return wire;
    };
    let meta = JsonObject::from_iter([(CODE.to_owned(), json!(code))]);
    CallToolResult::error(content).with_meta(Some(MetaObject::from(meta)))
}
