//! Sanitizing of a model's response for the conversation: without secrets, and valid for vendors.

use std::{borrow::Cow, sync::Arc};

use serde_json::Map;
use toolcrib_core::{
    __internal::PlainJson, Arguments, Menu, Message, ToolCall, ToolName, ToolResult, VendorContent,
};
use toolcrib_engine::Redactor;

/// Replacement in the conversation for a name that vendors reject.
const UNUSABLE_NAME: &str = "unusable_name";

/// Removes secrets from a call's id and from a name that is not a tool's: both appear in events. An
/// id that contained one becomes empty, so that it gets another.
pub(super) fn without_secrets(call: &mut ToolCall, menu: &Menu, redactor: &Redactor) {
    if matches!(redactor.text(&call.id), Cow::Owned(_)) {
        call.id = "".into();
    }
    if menu.get(&call.name).is_none()
        && let Cow::Owned(redacted) = redactor.text(&call.name)
    {
        call.name = redacted.into();
    }
}

/// A call as it appears in the conversation, with these arguments.
pub(super) fn kept(call: &ToolCall, arguments: Arguments, redactor: &Redactor) -> ToolCall {
    ToolCall {
        id: Arc::clone(&call.id),
        name: usable(&call.name),
        arguments: match arguments {
            Arguments::Json(value) => Arguments::Json(redactor.json(value)),
            Arguments::Text(text) => written(text, redactor),
        },
    }
}

/// A name as it appears in the conversation. The call itself keeps its name: a name that was not
/// offered must not match another.
pub(super) fn usable(name: &Arc<str>) -> Arc<str> {
    match ToolName::new(Arc::clone(name)) {
        Ok(_) => Arc::clone(name),
        Err(_) => UNUSABLE_NAME.into(),
    }
}

/// The message with a result, as it appears in the conversation.
pub(super) fn message_of(result: &ToolResult) -> Message {
    match result.message() {
        Message::Tool { call_id, name, text, blocks, is_error, untrusted } => {
            Message::Tool { call_id, name: usable(&name), text, blocks, is_error, untrusted }
        }
        other => other,
    }
}

/// Vendor content is kept as long as the conversation, so it must not contain secrets; a vendor
/// rejects signed content that was changed.
pub(super) fn vendor_content(
    vendor: Arc<VendorContent>,
    redactor: &Redactor,
) -> Arc<VendorContent> {
    let content = redactor.json(vendor.content.clone());
    if content == vendor.content {
        return vendor;
    }
    Arc::new(VendorContent { vendor: Arc::clone(&vendor.vendor), content })
}

/// A message for the store, or from it, without the secrets that are known now. Equal to the
/// message if it contains none.
pub(super) fn without_new_secrets(message: &Message, redactor: &Redactor) -> Message {
    let text = |text: &Arc<str>| match redactor.text(text) {
        Cow::Borrowed(_) => Arc::clone(text),
        Cow::Owned(redacted) => redacted.into(),
    };
    let mut message = message.clone();
    match &mut message {
        Message::User { text: said, .. } | Message::Tool { text: said, .. } => *said = text(said),
        Message::Assistant { text: said, calls, vendor } => {
            *said = text(said);
            calls.iter_mut().for_each(|call| *call = kept(call, call.arguments.clone(), redactor));
            *vendor = vendor.take().map(|vendor| vendor_content(vendor, redactor));
        }
        _ => {}
    }
    message
}

/// Arguments as written by a model, byte for byte unless they contain a secret. With a backslash
/// they may contain one that is only visible after parsing.
fn written(text: String, redactor: &Redactor) -> Arguments {
    let redacted = match redactor.text(&text) {
        Cow::Borrowed(_) if !text.contains('\\') => None,
        Cow::Borrowed(_) => Some(text.clone()),
        Cow::Owned(redacted) => Some(redacted),
    };
    let Some(redacted) = redacted else { return Arguments::Text(text) };
    match PlainJson::read(text.as_bytes()) {
        Ok(value) => {
            let clean = redactor.json(value.clone());
            if clean == value { Arguments::Text(text) } else { Arguments::Json(clean) }
        }
        // The pipe rejects text that is not one JSON value, and secrets hidden by its escapes
        // cannot be found.
        Err(error) if error.is_data() => Arguments::Json(Map::new().into()),
        Err(_) => Arguments::Text(redacted),
    }
}
