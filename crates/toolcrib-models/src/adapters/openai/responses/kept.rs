//! The kept content of a response, so that its items go back unchanged.
//!
//! A model's reasoning comes encrypted, as separate items among messages and calls. The vendor
//! knows an item by its id and looks for related ones, so either all of them go back unchanged or
//! none: only to the same model of the same server, and with the same calls. The content has this
//! form:
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
//! `reasoning` is the item itself, and so is `compaction`. Of a message and of a call only the fields are kept that the
//! conversation's message lacks; `bytes` is the length of its text in that item.

use serde_json::{Map, Value, json};
use toolcrib_core::VendorContent;

use super::super::{super::protocol::RequestInput, VENDOR};

/// One item of an answer, at its place.
pub(super) enum StoredItem<'a> {
    /// Reasoning or a compaction, unchanged.
    Reasoning(&'a Value),
    /// The next `bytes` bytes of the text.
    Message { id: Option<&'a str>, phase: Option<&'a str>, bytes: usize },
    /// The next call.
    Call { id: Option<&'a str>, is_search: bool },
}

impl<'a> StoredItem<'a> {
    /// Reads an item as [`keep`] has written it.
    fn of(item: &'a Value) -> Option<Self> {
        let text = |key: &str| item.get(key)?.as_str();
        Some(match text("type")? {
            "reasoning" | "compaction" => Self::Reasoning(item),
            "message" => Self::Message {
                id: text("id"),
                phase: text("phase"),
                bytes: usize::try_from(item.get("bytes")?.as_u64()?).ok()?,
            },
            "function_call" => Self::Call { id: text("id"), is_search: false },
            "tool_search_call" => Self::Call { id: text("id"), is_search: true },
            _ => return None,
        })
    }

    fn to_json(&self) -> Value {
        let fields = match self {
            Self::Reasoning(item) => return (*item).clone(),
            Self::Message { id, phase, bytes } => {
                json!({ "type": "message", "id": id, "phase": phase, "bytes": bytes })
            }
            Self::Call { id, is_search: false } => json!({ "type": "function_call", "id": id }),
            Self::Call { id, is_search: true } => json!({ "type": "tool_search_call", "id": id }),
        };
        match fields {
            Value::Object(fields) => without_nulls(fields),
            other => other,
        }
    }

    /// Whether it has fields that the conversation's message lacks.
    fn is_worth_keeping(&self) -> bool {
        match self {
            Self::Reasoning(_) => true,
            Self::Message { phase, .. } => phase.is_some(),
            Self::Call { .. } => false,
        }
    }
}

/// An item to send back: the vendor refuses some null fields that it sends itself.
pub(super) fn without_nulls(item: Map<String, Value>) -> Value {
    Value::Object(item.into_iter().filter(|(_, value)| !value.is_null()).collect())
}

/// The content to keep of a response with these items, if any.
pub(super) fn keep(server: &str, model: &str, items: &[StoredItem<'_>]) -> Option<VendorContent> {
    items.iter().any(StoredItem::is_worth_keeping).then(|| {
        let items: Value = items.iter().map(StoredItem::to_json).collect();
        VendorContent {
            vendor: VENDOR.into(),
            content: json!({ "server": server, "model": model, "items": items }),
        }
    })
}

/// The items of a message, if they may go back to their origin with this text and this number of
/// calls.
pub(super) fn kept<'a>(
    vendor: &'a VendorContent,
    input: &RequestInput<'_>,
    text: &str,
    calls: usize,
) -> Option<Vec<StoredItem<'a>>> {
    let VendorContent { vendor, content } = vendor;
    let is_from = |key: &str, here: &str| content.get(key).is_some_and(|from| from == here);
    if &**vendor != VENDOR || !is_from("server", input.server) || !is_from("model", input.model) {
        return None;
    }
    let items = content.get("items")?.as_array()?;
    let items: Vec<_> = items.iter().map(StoredItem::of).collect::<Option<_>>()?;
    let called = items.iter().filter(|item| matches!(item, StoredItem::Call { .. })).count();
    let pieces = items.iter().filter_map(|item| match item {
        StoredItem::Message { bytes, .. } => Some(*bytes),
        _ => None,
    });
    let is_whole = match pieces.clone().count() {
        0 => text.is_empty(),
        1 => true,
        _ => pieces.fold(0, usize::saturating_add) == text.len(),
    };
    (called == calls && is_whole).then_some(items)
}
