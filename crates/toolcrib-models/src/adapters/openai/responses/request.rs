//! The body of a request.

use serde::Serialize;
use serde_json::value::RawValue;
use toolcrib_core::{Digest, Message, ModelRequest, SEARCH_TOOLS, ToolChoice};

use super::{
    super::{
        super::{
            conversation::Conversation,
            protocol::{BodyFields, Offer, RequestInput},
        },
        own::never_reasons,
    },
    input,
};

/// Length of a cache key in characters; the vendor's limit is 64.
const CACHE_KEY: usize = 32;

/// The fields of the body before the input: those that do not change.
#[derive(Serialize)]
struct BeforeInput<'a> {
    model: &'a str,
    stream: bool,
    /// Disables storage at the vendor. Its default is to keep responses for a month.
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_management: Option<[Compaction; 1]>,
    prompt_cache_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
}

/// The fields after it: a last request without calls begins with the same bytes.
#[derive(Serialize)]
struct AfterInput<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
}

/// The reasoning effort. A summary is not requested: the vendor refuses the whole request if the
/// organization is not verified.
#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

/// Replaces the conversation so far by an item that only the vendor can read, which goes back like
/// reasoning.
#[derive(Serialize)]
#[serde(tag = "type", rename = "compaction")]
struct Compaction {
    compact_threshold: u32,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Function { r#type: &'static str, name: &'a str },
}

/// The body of a request.
pub(super) fn body(
    input: &RequestInput<'_>,
    conversation: &mut Conversation,
) -> serde_json::Result<Vec<u8>> {
    let RequestInput { model, settings, request, tools, .. } = *input;
    let prompt_cache_key = conversation.key(&request.system, || cache_key(request));
    let before = BeforeInput {
        model,
        stream: true,
        store: false,
        include: (!never_reasons(model)).then_some(["reasoning.encrypted_content"]),
        max_output_tokens: settings.max_output_tokens,
        temperature: settings.temperature,
        reasoning: settings.reasoning.map(|effort| Reasoning { effort: effort.as_str() }),
        context_management: settings
            .clear_above
            .map(|compact_threshold| [Compaction { compact_threshold }]),
        prompt_cache_key: &prompt_cache_key,
        tools,
        instructions: &request.system,
    };
    let tool_choice = tools.and_then(|_| choice(&request.tool_choice, input.offer));
    input::write(input, conversation)?;
    let list = &conversation.list;
    let write = |body: &mut Vec<u8>| {
        list.write(body, "");
        Ok(())
    };
    let after = AfterInput { tool_choice };
    BodyFields { before: &before, name: r#""input""#, list: &write, after: &after }
        .write(list.len())
}

/// The same for all requests of a conversation, which is identified by its beginning. One key for
/// all conversations would be worse: each machine serves a limited number of requests per key, so
/// conversations would be spread over machines.
fn cache_key(request: &ModelRequest) -> String {
    let first = request.messages.first().map_or("", |message| match message {
        Message::User { text, .. }
        | Message::Assistant { text, .. }
        | Message::Tool { text, .. } => text,
        _ => "",
    });
    let begins = [&*request.system, first].map(Digest::of);
    let mut key = Digest::of_all(&begins).to_string();
    key.truncate(CACHE_KEY);
    key
}

/// Omitted for the default.
fn choice<'a>(choice: &'a ToolChoice, offer: Offer<'_>) -> Option<Choice<'a>> {
    match choice {
        // The vendor has no choice of this kind.
        ToolChoice::Tool(name) if offer.loads() && **name == *SEARCH_TOOLS => {
            Some(Choice::Word("required"))
        }
        ToolChoice::None => Some(Choice::Word("none")),
        ToolChoice::Required => Some(Choice::Word("required")),
        ToolChoice::Tool(name) => Some(Choice::Function { r#type: "function", name }),
        _ => None,
    }
}
