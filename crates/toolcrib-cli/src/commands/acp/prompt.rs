//! The user's message of a prompt.

use agent_client_protocol::{
    Error, ErrorCode,
    v1::schema::{ContentBlock, EmbeddedResourceResource},
};
use toolcrib_core::fence;

/// The limit of a message, in bytes.
const MAX_MESSAGE: usize = 1024 * 1024;

/// The name of attached files in their fence.
const ATTACHMENT: &str = "attachment";

/// The blocks as one message. The editor attaches files whose authors are not known, so their text
/// is fenced.
pub(super) fn message(blocks: Vec<ContentBlock>) -> Result<String, Error> {
    let invalid = |what: &str| Error::new(ErrorCode::INVALID_PARAMS, what);
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        parts.push(match block {
            ContentBlock::Text(text) => text.text,
            ContentBlock::ResourceLink(link) => format!("{}: {}", link.name, link.uri),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(file) => {
                    format!("{}\n{}", file.uri, fence(ATTACHMENT, &file.text))
                }
                _ => return Err(invalid("an attached file must be text")),
            },
            _ => return Err(invalid("a prompt is text, links and attached text files")),
        });
    }
    let message = parts.join("\n\n");
    if message.trim().is_empty() {
        return Err(invalid("the prompt is empty"));
    }
    if message.len() > MAX_MESSAGE {
        return Err(invalid(&format!("a prompt is limited to {MAX_MESSAGE} bytes")));
    }
    Ok(message)
}
