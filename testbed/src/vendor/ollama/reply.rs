//! How Ollama answers.

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::StopReason;

use crate::{
    said::{Said, SaidCall, as_object, pieces},
    server::Settings,
    vendor::set,
};

/// What the server says of how long things took, in nanoseconds. It never changes, so that the
/// same requests get the same bytes.
const TOOK: u64 = 1_000_000;

/// The answer in one piece.
pub(crate) fn whole(said: &Said, settings: &Settings) -> Value {
    let mut message = json!({ "role": "assistant", "content": content(said) });
    if let Some(thinking) = thinking(said) {
        set(&mut message, "thinking", thinking);
    }
    let calls = calls(said, settings);
    if !calls.is_empty() {
        set(&mut message, "tool_calls", calls);
    }
    last(said, &message)
}

/// The answer as lines. Each call comes whole.
pub(crate) fn stream(said: &Said, settings: &Settings) -> Vec<Bytes> {
    let cut = |text| pieces(text, settings.fragment_chars).into_iter();
    let mut messages: Vec<Value> = Vec::new();
    if let Some(thinking) = thinking(said) {
        let pieces = cut(thinking);
        messages.extend(
            pieces.map(|piece| json!({ "role": "assistant", "content": "", "thinking": piece })),
        );
    }
    let content = content(said);
    messages.extend(cut(&content).map(|piece| json!({ "role": "assistant", "content": piece })));
    messages.extend(
        calls(said, settings)
            .into_iter()
            .map(|call| json!({ "role": "assistant", "content": "", "tool_calls": [call] })),
    );
    let lines = messages.into_iter().map(|message| head(said, &message, false));
    let end = last(said, &json!({ "role": "assistant", "content": "" }));
    lines.chain([end]).map(|line| Bytes::from(format!("{line}\n"))).collect()
}

fn thinking(said: &Said) -> Option<&str> {
    Some(&*said.reasoning).filter(|text| said.form.thoughts && !text.is_empty())
}

/// The text, and what the model meant to be a call and is no JSON.
fn content(said: &Said) -> String {
    let not_parsed = said.calls.iter().filter(|call| as_object(&call.arguments).is_none());
    let not_parsed = not_parsed.map(|call| format!("{}({})", call.name, call.arguments));
    std::iter::once(said.text.clone()).chain(not_parsed).collect()
}

fn calls(said: &Said, settings: &Settings) -> Vec<Value> {
    let calls = said.calls.iter().enumerate();
    calls.filter_map(|(index, call)| function(index, call, settings.call_ids)).collect()
}

fn function(index: usize, call: &SaidCall, with_id: bool) -> Option<Value> {
    let arguments = as_object(&call.arguments)?;
    let function = json!({ "index": index, "name": call.name, "arguments": arguments });
    Some(match with_id {
        true => json!({ "id": call.id, "function": function }),
        false => json!({ "function": function }),
    })
}

fn head(said: &Said, message: &Value, done: bool) -> Value {
    json!({
        "model": said.model,
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": done,
    })
}

fn last(said: &Said, message: &Value) -> Value {
    let mut last = head(said, message, true);
    let reason = if said.stop == StopReason::MaxTokens { "length" } else { "stop" };
    set(&mut last, "done_reason", reason);
    for took in ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"] {
        set(&mut last, took, TOOK);
    }
    set(&mut last, "prompt_eval_count", said.tokens.input);
    set(&mut last, "eval_count", said.tokens.output);
    last
}
