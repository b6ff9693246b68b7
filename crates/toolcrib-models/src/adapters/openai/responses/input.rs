//! The conversation, as items.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use serde_json::{Value, to_value};
use toolcrib_core::{Message, SEARCH_TOOLS, ToolCall, VendorContent};

use super::{
    super::{
        super::{arguments::ObjectArguments, conversation::Conversation, protocol::RequestInput},
        schema::loadable,
        sent::{arguments, failed, id_of_at_most, name},
    },
    kept::{StoredItem, kept},
    media::{Part as InputPart, part},
};

/// Maximum length of a call's id.
const MAX_ID: usize = 64;

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    /// A message without the fields that only its response had.
    Plain {
        role: &'static str,
        content: &'a str,
    },
    Notice {
        role: &'static str,
        content: Arc<str>,
    },
    WithImages {
        role: &'static str,
        content: Vec<InputPart<'a>>,
    },
    /// Reasoning, unchanged.
    Thought(&'a Value),
    Other(TypedItem<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TypedItem<'a> {
    Message {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        role: &'static str,
        status: &'static str,
        content: [OutputText<'a>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
    ToolSearchCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: Cow<'a, str>,
        execution: &'static str,
        arguments: ObjectArguments<'a>,
        status: &'static str,
    },
    /// The vendor loads the definitions that it contains.
    ToolSearchOutput {
        call_id: Cow<'a, str>,
        execution: &'static str,
        status: &'static str,
        tools: Vec<Value>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "output_text")]
struct OutputText<'a> {
    text: &'a str,
    annotations: [&'static str; 0],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<InputPart<'a>>),
}

const COMPLETED: &str = "completed";
const CLIENT: &str = "client";

/// Writes the items that the conversation lacks. Those of a message depend only on it, so earlier ones
/// keep their bytes.
pub(super) fn write(
    input: &RequestInput<'_>,
    conversation: &mut Conversation,
) -> serde_json::Result<()> {
    let new = input.request.messages.iter().enumerate().skip(conversation.written());
    let list = &mut conversation.list;
    for (at, message) in new {
        let found = input.offer.found_in(message);
        let loads = input.offer.loads().then_some("loads");
        let names = found.iter().map(|tool| tool.name().as_str());
        let words: Vec<&str> =
            loads.into_iter().chain(names).chain(input.images.note(at)).collect();
        list.extend(&input.first.of_message(message, &words, || items(input, at, message)))?;
    }
    Ok(())
}

fn items<'a>(input: &RequestInput<'_>, at: usize, message: &'a Message) -> Vec<Item<'a>> {
    let images = input.images;
    let mut items = Vec::with_capacity(1);
    match message {
        Message::User { text, blocks } if !blocks.is_empty() => {
            let text = InputPart::Text { text: images.noted(at, text) };
            let parts = images.sent(at, blocks).filter_map(part);
            let content = [text].into_iter().chain(parts).collect();
            items.push(Item::WithImages { role: "user", content });
        }
        Message::User { text, .. } => items.push(Item::Plain { role: "user", content: text }),
        Message::Assistant { text, calls, vendor } => {
            said(input, text, calls, vendor.as_deref(), &mut items);
        }
        Message::Tool { call_id, name, text, is_error, .. } if is_search(input, name) => {
            items.push(Item::found(input, call_id, message));
            // The item has no field for it.
            if *is_error && let Message::User { text, .. } = Message::notice(&failed(text)) {
                items.push(Item::Notice { role: "user", content: text });
            }
        }
        Message::Tool { call_id, text, blocks, is_error, .. } => {
            let blocks = if images.in_results { &**blocks } else { &[] };
            let shown = images.sent(at, blocks).filter_map(part).collect();
            items.push(Item::Other(TypedItem::FunctionCallOutput {
                call_id: id_of_at_most(call_id, MAX_ID),
                output: output(images.noted(at, text), shown, *is_error),
            }));
        }
        _ => {}
    }
    items
}

/// A message of the model: its kept items, in order, or its text and its calls.
fn said<'a>(
    input: &RequestInput<'_>,
    text: &'a str,
    calls: &'a [ToolCall],
    vendor: Option<&'a VendorContent>,
    items: &mut Vec<Item<'a>>,
) {
    let Some(kept) = vendor.and_then(|vendor| kept(vendor, input, text, calls.len())) else {
        // An empty text adds no item.
        if !text.is_empty() {
            items.push(Item::Plain { role: "assistant", content: text });
        }
        items.extend(calls.iter().map(|call| Item::call(input, call, None, None)));
        return;
    };
    let (mut text, mut calls) = (text, calls.iter());
    let last = kept.iter().rposition(|item| matches!(item, StoredItem::Message { .. }));
    for (position, item) in kept.into_iter().enumerate() {
        match item {
            StoredItem::Reasoning(item) => items.push(Item::Thought(item)),
            StoredItem::Message { id, phase, bytes } => {
                // Text that was redacted since may have another length.
                let end = if last == Some(position) { text.len() } else { bytes };
                let (piece, rest) = text.split_at_checked(end).unwrap_or((text, ""));
                text = rest;
                if !piece.is_empty() {
                    items.push(Item::message(piece, id, phase));
                }
            }
            StoredItem::Call { id, is_search } => {
                items.extend(calls.next().map(|call| {
                    // The id is of an item of that type.
                    let id = id.filter(|_| is_search == self::is_search(input, &call.name));
                    Item::call(input, call, id, Some(COMPLETED))
                }));
            }
        }
    }
    // Reasoning must be followed by its result.
    while items.pop_if(|last| matches!(last, Item::Thought(_))).is_some() {}
}

