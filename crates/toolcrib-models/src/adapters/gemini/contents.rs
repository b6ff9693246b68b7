//! The conversation, as contents of parts.

use std::borrow::Cow;

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer};
use toolcrib_core::{ContentBlock, Message, ToolCall, VendorContent};

use super::{kept, name, series::Series};
use crate::adapters::{
    alternating::alternating,
    arguments::ObjectArguments,
    sent_parts::{Part as First, SentForm},
};

/// Replaces an empty text of the user. Omitting it would let the model speak first, or twice.
const NO_TEXT: &str = "(no text)";

/// Google's documented signature for calls that no Gemini made, such as those of another vendor's
/// model earlier in the conversation. Without a signature they are refused.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Allowed media types in a result beside its text, by Google's documentation of multimodal
/// function responses; anything else is refused.
const MEDIA_IN_RESULTS: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "application/pdf"];

/// The content of one role.
#[derive(Serialize)]
pub(super) struct Content<'a> {
    parts: Vec<First<Part<'a>>>,
    role: &'static str,
}

/// Has exactly one of text, call and response.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    args: ObjectArguments<'a>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    response: Response<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<ResponsePart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response<'a> {
    Output(&'a str),
    Error(&'a str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponsePart<'a> {
    inline_data: Blob<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    #[serde(serialize_with = "in_base64")]
    data: &'a [u8],
}

fn in_base64<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(data, &STANDARD))
}

/// The conversation. The results of one batch are one content, since Gemini counts them against the calls.
pub(super) fn contents<'a>(
    messages: &'a [Message],
    series: Series,
    with_media: bool,
    first: &SentForm,
) -> Vec<Content<'a>> {
    let mut contents: Vec<Content<'a>> = Vec::with_capacity(messages.len());
    let mut in_batch = false;
    for message in alternating(messages) {
        let parts = first.of_message(message, &[], || match message {
            Message::User { text } => texts(if text.is_empty() { NO_TEXT } else { text }),
            Message::Assistant { text, calls, vendor } => {
                said(text, calls, vendor.as_deref(), series)
            }
            _ => result(message, with_media).into_iter().collect(),
        });
        let role = match message {
            Message::Assistant { .. } => "model",
            Message::Tool { .. } => {
                if in_batch && let Some(batch) = contents.last_mut() {
                    batch.parts.extend(parts);
                    continue;
                }
                "user"
            }
            _ => "user",
        };
        in_batch = matches!(message, Message::Tool { .. });
        if !parts.is_empty() {
            contents.push(Content { parts, role });
        }
    }
    contents
}

fn texts(text: &str) -> Vec<Part<'_>> {
    if text.is_empty() { Vec::new() } else { vec![Part::text(text)] }
}

/// The model's message, in its original parts if they are known.
fn said<'a>(
    text: &'a str,
    calls: &'a [ToolCall],
    vendor: Option<&'a VendorContent>,
    series: Series,
) -> Vec<Part<'a>> {
    let mut parts = match kept::parts(vendor, calls.len()) {
        Some(kept) => as_kept(&kept, text, calls),
        None => texts(text).into_iter().chain(calls.iter().map(Part::call)).collect(),
    };
    // Only the first call of a batch requires one.
    if series.requires_signatures()
        && let Some(first) = parts.iter_mut().find(|part| part.function_call.is_some())
    {
        first.thought_signature.get_or_insert(NO_SIGNATURE);
    }
    parts
}

fn as_kept<'a>(
    kept: &[kept::Part<&'a str>],
    text: &'a str,
    calls: &'a [ToolCall],
) -> Vec<Part<'a>> {
    let lengths = kept.iter().map(|part| match part {
        kept::Part::Text { chars, .. } => *chars,
        _ => 0,
    });
    // A text of another length was changed, for example by redaction. Then the whole text replaces
    // its first piece.
    let mut rest = text;
    let unchanged = lengths.sum::<usize>() == text.chars().count();
    let mut calls = calls.iter();
    let mut parts = Vec::with_capacity(kept.len() + 1);
    for part in kept {
        parts.push(match *part {
            kept::Part::Thought { text, signature } => {
                Part { thought: true, thought_signature: signature, ..Part::text(text) }
            }
            kept::Part::Text { chars, signature } => {
                let piece =
                    if unchanged { split(&mut rest, chars) } else { std::mem::take(&mut rest) };
                if piece.is_empty() && signature.is_none() {
                    continue;
                }
                Part { thought_signature: signature, ..Part::text(piece) }
            }
            kept::Part::Call { signature } => {
                let Some(call) = calls.next() else { continue };
                Part { thought_signature: signature, ..Part::call(call) }
            }
        });
    }
    if !rest.is_empty() {
        parts.insert(0, Part::text(rest));
    }
    parts
}

/// Splits off the first `chars` characters.
fn split<'a>(rest: &mut &'a str, chars: usize) -> &'a str {
    let end = rest.char_indices().nth(chars).map_or(rest.len(), |(at, _)| at);
    let (piece, after) = rest.split_at(end);
    *rest = after;
    piece
}

fn result(message: &Message, with_media: bool) -> Option<Part<'_>> {
    let Message::Tool { call_id, name, text, blocks, is_error, .. } = message else { return None };
    let response = if *is_error { Response::Error(text) } else { Response::Output(text) };
    let parts = if with_media { blocks.iter().filter_map(media).collect() } else { Vec::new() };
    let function_response =
        FunctionResponse { id: call_id, name: name::sent(name), response, parts };
    Some(Part { function_response: Some(function_response), ..Part::default() })
}

/// A block in Gemini's form. The result's text names every other one.
fn media(block: &ContentBlock) -> Option<ResponsePart<'_>> {
    let (mime_type, data): (&str, &[u8]) = match block {
        ContentBlock::Image { media_type, data, .. } => (media_type, data),
        ContentBlock::Binary { media_type: Some(media_type), data, .. } => (media_type, data),
        _ => return None,
    };
    let taken = MEDIA_IN_RESULTS.contains(&mime_type) && !data.is_empty();
    taken.then_some(ResponsePart { inline_data: Blob { mime_type, data } })
}

impl<'a> Content<'a> {
    /// The system text. Its role has no meaning, but Google's own SDK sends it.
    pub(super) fn system(text: &'a str) -> Self {
        Self { parts: vec![Part::text(text).into()], role: "user" }
    }
}

impl<'a> Part<'a> {
    fn text(text: &'a str) -> Self {
        Self { text: Some(Cow::Borrowed(text)), ..Self::default() }
    }

    fn call(call: &'a ToolCall) -> Self {
        let function_call = FunctionCall {
            id: &call.id,
            name: name::sent(&call.name),
            args: ObjectArguments::from(&call.arguments),
        };
        Self { function_call: Some(function_call), ..Self::default() }
    }
}
