//! The conversation, as messages of blocks.

use std::{borrow::Cow, cell::LazyCell};

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use toolcrib_core::{Arguments, ContentBlock, Digest, Message, Tool, ToolCall};

use super::{
    media::{self, Media},
    thinking::{self, StoredBlock},
};
use crate::adapters::{
    alternating::alternating,
    arguments::ObjectArguments,
    conversation::{Conversation, MessageList},
    images::SentImages,
    prompt_prefix::PromptPrefix,
    protocol::RequestInput,
};

/// Replaces a text without a visible character, which the vendor refuses.
const NO_TEXT: &str = "(no text)";
/// Replaces the missing message of a failed call: the vendor requires one.
const NO_REASON: &str = "(the call failed and said nothing)";

/// The beginnings and the end of a message.
const USER: &str = r#"{"role":"user","content":["#;
const ASSISTANT: &str = r#"{"role":"assistant","content":["#;
const END: &str = "]}";

/// A part of a message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<ResultPart<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Media(Media<'a>),
}

/// A part of a result.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResultPart<'a> {
    Text(Text<'a>),
    Media(Media<'a>),
    Reference(Reference<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "tool_reference")]
pub(super) struct Reference<'a> {
    tool_name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
pub(super) struct Text<'a> {
    text: &'a str,
}

/// The arguments of a call; the vendor accepts only an object.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Input<'a> {
    Data(&'a Map<String, Value>),
    Json(&'a RawValue),
    Nothing {},
    /// Arguments that are not an object, or that some parsers reject, under the vendor's
    /// recommended name.
    Other {
        #[serde(rename = "INVALID_JSON")]
        text: Cow<'a, str>,
    },
}

/// Writes the messages that the conversation lacks. Thinking goes back only if it was made under the
/// parts that are sent now.
///
/// The last two messages of the user end with a breakpoint: the next request finds this request's cache
/// entry at the last one, and this request finds its predecessor's at the one before.
pub(super) fn write(
    input: &RequestInput<'_>,
    conversation: &mut Conversation,
) -> serde_json::Result<()> {
    let under = LazyCell::new(|| PromptPrefix::of(input.request, input.offer));
    let made_under = LazyCell::new(|| thinking::digest(&under));
    let new = input.request.messages.iter().enumerate().skip(conversation.written());
    let mut is_bound = false;
    for (at, message) in new {
        for (at, message) in alternating(&mut conversation.list, at, message) {
            is_bound |= has_thinking(message);
            add(input, &mut conversation.list, at, message, &|| *made_under)?;
        }
    }
    if is_bound && conversation.under.is_none() {
        conversation.under = Some(PromptPrefix::of(input.request, input.offer));
    }
    Ok(())
}

fn has_thinking(message: &Message) -> bool {
    match message {
        Message::Assistant { vendor: Some(vendor), .. } => &*vendor.vendor == thinking::VENDOR,
        _ => false,
    }
}

fn add(
    input: &RequestInput<'_>,
    list: &mut MessageList,
    at: usize,
    message: &Message,
    made_under: &dyn Fn() -> Digest,
) -> serde_json::Result<()> {
    let RequestInput { first, offer, images, .. } = *input;
    let note = images.note(at);
    if !matches!(message, Message::Tool { .. }) {
        list.end_results();
    }
    match message {
        Message::User { text, blocks } => {
            let text = if is_blank(text) { NO_TEXT } else { text };
            let content = first.of_message(message, note.as_slice(), || {
                let media = images.sent(at, blocks).filter_map(media::of).map(Block::Media);
                media.chain([Block::text(text)]).chain(note.map(Block::text)).collect()
            });
            list.begin_marked(USER);
            list.parts(&content)?;
            list.mark();
            list.end(END);
        }
        Message::Assistant { text, calls, vendor } => {
            let kept = vendor
                .as_deref()
                .and_then(|vendor| thinking::kept(vendor, made_under, text, calls.len()));
            let words = if kept.is_some() { &["with thinking"][..] } else { &[] };
            let content = || said(text, calls, &kept.unwrap_or_default());
            let content = first.of_message(message, words, content);
            // The vendor refuses an empty message. Omitting it loses no content.
            if !content.is_empty() {
                list.begin(ASSISTANT);
                list.parts(&content)?;
                list.end(END);
            }
        }
        Message::Tool { call_id, text, blocks, is_error, .. } => {
            let found = offer.found_in(message);
            let names = found.iter().map(|tool| tool.name().as_str());
            let words: Vec<&str> = names.chain(note).collect();
            let result = first.of_message(message, &words, || {
                // A failure may contain only text.
                let has_media = images.in_results && !*is_error;
                let media = || result_media(images, at, blocks, note);
                vec![match found.is_empty() {
                    true => result(call_id, text, *is_error, has_media.then(media)),
                    false => references(call_id, &found),
                }]
            });
            // All results of a message's calls are in the message after it.
            list.begin_results(USER, END);
            list.parts(&result)?;
            list.mark();
        }
        _ => {}
    }
    Ok(())
}

/// A message of the model: its kept blocks, in order, with the texts and calls at their places.
fn said<'a>(mut text: &'a str, calls: &'a [ToolCall], kept: &[StoredBlock<'a>]) -> Vec<Block<'a>> {
    let mut content = Vec::new();
    let mut calls = calls.iter().map(Block::call);
    for block in kept {
        match *block {
            StoredBlock::Thinking { thinking, signature } => {
                content.push(Block::Thinking { thinking, signature });
            }
            StoredBlock::Redacted { data } => content.push(Block::RedactedThinking { data }),
            StoredBlock::Text { bytes } => {
                if let Some((piece, rest)) = text.split_at_checked(bytes) {
                    content.extend(Block::visible(piece));
                    text = rest;
                }
            }
            StoredBlock::Call => content.extend(calls.next()),
        }
    }
    content.extend(Block::visible(text));
    content.extend(calls);
    // No message may end with thinking.
    while content.pop_if(|last| last.is_thought()).is_some() {}
    content
}

