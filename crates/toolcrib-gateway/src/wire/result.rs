//! The result of a call, in the protocol's format.

use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock as Wire, ErrorCode, JsonObject, MetaObject},
};
use serde_json::{Value, json};
use toolcrib_core::{ContentBlock, ToolResult, fence};
use toolcrib_engine::__internal::is_data_note;
use toolcrib_mcp::__internal as mcp;

use super::message::is_of_protocol;

/// The key of the error class of a failed call.
const CODE: &str = "toolcrib/code";

/// The text for a call whose data does not fit.
const DATA_LEFT_OUT: &str = "The call was done, and need not be made again: only its structured \
    data is left out, because it is too large or nests too deeply, or no longer fits its schema \
    after redaction. Its text:";

/// The data that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    /// The client accepts no data.
    None,
    /// The data that the listed schema describes: clients validate it.
    Declared,
    /// An object.
    Object,
    /// The client accepts any data.
    Any,
}

/// A result of the pipe: the text that a model reads, fenced if it is untrusted, the blocks in their
/// order, and the data. An unknown kind of block is only in the text.
///
/// If the pipe replaced declared data by a note, the data does not have the schema, and clients
/// discard the whole result unless it is an error. It has no code then: every code says that the
/// call failed, and a client that retries failures would repeat its effect.
pub(crate) fn wire(result: ToolResult, data: Data, fences: bool) -> CallToolResult {
    let mut content = Vec::with_capacity(1 + result.blocks.len());
    let text = match &result.lead {
        Some(lead) if lead.is_empty() => None,
        None if result.value.is_empty() => None,
        Some(lead) if fences => Some(lead),
        None if fences => Some(&result.text),
        _ => Some(&result.value),
    };
    content.extend(text.map(|text| Wire::text(&**text)));
    let fences = fences && result.untrusted;
    content.extend(result.blocks.iter().filter_map(|each| block(each, &result.name, fences)));
    let meta = result.meta.map(|mut meta| {
        // Others of these keys are this gateway's, or about the server's connection.
        meta.retain(|key, _| !key.starts_with("toolcrib/") && !is_of_protocol(key));
        *meta
    });
    let mut meta = meta.unwrap_or_default();
    let mut structured = result.structured.filter(|structured| match data {
        Data::None => false,
        Data::Declared | Data::Any => true,
        Data::Object => structured.is_object(),
    });
    let is_note = structured.as_ref().is_some_and(is_data_note);
    let mut wire = match result.code {
        None if is_note && data == Data::Declared => {
            content.insert(0, Wire::text(DATA_LEFT_OUT));
            structured = None;
            CallToolResult::error(content)
        }
        None => CallToolResult::success(content),
        Some(code) => {
            meta.insert(CODE.to_owned(), json!(code));
            structured = structured.filter(|_| data != Data::Declared);
            CallToolResult::error(content)
        }
    };
    wire.structured_content = structured;
    wire.with_meta((!meta.is_empty()).then(|| MetaObject::from(JsonObject::from_iter(meta))))
}

/// A block, with its text fenced.
pub(crate) fn block(block: &ContentBlock, tool: &str, fences: bool) -> Option<Wire> {
    let fenced = |text: &str| fence(tool, text);
    match block {
        ContentBlock::Paragraph { text, .. } if fences => {
            let fields = block.fields().cloned().unwrap_or_default();
            mcp::block(&ContentBlock::paragraph(fenced(text)).with_fields(fields))
        }
        ContentBlock::Text { uri, media_type, text, .. } if fences => {
            let fields = block.fields().cloned().unwrap_or_default();
            let mut fenced = ContentBlock::text(&**uri, fenced(text)).with_fields(fields);
            if let Some(media_type) = media_type {
                fenced = fenced.media_type(&**media_type);
            }
            mcp::block(&fenced)
        }
        _ => mcp::block(block),
    }
}

/// The protocol error of a server, with its code and data.
pub(crate) fn protocol_error(result: &ToolResult) -> Option<ErrorData> {
    result.code?;
    let (code, data): (i32, Option<Value>) =
        result.meta.as_deref().and_then(mcp::protocol_error)?;
    Some(ErrorData::new(ErrorCode(code), result.value.to_string(), data))
}