/// Whether a call of this name is an item of the vendor's tool search.
fn is_search(input: &RequestInput<'_>, name: &str) -> bool {
    input.offer.loads() && *name == *SEARCH_TOOLS
}

fn output<'a>(text: Cow<'a, str>, shown: Vec<InputPart<'a>>, is_error: bool) -> Output<'a> {
    let text = if is_error { failed(&text).into_owned().into() } else { text };
    if shown.is_empty() {
        return Output::Text(text);
    }
    let text = (!text.is_empty()).then_some(InputPart::Text { text });
    Output::Parts(text.into_iter().chain(shown).collect())
}

impl<'a> Item<'a> {
    /// The result of a search: the definitions of the tools that it found and that may be loaded.
    fn found(input: &RequestInput<'_>, call_id: &'a str, message: &Message) -> Self {
        let found = input.offer.found_in(message);
        Self::Other(TypedItem::ToolSearchOutput {
            call_id: id_of_at_most(call_id, MAX_ID),
            execution: CLIENT,
            status: COMPLETED,
            tools: found.into_iter().filter_map(|tool| to_value(loadable(tool)).ok()).collect(),
        })
    }

    fn message(text: &'a str, id: Option<&'a str>, phase: Option<&'a str>) -> Self {
        let content = [OutputText { text, annotations: [] }];
        Self::Other(TypedItem::Message { id, role: "assistant", status: COMPLETED, content, phase })
    }

    fn call(
        input: &RequestInput<'_>,
        call: &'a ToolCall,
        id: Option<&'a str>,
        status: Option<&'static str>,
    ) -> Self {
        if is_search(input, &call.name) {
            return Self::Other(TypedItem::ToolSearchCall {
                id,
                call_id: id_of_at_most(&call.id, MAX_ID),
                execution: CLIENT,
                arguments: ObjectArguments::from(&call.arguments),
                status: COMPLETED,
            });
        }
        Self::Other(TypedItem::FunctionCall {
            id,
            call_id: id_of_at_most(&call.id, MAX_ID),
            name: name(&call.name),
            arguments: arguments(&call.arguments),
            status,
        })
    }
}