/// The media of a result, and the note on those that are left out.
fn result_media<'a>(
    images: &SentImages,
    at: usize,
    blocks: &'a [ContentBlock],
    note: Option<&'a str>,
) -> Vec<ResultPart<'a>> {
    let note = note.map(|text| ResultPart::Text(Text { text }));
    images.sent(at, blocks).filter_map(media::of).map(ResultPart::Media).chain(note).collect()
}

fn result<'a>(
    call_id: &'a str,
    text: &'a str,
    is_error: bool,
    media: Option<Vec<ResultPart<'a>>>,
) -> Block<'a> {
    let text = match text {
        text if !is_blank(text) => Some(text),
        _ => is_error.then_some(NO_REASON),
    };
    let text = text.map(|text| ResultPart::Text(Text { text }));
    let content = text.into_iter().chain(media.into_iter().flatten()).collect();
    Block::ToolResult { tool_use_id: id(call_id), content, is_error }
}

/// The result of a search: the vendor replaces each reference by the tool's definition.
fn references<'a>(call_id: &'a str, found: &[&'a Tool]) -> Block<'a> {
    let reference = |tool: &&'a Tool| ResultPart::Reference(Reference { tool_name: tool.name() });
    Block::ToolResult {
        tool_use_id: id(call_id),
        content: found.iter().map(reference).collect(),
        is_error: false,
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// An id in the vendor's form. An id from another vendor may contain other characters.
fn id(id: &str) -> Cow<'_, str> {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !id.is_empty() && id.bytes().all(is_taken) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("call_{}", Digest::of(id)))
}

impl<'a> Block<'a> {
    fn text(text: &'a str) -> Self {
        Self::Text { text }
    }

    /// A text with at least one visible character: others are refused.
    fn visible(text: &'a str) -> Option<Self> {
        (!is_blank(text)).then(|| Self::text(text))
    }

    fn call(call: &'a ToolCall) -> Self {
        Self::ToolUse { id: id(&call.id), name: &call.name, input: Input::of(&call.arguments) }
    }

    fn is_thought(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }
}

impl<'a> Input<'a> {
    fn of(arguments: &'a Arguments) -> Self {
        match (ObjectArguments::from(arguments), arguments) {
            (ObjectArguments::Data(data), _) => Self::Data(data),
            (ObjectArguments::Text(json), _) => Self::Json(json),
            (_, Arguments::Text(text)) if is_blank(text) => Self::Nothing {},
            (_, Arguments::Text(text)) => Self::Other { text: Cow::Borrowed(text) },
            (_, Arguments::Json(data)) => Self::Other { text: Cow::Owned(data.to_string()) },
        }
    }
}
