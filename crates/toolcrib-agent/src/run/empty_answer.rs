//! Responses that are complete and contain no answer.

use std::fmt::Write as _;

use toolcrib_core::{Message, ModelError, ModelErrorClass, ModelResponse, StopReason, ToolChoice};

use crate::outcome::{RunEnd, RunError};

/// The number of tools that an error names.
const MOST_NAMES: usize = 8;

/// Refuses a response without text and calls. Calls that are not allowed do not count: they are not
/// made, so the text would be the answer.
pub(super) fn check(
    choice: &ToolChoice,
    response: &ModelResponse,
    has_reasoned: bool,
) -> Result<(), ModelError> {
    let has_calls = !response.calls.is_empty();
    if !response.text.trim().is_empty() || (has_calls && *choice != ToolChoice::None) {
        return Ok(());
    }
    let mut problem = match (has_calls, has_reasoned) {
        (true, _) => "its answer is empty: no text, and only calls, which were not allowed",
        (false, true) => "its answer is empty: no text and no call, only reasoning",
        (false, false) => "its answer is empty: no text and no call",
    }
    .to_owned();
    if response.stop == StopReason::MaxTokens {
        problem.push_str("; it reached its output limit before: raise `max_output_tokens`");
    }
    let mut error = ModelError::new(ModelErrorClass::EmptyAnswer, problem);
    error.usage = response.usage;
    Err(error)
}

/// Adds the calls of the turn to the error of an empty answer: their effects remain.
pub(super) fn with_calls(mut end: RunEnd, turn: &[Message]) -> RunEnd {
    if let Some(error) = &mut end.error
        && error.class == Some(ModelErrorClass::EmptyAnswer)
    {
        add_calls(error, turn);
    }
    end
}

fn add_calls(error: &mut RunError, turn: &[Message]) {
    // Each tool, with the number of its calls and of those that failed.
    let mut tools: Vec<(&str, u32, u32)> = Vec::new();
    for message in turn {
        let Message::Tool { name, is_error, .. } = message else { continue };
        let at = tools.iter().position(|(known, ..)| **known == **name).unwrap_or(tools.len());
        if at == tools.len() {
            tools.push((name, 0, 0));
        }
        if let Some((_, calls, failed)) = tools.get_mut(at) {
            *calls += 1;
            *failed += u32::from(*is_error);
        }
    }
    let names = tools.iter().take(MOST_NAMES).map(|(name, calls, failed)| {
        let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
        let times = if *calls > 1 || !failed.is_empty() {
            format!(" ({calls} call{}{failed})", if *calls == 1 { "" } else { "s" })
        } else {
            String::new()
        };
        format!("`{name}`{times}")
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let more = tools.len().saturating_sub(MOST_NAMES);
    let _ = match (tools.len(), more) {
        (0, _) => write!(error.message, "; no call was made before it"),
        (_, 0) => write!(error.message, "; calls before it: {names}"),
        _ => write!(error.message, "; calls before it: {names} and {more} other tools"),
    };
}
