//! The conversation, as contents of parts.

use std::borrow::Cow;

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer};
use toolcrib_core::{ContentBlock, ImageLimits, Message, ToolCall, VendorContent};

use super::{kept, name, series::Series};
use crate::adapters::{
    alternating::alternating, arguments::ObjectArguments, conversation::Conversation,
    images::SentImages, protocol::RequestInput,
};

/// Replaces an empty text of the user. Omitting it would let the model speak first, or twice.
const NO_TEXT: &str = "(no text)";

/// Google's documented signature for calls that no Gemini made, such as those of another vendor's
/// model earlier in the conversation. Without a signature they are refused.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The vendor's limits by its page "Image understanding": PNG, JPEG and WebP (and HEIC and HEIF, which
/// Toolcrib does not read), 3,600 images and 20 MB in a request, of which 2 MB are for everything else.
/// The documentation of multimodal function responses permits the same types there.
pub(super) const LIMITS: ImageLimits = ImageLimits {
    media_types: &["image/png", "image/jpeg", "image/webp"],
    max_total_bytes: 18_000_000,
    max_count: 3_600,
    ..ImageLimits::NONE
};

const PDF: &str = "application/pdf";

/// The beginning of the content of one role, and the ends.
const BEGIN: &str = r#"{"parts":["#;
const END_OF_USER: &str = r#"],"role":"user"}"#;
const END_OF_MODEL: &str = r#"],"role":"model"}"#;

/// The system text.
#[derive(Serialize)]
pub(super) struct SystemContent<'a> {
    parts: [Part<'a>; 1],
    role: &'static str,
}

/// Has exactly one of text, image, call and response.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Blob<'a>>,
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
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
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

/// Writes the contents that the conversation lacks. The results of one batch are one content, since
/// Gemini counts them against the calls.
pub(super) fn write(
    input: &RequestInput<'_>,
    series: Series,
    conversation: &mut Conversation,
) -> serde_json::Result<()> {
    let images = input.images;
    let new = input.request.messages.iter().enumerate().skip(conversation.written());
    let list = &mut conversation.list;
    for (at, message) in new {
        for (at, message) in alternating(list, at, message) {
            let parts =
                input.first.of_message(message, images.note(at).as_slice(), || match message {
                    Message::User { text, blocks } => user(text, blocks, images, at),
                    Message::Assistant { text, calls, vendor } => {
                        said(text, calls, vendor.as_deref(), series)
                    }
                    _ => result(message, images, at).into_iter().collect(),
                });
            let end = match message {
                Message::Tool { .. } => {
                    list.begin_results(BEGIN, END_OF_USER);
                    list.parts(&parts)?;
                    continue;
                }
                Message::Assistant { .. } => END_OF_MODEL,
                _ => END_OF_USER,
            };
            list.end_results();
            if !parts.is_empty() {
                list.begin(BEGIN);
                list.parts(&parts)?;
                list.end(end);
            }
        }
    }
    Ok(())
}

fn texts(text: &str) -> Vec<Part<'_>> {
    if text.is_empty() { Vec::new() } else { vec![Part::text(text)] }
}

/// The user's message: its text, and its images.
fn user<'a>(
    text: &'a str,
    blocks: &'a [ContentBlock],
    images: &SentImages,
    at: usize,
) -> Vec<Part<'a>> {
    let text = match images.noted(at, text) {
        text if text.is_empty() => NO_TEXT.into(),
        text => text,
    };
    let text = Part { text: Some(text), ..Part::default() };
    let media = images.sent(at, blocks).filter_map(media);
    let media = media.map(|blob| Part { inline_data: Some(blob), ..Part::default() });
    [text].into_iter().chain(media).collect()
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

fn result<'a>(message: &'a Message, images: &SentImages, at: usize) -> Option<Part<'a>> {
    let Message::Tool { call_id, name, text, blocks, is_error, .. } = message else { return None };
    let text = images.noted(at, text);
    let response = if *is_error { Response::Error(text) } else { Response::Output(text) };
    let blocks = if images.in_results { &**blocks } else { &[] };
    let media = images.sent(at, blocks).filter_map(media);
    let parts = media.map(|inline_data| ResponsePart { inline_data }).collect();
    let function_response =
        FunctionResponse { id: call_id, name: name::sent(name), response, parts };
    Some(Part { function_response: Some(function_response), ..Part::default() })
}

/// A block in Gemini's form; an image with its media type. The message's text names every other one.
fn media<'a>((block, image_type): (&'a ContentBlock, Option<&'static str>)) -> Option<Blob<'a>> {
    match (block, image_type) {
        (ContentBlock::Image { data, .. }, Some(mime_type)) => Some(Blob { mime_type, data }),
        (ContentBlock::Binary { media_type: Some(media_type), data, .. }, _) => {
            let is_taken = **media_type == *PDF || LIMITS.media_types.contains(&&**media_type);
            (is_taken && !data.is_empty()).then_some(Blob { mime_type: media_type, data })
        }
        _ => None,
    }
}

impl<'a> SystemContent<'a> {
    /// The role has no meaning, but Google's own SDK sends it.
    pub(super) fn of(text: &'a str) -> Self {
        Self { parts: [Part::text(text)], role: "user" }
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
