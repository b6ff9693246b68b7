//! Blocks of content in servers' results, in our own types. Fields of the protocol that models do not
//! need are kept for clients of a gateway.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use toolcrib_core::ContentBlock;

use super::{result::malformed, types::RequestError};

/// The field under which the fields of an embedded resource are kept.
pub(crate) const RESOURCE: &str = "resource";

/// The text of a result, and the blocks after it, in order. One text that comes first and has no
/// fields is the text; any other text is a block in its place.
pub(super) fn content(parts: Vec<Value>) -> Result<(String, Vec<ContentBlock>), RequestError> {
    let is_text = |part: &Value| part.get("type").and_then(Value::as_str) == Some("text");
    let is_plain = |part: &Value| part.as_object().is_some_and(|part| part.len() == 2);
    let texts = parts.iter().filter(|part| is_text(part)).count();
    let leads = texts == 1 && parts.first().is_some_and(|part| is_text(part) && is_plain(part));
    let mut lead = String::new();
    let mut blocks = Vec::with_capacity(parts.len() - usize::from(leads));
    for part in parts {
        match block(part)? {
            ContentBlock::Paragraph { text, .. }
                if leads && blocks.is_empty() && lead.is_empty() =>
            {
                text.as_ref().clone_into(&mut lead);
            }
            block => blocks.push(block),
        }
    }
    Ok((lead, blocks))
}

/// One block.
pub(crate) fn block(part: Value) -> Result<ContentBlock, RequestError> {
    let Value::Object(mut part) = part else {
        return Err(malformed("a part of its content is not an object"));
    };
    let kind = text(&mut part, "type").unwrap_or_default();
    let block = match kind.as_str() {
        "text" => ContentBlock::paragraph(required(&mut part, "text")?),
        "image" => ContentBlock::image(required(&mut part, "mimeType")?, data(&mut part, "data")?),
        "audio" => ContentBlock::audio(required(&mut part, "mimeType")?, data(&mut part, "data")?),
        "resource_link" => {
            let uri = required(&mut part, "uri")?;
            let name = text(&mut part, "name").unwrap_or_else(|| uri.clone());
            with_media_type(ContentBlock::link(uri, name), &mut part)
        }
        "resource" => {
            let Some(Value::Object(inner)) = part.remove("resource") else {
                return Err(malformed("an embedded resource is not an object"));
            };
            let block = resource(inner)?;
            part.extend(block.fields().cloned().unwrap_or_default());
            block
        }
        other => {
            let kind: String = other.chars().take(40).collect();
            let line = format!("[content of type `{kind}`, which is not shown]");
            return Ok(ContentBlock::paragraph(line));
        }
    };
    part.retain(|_, value| !value.is_null());
    Ok(block.with_fields(part))
}

/// The contents of a resource. Its further fields are in one field.
pub(crate) fn resource(mut inner: Map<String, Value>) -> Result<ContentBlock, RequestError> {
    let uri = required(&mut inner, "uri")?;
    let embedded = match text(&mut inner, "text") {
        Some(text) => ContentBlock::text(uri, text),
        None => ContentBlock::binary(uri, data(&mut inner, "blob")?),
    };
    let block = with_media_type(embedded, &mut inner);
    Ok(match inner.is_empty() {
        true => block,
        false => block.with_fields(Map::from_iter([(RESOURCE.to_owned(), inner.into())])),
    })
}

fn with_media_type(block: ContentBlock, part: &mut Map<String, Value>) -> ContentBlock {
    match text(part, "mimeType") {
        Some(media_type) => block.media_type(media_type),
        None => block,
    }
}

fn data(part: &mut Map<String, Value>, name: &str) -> Result<Vec<u8>, RequestError> {
    let encoded = required(part, name)?;
    STANDARD.decode(encoded.trim_ascii()).map_err(|error| {
        malformed(&format!("a `{name}` of its content is not valid base64: {error}"))
    })
}

fn required(part: &mut Map<String, Value>, name: &str) -> Result<String, RequestError> {
    text(part, name).ok_or_else(|| malformed(&format!("a part of its content has no `{name}`")))
}

pub(super) fn text(of: &mut Map<String, Value>, name: &str) -> Option<String> {
    match of.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}
