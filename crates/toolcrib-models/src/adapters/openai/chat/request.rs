//! The body of a request.

use serde::Serialize;
use serde_json::value::RawValue;
use toolcrib_core::ToolChoice;

use super::{
    super::{
        super::{
            conversation::Conversation,
            protocol::{BodyFields, RequestInput},
        },
        own::must_not_reason_with_tools,
    },
    messages::MessageWriter,
};

/// The fields of the body before the messages: those that do not change.
#[derive(Serialize)]
struct BeforeMessages<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// The fields after them: a last request without calls begins with the same bytes.
#[derive(Serialize)]
struct AfterMessages<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Function { r#type: &'static str, function: FunctionName<'a> },
}

#[derive(Serialize)]
struct FunctionName<'a> {
    name: &'a str,
}

/// The body of a request.
pub(super) fn body(
    input: &RequestInput<'_>,
    conversation: &mut Conversation,
) -> serde_json::Result<Vec<u8>> {
    let RequestInput { model, settings, request, tools, .. } = *input;
    let before = BeforeMessages {
        model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_completion_tokens: settings.max_output_tokens,
        temperature: settings.temperature,
        reasoning_effort: match settings.reasoning {
            Some(effort) => Some(effort.as_str()),
            None => (tools.is_some() && must_not_reason_with_tools(model)).then_some("none"),
        },
        tools,
    };
    let after = AfterMessages { tool_choice: tools.and_then(|_| choice(&request.tool_choice)) };
    let writer = MessageWriter::new(input);
    writer.add_new(conversation)?;
    let list = &conversation.list;
    let write = |body: &mut Vec<u8>| writer.write(list, body);
    BodyFields { before: &before, name: r#""messages""#, list: &write, after: &after }
        .write(list.len() + request.system.len())
}

/// Omitted for the default: servers that are not set up for tools refuse even that.
fn choice(choice: &ToolChoice) -> Option<Choice<'_>> {
    match choice {
        ToolChoice::None => Some(Choice::Word("none")),
        ToolChoice::Required => Some(Choice::Word("required")),
        ToolChoice::Tool(name) => {
            Some(Choice::Function { r#type: "function", function: FunctionName { name } })
        }
        _ => None,
    }
}
