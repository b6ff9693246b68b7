//! How Anthropic answers.

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::{Digest, StopReason};

use crate::{
    said::{Said, as_object, pieces},
    server::Settings,
    vendor::set,
};

/// The answer in one piece.
pub(crate) fn whole(said: &Said) -> Value {
    let mut answer = message(said);
    set(&mut answer, "content", content(said).iter().map(Part::whole).collect::<Value>());
    set(&mut answer, "stop_reason", stop_reason(said));
    set(&mut answer, "usage", usage(said, said.tokens.output));
    answer
}

/// The answer as events, one block after the other.
pub(crate) fn stream(said: &Said, settings: &Settings) -> Vec<Bytes> {
    let cut = |text| pieces(text, settings.fragment_chars);
    let mut events = vec![
        json!({ "type": "message_start", "message": message(said) }),
        json!({ "type": "ping" }),
    ];
    for (index, part) in content(said).iter().enumerate() {
        let delta =
            |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.push(json!({
            "type": "content_block_start", "index": index, "content_block": part.begin(),
        }));
        match part {
            Part::Thinking(text) => {
                let pieces = cut(text).into_iter();
                events
                    .extend(pieces.map(|piece| {
                        delta(json!({ "type": "thinking_delta", "thinking": piece }))
                    }));
                events.push(delta(
                    json!({ "type": "signature_delta", "signature": signature(text) }),
                ));
            }
            Part::Text(text) => {
                let pieces = cut(text).into_iter();
                events.extend(
                    pieces.map(|piece| delta(json!({ "type": "text_delta", "text": piece }))),
                );
            }
            Part::Call { arguments, .. } => {
                // The first piece is always empty.
                let pieces = std::iter::once("").chain(cut(arguments));
                events.extend(pieces.map(|piece| {
                    delta(json!({ "type": "input_json_delta", "partial_json": piece }))
                }));
            }
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason(said), "stop_sequence": null },
        "usage": usage(said, said.tokens.output),
    }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(event).collect()
}

fn event(data: &Value) -> Bytes {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// A block of an answer.
enum Part<'a> {
    Thinking(&'a str),
    Text(&'a str),
    Call { id: &'a str, name: &'a str, arguments: &'a str },
}

impl Part<'_> {
    /// The block as it stands before its first piece.
    fn begin(&self) -> Value {
        match self {
            Self::Thinking(_) => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            Self::Text(_) => json!({ "type": "text", "text": "" }),
            Self::Call { id, name, .. } => {
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} })
            }
        }
    }

    fn whole(&self) -> Value {
        match self {
            Self::Thinking(text) => {
                json!({ "type": "thinking", "thinking": text, "signature": signature(text) })
            }
            Self::Text(text) => json!({ "type": "text", "text": text }),
            Self::Call { id, name, arguments } => {
                // What a client is advised to send back for arguments that are no JSON.
                let invalid = || json!({ "INVALID_JSON": arguments });
                let input = as_object(arguments).unwrap_or_else(invalid);
                json!({ "type": "tool_use", "id": id, "name": name, "input": input })
            }
        }
    }
}

fn content(said: &Said) -> Vec<Part<'_>> {
    let thinking = Some(&*said.reasoning).filter(|text| said.form.thoughts && !text.is_empty());
    let text = Some(&*said.text).filter(|text| !text.is_empty());
    let calls = said.calls.iter();
    let calls =
        calls.map(|call| Part::Call { id: &call.id, name: &call.name, arguments: &call.arguments });
    thinking.map(Part::Thinking).into_iter().chain(text.map(Part::Text)).chain(calls).collect()
}

/// What shows that a thought is this server's own.
pub(super) fn signature(thinking: &str) -> String {
    Digest::of(thinking).to_string()
}

/// The message as it stands at the beginning of a stream.
fn message(said: &Said) -> Value {
    json!({
        "id": format!("msg_01{}", said.id),
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(said, 1),
    })
}

fn stop_reason(said: &Said) -> &'static str {
    match said.stop {
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Other => "refusal",
        _ if !said.calls.is_empty() => "tool_use",
        _ => "end_turn",
    }
}

/// Unlike with others, what was cached is not counted among the input.
fn usage(said: &Said, output: u64) -> Value {
    let tokens = said.tokens;
    json!({
        "input_tokens": tokens.input.saturating_sub(tokens.cached + tokens.cache_written),
        "cache_creation_input_tokens": tokens.cache_written,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": output,
        "service_tier": "standard",
    })
}
