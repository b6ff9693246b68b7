//! The user's message of a prompt.

use agent_client_protocol::{
    Error, ErrorCode,
    v1::schema::{ContentBlock, EmbeddedResourceResource},
};
use toolcrib_core::{Attachment, Attachments};

/// The limit of a message, in bytes.
const MAX_MESSAGE: usize = 1024 * 1024;

/// The text of a prompt, and its attached files.
pub(super) fn message(blocks: Vec<ContentBlock>) -> Result<(String, Attachments), Error> {
    let invalid = |what: &str| Error::new(ErrorCode::INVALID_PARAMS, what);
    let mut parts = Vec::with_capacity(blocks.len());
    let mut attachments = Attachments::default();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => parts.push(text.text),
            ContentBlock::ResourceLink(link) => parts.push(format!("{}: {}", link.name, link.uri)),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(file) => {
                    let attachment = Attachment::new(&file.uri, file.text.into_bytes());
                    let added = attachment.and_then(|attachment| attachments.add(attachment));
                    added.map_err(|error| invalid(&error.to_string()))?;
                }
                _ => return Err(invalid("an attached file must be text")),
            },
            _ => return Err(invalid("a prompt is text, links and attached text files")),
        }
    }
    let message = parts.join("\n\n");
    if message.trim().is_empty() && attachments.is_empty() {
        return Err(invalid("the prompt is empty"));
    }
    if message.len() > MAX_MESSAGE {
        return Err(invalid(&format!("a prompt is limited to {MAX_MESSAGE} bytes")));
    }
    Ok((message, attachments))
}
