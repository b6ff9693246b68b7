//! Tools and parts of results in the protocol's format, for servers.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use rmcp::model::{
    ContentBlock as Wire, JsonObject, Resource, ResourceContents, Tool as WireTool, ToolAnnotations,
};
use toolcrib_core::{ContentBlock, Tool};

/// A tool, with the output schema to validate its results against. Its annotations become hints.
pub fn tool(tool: &Tool, output_schema: Option<&JsonObject>) -> WireTool {
    let mut wire = WireTool::new_with_raw(
        tool.name().to_string(),
        Some(tool.description().to_owned().into()),
        // A schema of arguments is an object in every definition.
        tool.input_schema().as_object().cloned().unwrap_or_default(),
    );
    let says = tool.annotations();
    let hints = ToolAnnotations::new()
        .read_only(says.read_only)
        .destructive(says.destructive)
        .idempotent(says.idempotent);
    wire.annotations = Some(hints);
    wire.title = tool.title().map(str::to_owned);
    wire.output_schema = output_schema.cloned().map(Arc::new);
    wire
}

/// A complete block. An unknown kind has no form in the protocol.
pub fn block(block: &ContentBlock) -> Option<Wire> {
    Some(match block {
        ContentBlock::Image { media_type, data, .. } => {
            Wire::image(BASE64.encode(data), &**media_type)
        }
        ContentBlock::Audio { media_type, data, .. } => {
            Wire::audio(BASE64.encode(data), &**media_type)
        }
        ContentBlock::Text { uri, media_type, text, .. } => {
            Wire::resource(ResourceContents::TextResourceContents {
                uri: uri.to_string(),
                mime_type: media_type.as_deref().map(str::to_owned),
                text: text.to_string(),
                meta: None,
            })
        }
        ContentBlock::Binary { uri, media_type, data, .. } => {
            Wire::resource(ResourceContents::BlobResourceContents {
                uri: uri.to_string(),
                mime_type: media_type.as_deref().map(str::to_owned),
                blob: BASE64.encode(data),
                meta: None,
            })
        }
        ContentBlock::Link { uri, name, media_type, .. } => {
            let mut link = Resource::new(&**uri, &**name);
            link.mime_type = media_type.as_deref().map(str::to_owned);
            Wire::resource_link(link)
        }
        _ => return None,
    })
}
