//! The body of a request.

use serde::Serialize;
use serde_json::value::RawValue;
use toolcrib_core::{ModelRequest, ToolChoice};

use super::{BREAKPOINT, Breakpoint, messages, no_tools::NO_TOOLS};
use crate::adapters::{
    conversation::Conversation,
    prompt_prefix::has_stand_in,
    protocol::{BodyFields, RequestInput},
    settings::{ReasoningEffort, Settings},
};

/// The vendor requires a limit, and thinking counts toward it.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// The fields of a request before the messages. Stable fields come first and per-request fields last,
/// so that the bodies of a conversation have a common prefix.
#[derive(Serialize)]
struct BeforeMessages<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_management: Option<ContextManagement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemText<'a>; 1]>,
}

/// The fields after them.
#[derive(Serialize)]
struct AfterMessages<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct ContextManagement {
    edits: [ClearToolUses; 1],
}

/// Leaves out the oldest tool results, of which the vendor keeps the last three.
#[derive(Serialize)]
#[serde(tag = "type", rename = "clear_tool_uses_20250919")]
struct ClearToolUses {
    trigger: InputTokens,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "input_tokens")]
struct InputTokens {
    value: u32,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct SystemText<'a> {
    text: &'a str,
    cache_control: Breakpoint,
}

/// Models since 4.6 choose the amount of thinking themselves. A budget is for older ones only, and
/// all models since 4.7 refuse it.
#[derive(Serialize)]
#[serde(tag = "type", rename = "adaptive")]
struct Thinking {
    /// Models since 4.7 hide their thinking unless this is set.
    display: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Choice<'a> {
    None,
    Any,
    Tool { name: &'a str },
}

/// The body of a request.
pub(super) fn body(
    input: &RequestInput<'_>,
    conversation: &mut Conversation,
) -> serde_json::Result<Vec<u8>> {
    let RequestInput { model, settings, request, tools, .. } = *input;
    let tools = match has_stand_in(request) {
        true => Some(serde_json::from_str(NO_TOOLS)?),
        false => tools,
    };
    let tool_choice = match request.menu.is_empty() {
        true => tools.map(|_| Choice::None),
        false => choice(&request.tool_choice),
    };
    let before = BeforeMessages {
        model,
        max_tokens: settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        stream: true,
        temperature: temperature(settings),
        output_config: settings.reasoning.map(output_config),
        context_management: settings.clear_above.map(|value| ContextManagement {
            edits: [ClearToolUses { trigger: InputTokens { value } }],
        }),
        tools,
        system: system(request),
    };
    let after = AfterMessages { thinking: thinking(settings, tool_choice), tool_choice };
    messages::write(input, conversation)?;
    let list = &conversation.list;
    let write = |body: &mut Vec<u8>| {
        list.write(body, BREAKPOINT);
        Ok(())
    };
    BodyFields { before: &before, name: r#""messages""#, list: &write, after: &after }
        .write(list.len())
}

/// A model that thinks accepts no temperature.
fn temperature(settings: &Settings) -> Option<f64> {
    settings.temperature.filter(|_| settings.reasoning.is_none())
}

fn output_config(effort: ReasoningEffort) -> OutputConfig {
    OutputConfig { effort: effort.as_str() }
}

/// A text without a visible character is refused.
fn system(request: &ModelRequest) -> Option<[SystemText<'_>; 1]> {
    let text = &*request.system;
    (!text.trim().is_empty()).then_some([SystemText { text, cache_control: Breakpoint::Ephemeral }])
}

/// Thinking is not requested from a model that must call a tool: models refuse to do both. Those
/// that always think (since 5.5) refuse a forced call, and that error is passed on.
fn thinking(settings: &Settings, choice: Option<Choice<'_>>) -> Option<Thinking> {
    let forced = matches!(choice, Some(Choice::Any | Choice::Tool { .. }));
    (settings.reasoning.is_some() && !forced).then_some(Thinking { display: "summarized" })
}

/// Omitted if the model may choose freely.
fn choice(choice: &ToolChoice) -> Option<Choice<'_>> {
    match choice {
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Required => Some(Choice::Any),
        ToolChoice::Tool(name) => Some(Choice::Tool { name }),
        _ => None,
    }
}
