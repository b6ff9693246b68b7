//! What a call came to, as the protocol writes it.

use rmcp::model::{CallToolResult, ContentBlock as Wire, JsonObject, MetaObject};
use serde_json::json;
use toolcrib_core::ToolResult;
use toolcrib_engine::is_data_note;

use crate::wire::block;

/// Under which key a failed call says the class of its failure.
const CODE: &str = "toolcrib/code";

/// What a client is told of a call whose data does not fit.
const DATA_LEFT_OUT: &str = "The call was done, and need not be made again: only its structured data \
    is left out, because it is larger or nests deeper than what is given at once, or no longer fits \
    its schema once secrets are taken out. Its text:";

/// A result, as the pipe made it: the text that a model reads, fenced where somebody else wrote it,
/// then the blocks, and the data where the tool declares its schema. A kind of block that is newer
/// than this stands in the text alone.
///
/// Where the pipe put a note in the place of data, there is no data that has the schema, and clients
/// throw the whole result away unless it is an error. It has no code then: every code says that the
/// call failed, and whoever repeats what failed would repeat what it did.
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
