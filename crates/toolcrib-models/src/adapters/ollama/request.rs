//! The body of a request.

use std::borrow::Cow;

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use toolcrib_core::{ContentBlock, Message, ToolCall, ToolChoice, VendorContent};

use super::VENDOR;
use crate::adapters::{
    alternating::alternating,
    arguments::ObjectArguments,
    conversation::Conversation,
    images::SentImages,
    protocol::{BodyFields, RequestInput},
    settings::{ReasoningEffort, Settings},
};

/// Prefix of the result of a failed call: the protocol has no field for that.
const FAILED: &str = "Error: ";

/// The instructions for a model that must not call, and for one that must; see [`choice`].
const NO_CALLS: &str = "No tool can be called any more. Answer now, with what is known.";
const ANY_CALL: &str = "Do not answer yet: call a tool now.";

/// The fields of the body before the conversation, which grows and comes last.
#[derive(Serialize)]
struct BeforeMessages<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// There is no field after it.
#[derive(Serialize)]
struct AfterMessages {}

#[derive(Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
}

/// A message. Empty fields are omitted, as in Ollama's own SDK.
#[derive(Serialize, Default)]
struct RequestMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Image<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

/// A call has no id here: results follow in the order of their calls, and contain the tool's name.
#[derive(Serialize)]
struct Call<'a> {
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: ObjectArguments<'a>,
}

struct Image<'a>(&'a [u8]);

impl Serialize for Image<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// The body of a request.
pub(super) fn body(
    input: &RequestInput<'_>,
    conversation: &mut Conversation,
) -> serde_json::Result<Vec<u8>> {
    let RequestInput { images, request, .. } = *input;
    let before = BeforeMessages {
        model: input.model,
        stream: true,
        think: input.settings.reasoning.map(ReasoningEffort::as_str),
        options: options(input.settings),
        tools: input.tools,
    };
    let new = request.messages.iter().enumerate().skip(conversation.written());
    let list = &mut conversation.list;
    for (at, message) in new {
        for (at, message) in alternating(list, at, message) {
            list.extend(&input.first.of_message(message, images.note(at).as_slice(), || {
                sent(message, images, at).into_iter().collect()
            }))?;
        }
    }
    let list = &conversation.list;
    let write = |body: &mut Vec<u8>| {
        let has_system = !request.system.is_empty();
        if has_system {
            serde_json::to_writer(&mut *body, &RequestMessage::of("system", &request.system))?;
        }
        if has_system && !list.is_empty() {
            body.push(b',');
        }
        list.write(body, "");
        if let Some(content) = input.tools.and_then(|_| choice(&request.tool_choice)) {
            if has_system || !list.is_empty() {
                body.push(b',');
            }
            let told = RequestMessage { content, ..RequestMessage::of("system", "") };
            serde_json::to_writer(&mut *body, &told)?;
        }
        Ok(())
    };
    BodyFields { before: &before, name: r#""messages""#, list: &write, after: &AfterMessages {} }
        .write(list.len() + request.system.len())
}

/// Ollama has no tool choice. Without the tool block the model could not call, but then a server
/// that has evaluated the block would have to read the whole conversation again. So the model
/// receives an instruction at the end, which leaves the evaluated prefix unchanged. It is sent as
/// the operator's message, since some models forget their thinking after a user message. The
/// caller's loop checks whether the model followed it.
fn choice(choice: &ToolChoice) -> Option<Cow<'static, str>> {
    match choice {
        ToolChoice::None => Some(NO_CALLS.into()),
        ToolChoice::Required => Some(ANY_CALL.into()),
        ToolChoice::Tool(name) => {
            Some(format!("Do not answer yet: call the tool `{name}` now, and no other.").into())
        }
        _ => None,
    }
}

fn options(settings: &Settings) -> Option<Options> {
    let Settings { temperature, max_output_tokens: num_predict, .. } = *settings;
    (temperature.is_some() || num_predict.is_some()).then_some(Options { temperature, num_predict })
}

fn sent<'a>(message: &'a Message, images: &SentImages, at: usize) -> Option<RequestMessage<'a>> {
    let of_blocks = |blocks| images.sent(at, blocks).filter_map(image).collect();
    Some(match message {
        Message::User { text, blocks } => RequestMessage {
            content: images.noted(at, text),
            images: of_blocks(&**blocks),
            ..RequestMessage::of("user", "")
        },
        Message::Assistant { text, calls, vendor } => RequestMessage {
            thinking: vendor.as_deref().and_then(thinking),
            tool_calls: calls.iter().map(Call::from).collect(),
            ..RequestMessage::of("assistant", text)
        },
        Message::Tool { name, text, blocks, is_error, .. } => RequestMessage {
            images: if images.in_results { of_blocks(&**blocks) } else { Vec::new() },
            tool_name: Some(name),
            content: match images.noted(at, text) {
                text if *is_error => format!("{FAILED}{text}").into(),
                text => text,
            },
            ..RequestMessage::of("tool", "")
        },
        _ => return None,
    })
}

/// The model's thinking before this message, if it was made by Ollama.
fn thinking(content: &VendorContent) -> Option<&str> {
    (&*content.vendor == VENDOR).then_some(&content.content)?.as_str()
}

/// An image that is sent. The message's text names every other block.
fn image<'a>((block, image_type): (&'a ContentBlock, Option<&'static str>)) -> Option<Image<'a>> {
    image_type.map(|_| Image(block.data()))
}

impl<'a> RequestMessage<'a> {
    fn of(role: &'static str, text: &'a str) -> Self {
        Self { role, content: Cow::Borrowed(text), ..Self::default() }
    }
}

impl<'a> From<&'a ToolCall> for Call<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let arguments = ObjectArguments::from(&call.arguments);
        Self { function: Function { name: &call.name, arguments } }
    }
}
