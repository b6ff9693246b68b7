//! Streams an answer as Chat Completions.

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::{Arguments, ModelResponse, StopReason};

use super::event;

/// Characters of a text, or of a call's arguments, per event.
const FRAGMENT_CHARS: usize = 8;

/// The events of an answer; its calls are numbered from `first_call`.
pub(super) fn events(said: &ModelResponse, first_call: u64, model: &str) -> Vec<Bytes> {
    let chunk = |choices: Value| {
        json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model,
                "choices": choices, "usage": null })
    };
    let delta = |delta: Value| {
        event(&chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }])))
    };
    let mut events = vec![delta(json!({ "role": "assistant", "content": "" }))];
    events.extend(fragments(&said.text).map(|text| delta(json!({ "content": text }))));
    for (index, (call, number)) in said.calls.iter().zip(first_call..).enumerate() {
        let function = json!({ "name": call.name, "arguments": "" });
        events.push(delta(json!({ "tool_calls": [{
            "index": index, "id": format!("call_{number}"), "type": "function", "function": function,
        }] })));
        let arguments = match &call.arguments {
            Arguments::Text(text) => text.clone(),
            Arguments::Json(value) => value.to_string(),
        };
        events.extend(fragments(&arguments).map(|piece| {
            let function = json!({ "arguments": piece });
            delta(json!({ "tool_calls": [{ "index": index, "function": function }] }))
        }));
    }
    let finish_reason = match said.stop {
        StopReason::MaxTokens => "length",
        _ if said.calls.is_empty() => "stop",
        _ => "tool_calls",
    };
    let end = json!([{ "index": 0, "delta": {}, "finish_reason": finish_reason }]);
    let mut usage = chunk(json!([]));
    if let Some(field) = usage.get_mut("usage") {
        let (input, output) = (said.usage.input_tokens, said.usage.output_tokens);
        *field = json!({ "prompt_tokens": input, "completion_tokens": output });
    }
    events.extend([event(&chunk(end)), event(&usage), "data: [DONE]\n\n".into()]);
    events
}

/// The events as sent: each separately, or joined and split after every `chunk_bytes` bytes.
pub(super) fn pieces(events: Vec<Bytes>, chunk_bytes: Option<usize>) -> Vec<Bytes> {
    let Some(bytes) = chunk_bytes else { return events };
    events.concat().chunks(bytes.max(1)).map(Bytes::copy_from_slice).collect()
}

fn fragments(text: &str) -> impl Iterator<Item = String> {
    let mut chars = text.chars();
    std::iter::from_fn(move || {
        let fragment: String = chars.by_ref().take(FRAGMENT_CHARS).collect();
        (!fragment.is_empty()).then_some(fragment)
    })
}
