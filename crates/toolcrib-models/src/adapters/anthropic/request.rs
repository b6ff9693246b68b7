//! The body of a request.

use serde::Serialize;
use serde_json::value::RawValue;
use toolcrib_core::{ModelRequest, ToolChoice};

use super::{
    Breakpoint,
    messages::{RequestMessage, sent},
    no_tools::{NO_TOOLS, has_stand_in},
    thinking::PromptPrefix,
};
use crate::adapters::{
    protocol::RequestInput,
    settings::{ReasoningEffort, Settings},
};

/// The vendor requires a limit, and thinking counts toward it.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// A request. Stable fields come first and per-request fields last, so that the bodies of a
/// conversation have a common prefix.
#[derive(Serialize)]
pub(super) struct Body<'a> {
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
    messages: Vec<RequestMessage<'a>>,
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

impl<'a> Body<'a> {
    pub(super) fn new(input: &RequestInput<'a>) -> Result<Self, serde_json::Error> {
        let RequestInput { model, settings, request, tools, .. } = *input;
        let tools = match has_stand_in(request) {
            true => Some(serde_json::from_str(NO_TOOLS)?),
            false => tools,
        };
        let tool_choice = match request.menu.is_empty() {
            true => tools.map(|_| Choice::None),
            false => choice(&request.tool_choice),
        };
        Ok(Self {
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
            messages: sent(input, &PromptPrefix::of(input)),
            thinking: thinking(settings, tool_choice),
            tool_choice,
        })
    }
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
