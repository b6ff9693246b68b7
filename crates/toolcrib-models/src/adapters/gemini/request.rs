//! The body of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use toolcrib_core::ToolChoice;

use super::{
    contents::{self, SystemContent},
    name,
    series::Series,
};
use crate::adapters::{
    conversation::Conversation,
    protocol::{BodyFields, RequestInput},
    settings::{ReasoningEffort, Settings},
};

/// The fields before the conversation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BeforeContents<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemContent<'a>>,
}

/// The fields after it: the tool choice may change while the conversation only grows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AfterContents<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: FunctionCallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[Cow<'a, str>; 1]>,
}

/// The body of a request.
pub(super) fn body(
    input: &RequestInput<'_>,
    conversation: &mut Conversation,
) -> serde_json::Result<Vec<u8>> {
    let series = Series::of(input.model);
    let system = &input.request.system;
    let before = BeforeContents {
        generation_config: generation_config(input.settings, series),
        tools: input.tools,
        system_instruction: (!system.is_empty()).then(|| SystemContent::of(system)),
    };
    let tool_config = input.tools.and_then(|_| tool_config(&input.request.tool_choice));
    contents::write(input, series, conversation)?;
    let list = &conversation.list;
    let write = |body: &mut Vec<u8>| {
        list.write(body, "");
        Ok(())
    };
    let after = AfterContents { tool_config };
    BodyFields { before: &before, name: r#""contents""#, list: &write, after: &after }
        .write(list.len())
}

fn generation_config(settings: &Settings, series: Series) -> Option<GenerationConfig> {
    let Settings { max_output_tokens, temperature, reasoning, .. } = *settings;
    if max_output_tokens.is_none() && temperature.is_none() && reasoning.is_none() {
        return None;
    }
    let thinking_config = reasoning.map(|effort| {
        let by_budget = series.thinks_by_budget();
        ThinkingConfig {
            include_thoughts: true,
            thinking_budget: by_budget.then(|| budget(effort)),
            thinking_level: (!by_budget).then(|| level(effort)),
        }
    });
    Some(GenerationConfig { temperature, max_output_tokens, thinking_config })
}

fn level(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::Low => "LOW",
        ReasoningEffort::Medium => "MEDIUM",
        ReasoningEffort::High => "HIGH",
    }
}

/// In tokens, with the values of Google's OpenAI-compatible API.
fn budget(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::Low => 1024,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 24_576,
    }
}

fn tool_config(choice: &ToolChoice) -> Option<ToolConfig<'_>> {
    let (mode, allowed) = match choice {
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Tool(tool) => ("ANY", Some([name::sent(tool)])),
        // The default.
        _ => return None,
    };
    let function_calling_config = FunctionCallingConfig { mode, allowed_function_names: allowed };
    Some(ToolConfig { function_calling_config })
}
