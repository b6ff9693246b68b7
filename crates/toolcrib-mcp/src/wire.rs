//! Parts of a result as the protocol writes them.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use rmcp::model::{ContentBlock as Wire, Resource, ResourceContents};
use toolcrib_core::ContentBlock;

/// A block, whole. A kind that is newer than this has no form in the protocol.
pub(crate) fn block(block: &ContentBlock) -> Option<Wire> {
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
