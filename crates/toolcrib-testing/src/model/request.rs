//! Accessors for a request.

use serde_json::Value;
use toolcrib_core::{Message, ModelRequest, ToolCall, ToolChoice};

use crate::fail::shown;

/// A call as a step of a [model](crate::model()): without an id, which the model sets. For a batch
/// of an engine, without a model, use [`ToolCall::new`].
pub fn call(tool: &str, args: Value) -> ToolCall {
    ToolCall::new("", tool, args)
}

/// A message of the user, not of the tool layer.
fn is_users(message: &Message) -> bool {
    matches!(message, Message::User { .. }) && message.as_notice().is_none()
}

/// The results since the last user message, in order: the called name, and the text as the model
/// reads it, with its fence.
pub fn results(request: &ModelRequest) -> Vec<(&str, &str)> {
    let since = request.messages.iter().rposition(is_users);
    let messages = request.messages.iter().skip(since.map_or(0, |at| at + 1));
    messages
        .filter_map(|message| match message {
            Message::Tool { name, text, .. } => Some((&**name, &**text)),
            _ => None,
        })
        .collect()
}

/// The messages since the last response: the user's, or results. In order.
pub(super) fn unanswered(request: &ModelRequest) -> impl Iterator<Item = &str> {
    let last = request.messages.iter().rposition(|m| matches!(m, Message::Assistant { .. }));
    let messages = request.messages.iter().skip(last.map_or(0, |at| at + 1));
    messages.filter(|message| message.as_notice().is_none()).filter_map(|message| match message {
        Message::User { text, .. } | Message::Tool { text, .. } => Some(&**text),
        _ => None,
    })
}

/// The number of calls in the conversation.
pub(super) fn calls_so_far(request: &ModelRequest) -> usize {
    let calls = request.messages.iter().map(|message| match message {
        Message::Assistant { calls, .. } => calls.len(),
        _ => 0,
    });
    calls.sum()
}

/// The number of the model's responses.
pub(super) fn answers_so_far(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|m| matches!(m, Message::Assistant { .. })).count()
}

/// Whether the model may call tools.
pub(super) fn may_call(request: &ModelRequest) -> bool {
    request.tool_choice != ToolChoice::None
}

/// A request in one line, for failures.
pub(super) fn described(request: &ModelRequest) -> String {
    let last = match request.messages.last() {
        None => "no message".to_owned(),
        Some(Message::User { text, .. }) => format!("the last the user's {}", shown(text)),
        Some(Message::Tool { name, text, is_error, .. }) => {
            let kind = if *is_error { "error" } else { "result" };
            format!("the last the {kind} of `{name}` {}", shown(text))
        }
        Some(_) => "the last the model's own".to_owned(),
    };
    let allowed = if may_call(request) { "" } else { ", none of which may be called" };
    format!(
        "with {} messages, {last}, and {} tools{allowed}",
        request.messages.len(),
        request.menu.len()
    )
}
