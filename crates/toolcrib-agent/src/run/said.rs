//! What a model said, as it may be kept: without secrets, and such as vendors take back.

use std::{borrow::Cow, sync::Arc};

use serde_json::Map;
use toolcrib_core::{Arguments, Menu, PlainJson, ToolCall, ToolName, VendorContent};
use toolcrib_engine::Redactor;

/// What stands in the history for a name that no vendor takes back.
const UNUSABLE_NAME: &str = "unusable_name";

/// Takes secrets out of a call's id and out of a name that is none of a tool's: both stand in events.
/// An id that held one is empty then, so that it gets another.
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

/// A call as it stands in the history.
pub(super) fn kept(call: &ToolCall, redactor: &Redactor) -> ToolCall {
    ToolCall {
        id: Arc::clone(&call.id),
        name: usable(&call.name),
        arguments: match &call.arguments {
            Arguments::Json(value) => Arguments::Json(redactor.json(value.clone())),
            Arguments::Text(text) => written(text, redactor),
        },
    }
}

/// A name as it may stand in the history. The call itself keeps its own: what was not offered
/// must not be found under another name.
pub(super) fn usable(name: &Arc<str>) -> Arc<str> {
    match ToolName::new(Arc::clone(name)) {
        Ok(_) => Arc::clone(name),
        Err(_) => UNUSABLE_NAME.into(),
    }
}

/// What goes back to the vendor is kept as long as the history is, so it holds no secret either; a
/// vendor that signed one refuses it then.
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

/// Arguments as a model wrote them, byte for byte unless there is a secret in them. With a backslash
/// they may hold one that is not seen until they are parsed.
fn written(text: &str, redactor: &Redactor) -> Arguments {
    let redacted = redactor.text(text);
    if matches!(redacted, Cow::Borrowed(_)) && !text.contains('\\') {
        return Arguments::Text(text.to_owned());
    }
    match serde_json::from_str(text) {
        Ok(PlainJson(value)) => {
            let clean = redactor.json(value.clone());
            if clean == value { Arguments::Text(text.to_owned()) } else { Arguments::Json(clean) }
        }
        // The pipe refuses what is not one value, and what its escapes hide cannot be said.
        Err(error) if error.is_data() => Arguments::Json(Map::new().into()),
        Err(_) => Arguments::Text(redacted.into_owned()),
    }
}
