//! The body of a request.

use serde::Serialize;
use serde_json::value::RawValue;
use toolcrib_core::{Message, ModelRequest, ToolChoice};

use super::{
    Breakpoint,
    messages::{Sent, sent},
    thinking::Under,
};
use crate::vendors::{
    protocol::Asked,
    settings::{ReasoningEffort, Settings},
};

/// The vendor has no default of its own, and what a model thinks counts too.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// Goes for a menu that is empty now and was not before: a conversation that holds calls is refused
/// where no tool is declared.
pub(super) const NO_TOOLS: &str = concat!(
    r#"[{"name":"no_tool_is_offered","description":"#,
    r#""Stands for the tools that were called before. No tool can be called now.","#,
    r#""input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]"#
);

/// A request. What stays the same stands first, and what is of this request only stands last, so
/// that the bodies of a conversation begin alike.
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
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemText<'a>; 1]>,
    messages: Vec<Sent<'a>>,
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
#[serde(tag = "type", rename = "text")]
struct SystemText<'a> {
    text: &'a str,
    cache_control: Breakpoint,
}

/// Models since 4.6 think as much as they find right. A budget instead is for older ones only, and
/// is refused by all since 4.7.
#[derive(Serialize)]
#[serde(tag = "type", rename = "adaptive")]
struct Thinking {
    /// Models since 4.7 keep to themselves what they think unless this is said.
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
    pub(super) fn new(asked: &Asked<'a>) -> Result<Self, serde_json::Error> {
        let Asked { model, settings, request, tools, .. } = *asked;
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
            tools,
            system: system(request),
            messages: sent(
                &request.messages,
                &Under::of(request),
                settings.result_blocks.unwrap_or(true),
            ),
            thinking: thinking(settings, tool_choice),
            tool_choice,
        })
    }
}

/// Whether [`NO_TOOLS`] stands in the place of the menu.
pub(super) fn has_stand_in(request: &ModelRequest) -> bool {
    request.menu.is_empty()
        && request
            .messages
            .iter()
            .any(|message| matches!(message, Message::Assistant { calls, .. } if !calls.is_empty()))
}

/// A model that thinks takes no temperature.
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

/// A model that must call a tool is not told to think: models refuse to do both. Those that think
/// without being told (since 5.5) refuse to be told to call, and that refusal is passed on.
fn thinking(settings: &Settings, choice: Option<Choice<'_>>) -> Option<Thinking> {
    let forced = matches!(choice, Some(Choice::Any | Choice::Tool { .. }));
    (settings.reasoning.is_some() && !forced).then_some(Thinking { display: "summarized" })
}

/// Nothing is said where the model may do as it likes.
fn choice(choice: &ToolChoice) -> Option<Choice<'_>> {
    match choice {
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Required => Some(Choice::Any),
        ToolChoice::Tool(name) => Some(Choice::Tool { name }),
        _ => None,
    }
}
