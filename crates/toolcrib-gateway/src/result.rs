//! The result of a call, in the protocol's format.

use rmcp::model::{CallToolResult, ContentBlock as Wire, JsonObject, MetaObject};
use serde_json::json;
use toolcrib_core::ToolResult;
use toolcrib_engine::__internal::is_data_note;

use toolcrib_mcp::__internal::block;

/// The key of the error class of a failed call.
const CODE: &str = "toolcrib/code";

/// The text for a call whose data does not fit.
const DATA_LEFT_OUT: &str = "The call was done, and need not be made again: only its structured \
    data is left out, because it is too large or nests too deeply, or no longer fits its schema \
    after redaction. Its text:";

/// A result of the pipe: the text that a model reads, fenced if it is untrusted, then the blocks,
/// and the data if the tool declares its schema. An unknown kind of block is only in the text.
///
/// If the pipe replaced data by a note, the data does not have the schema, and clients discard the
/// whole result unless it is an error. It has no code then: every code says that the call failed,
/// and a client that retries failures would repeat its effect.
pub(super) fn wire(result: ToolResult, declares_output: bool) -> CallToolResult {
    let mut content = Vec::with_capacity(1 + result.blocks.len());
    content.push(Wire::text(&*result.text));
    content.extend(result.blocks.iter().filter_map(block));
    let Some(code) = result.code else {
        if declares_output && result.structured.as_ref().is_some_and(is_data_note) {
            content.insert(0, Wire::text(DATA_LEFT_OUT));
            return CallToolResult::error(content);
        }
        let mut wire = CallToolResult::success(content);
        wire.structured_content = result.structured.filter(|_| declares_output);
        return wire;
    };
    let meta = JsonObject::from_iter([(CODE.to_owned(), json!(code))]);
    CallToolResult::error(content).with_meta(Some(MetaObject::from(meta)))
}
