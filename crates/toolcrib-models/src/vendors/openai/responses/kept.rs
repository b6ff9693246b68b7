//! What is kept of an answer, so that its items go back as they were.
//!
//! What a model thought comes encrypted, as items of its own among messages and calls. The vendor
//! knows an item by its id and looks for the ones that belong to it, so they go back all as they came
//! or none of them: to the same model of the same server only, and beside the same calls. The content is of this form:
//!
//! ```json
//! {
//!   "server": "https://api.openai.com/v1",
//!   "model": "gpt-6.2-sol",
//!   "items": [
//!     { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "…" },
//!     { "type": "message", "id": "msg_1", "phase": "commentary", "bytes": 12 },
//!     { "type": "function_call", "id": "fc_1" }
//!   ]
//! }
//! ```
//!
//! `reasoning` is the item itself. Of a message and of a call only that is kept which the message of
//! the conversation does not have; `bytes` is how much of its text is of that item.

use serde_json::{Map, Value, json};
use toolcrib_core::VendorContent;

use super::super::{super::protocol::Asked, VENDOR};

/// One item of an answer, at its place.
pub(super) enum Kept<'a> {
    /// What was thought, as it came.
    Reasoning(&'a Value),
    /// The next so many bytes of the text.
    Message { id: Option<&'a str>, phase: Option<&'a str>, bytes: usize },
    /// The next call.
    Call { id: Option<&'a str> },
}

impl<'a> Kept<'a> {
    /// Reads an item as [`keep`] has written it.
    fn of(item: &'a Value) -> Option<Self> {
        let text = |key: &str| item.get(key)?.as_str();
        Some(match text("type")? {
            "reasoning" => Self::Reasoning(item),
            "message" => Self::Message {
                id: text("id"),
                phase: text("phase"),
                bytes: usize::try_from(item.get("bytes")?.as_u64()?).ok()?,
            },
            "function_call" => Self::Call { id: text("id") },
            _ => return None,
        })
    }

    fn to_json(&self) -> Value {
        let fields = match self {
            Self::Reasoning(item) => return (*item).clone(),
            Self::Message { id, phase, bytes } => {
                json!({ "type": "message", "id": id, "phase": phase, "bytes": bytes })
            }
            Self::Call { id } => json!({ "type": "function_call", "id": id }),
        };
        match fields {
            Value::Object(fields) => without_nulls(fields),
            other => other,
        }
    }

    /// Whether it says something that the message of the conversation does not.
    fn is_worth_keeping(&self) -> bool {
        match self {
            Self::Reasoning(_) => true,
            Self::Message { phase, .. } => phase.is_some(),
            Self::Call { .. } => false,
        }
    }
}

/// An item that can go back: the vendor refuses some fields that it sends as null itself.
pub(super) fn without_nulls(item: Map<String, Value>) -> Value {
    Value::Object(item.into_iter().filter(|(_, value)| !value.is_null()).collect())
}

/// What is to be kept of an answer of these items, if there is anything.
pub(super) fn keep(server: &str, model: &str, items: &[Kept<'_>]) -> Option<VendorContent> {
    items.iter().any(Kept::is_worth_keeping).then(|| {
        let items: Value = items.iter().map(Kept::to_json).collect();
        VendorContent {
            vendor: VENDOR.into(),
            content: json!({ "server": server, "model": model, "items": items }),
        }
    })
}

/// The items of a message, if they may go back to where they came from, with this text and so many
/// calls.
pub(super) fn kept<'a>(
    vendor: &'a VendorContent,
    asked: &Asked<'_>,
    text: &str,
    calls: usize,
) -> Option<Vec<Kept<'a>>> {
    let VendorContent { vendor, content } = vendor;
    let is_from = |key: &str, here: &str| content.get(key).is_some_and(|from| from == here);
    if &**vendor != VENDOR || !is_from("server", asked.server) || !is_from("model", asked.model) {
        return None;
    }
    let items = content.get("items")?.as_array()?;
    let items: Vec<_> = items.iter().map(Kept::of).collect::<Option<_>>()?;
    let called = items.iter().filter(|item| matches!(item, Kept::Call { .. })).count();
    let pieces = items.iter().filter_map(|item| match item {
        Kept::Message { bytes, .. } => Some(*bytes),
        _ => None,
    });
    let is_whole = match pieces.clone().count() {
        0 => text.is_empty(),
        1 => true,
        _ => pieces.fold(0, usize::saturating_add) == text.len(),
    };
    (called == calls && is_whole).then_some(items)
}
