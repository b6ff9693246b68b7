//! How OpenAI answers.

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::StopReason;

use super::CREATED;
use crate::{
    said::{Said, SaidCall, pieces},
    server::Settings,
    vendor::{set, sse_data},
};

/// The answer in one piece.
pub(crate) fn whole(said: &Said) -> Value {
    let content = if said.text.is_empty() && !said.calls.is_empty() {
        Value::Null
    } else {
        said.text.as_str().into()
    };
    let mut message =
        json!({ "role": "assistant", "content": content, "refusal": null, "annotations": [] });
    if !said.calls.is_empty() {
        set(&mut message, "tool_calls", said.calls.iter().map(call).collect::<Value>());
    }
    if shows_reasoning(said) {
        set(&mut message, "reasoning_content", said.reasoning.as_str());
    }
    let mut answer = head(said, "chat.completion");
    set(
        &mut answer,
        "choices",
        json!([{
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(said),
        }]),
    );
    set(&mut answer, "usage", usage(said));
    answer
}

/// The answer as events. Calls come one after the other, each in pieces, or a piece of each in
/// turn.
pub(crate) fn stream(said: &Said, settings: &Settings) -> Vec<Bytes> {
    let cut = |text| pieces(text, settings.fragment_chars);
    let mut chunks =
        vec![delta(said, &json!({ "role": "assistant", "content": "", "refusal": null }))];
    if shows_reasoning(said) {
        let pieces = cut(&said.reasoning).into_iter();
        chunks.extend(pieces.map(|piece| delta(said, &json!({ "reasoning_content": piece }))));
    }
    let text = cut(&said.text).into_iter();
    chunks.extend(text.map(|piece| delta(said, &json!({ "content": piece }))));
    let mut calls: Vec<Vec<Value>> = Vec::new();
    for (index, call) in said.calls.iter().enumerate() {
        let begin = json!([{
            "index": index, "id": call.id, "type": "function",
            "function": { "name": call.name, "arguments": "" },
        }]);
        let more = cut(&call.arguments)
            .into_iter()
            .map(|piece| json!([{ "index": index, "function": { "arguments": piece } }]));
        calls.push(std::iter::once(begin).chain(more).collect());
    }
    let calls = if settings.interleave_calls { in_turn(&calls) } else { calls.concat() };
    chunks.extend(calls.into_iter().map(|calls| delta(said, &json!({ "tool_calls": calls }))));
    chunks.push(chunk(
        said,
        json!([{
            "index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_reason(said),
        }]),
    ));
    if said.form.usage {
        let mut last = chunk(said, json!([]));
        set(&mut last, "usage", usage(said));
        chunks.push(last);
    }
    let events = chunks.iter().map(|chunk| sse_data(&chunk.to_string()));
    events.chain([sse_data("[DONE]")]).collect()
}

/// One item of each list in turn.
fn in_turn(lists: &[Vec<Value>]) -> Vec<Value> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let rounds = (0..longest).flat_map(|i| lists.iter().filter_map(move |list| list.get(i)));
    rounds.cloned().collect()
}

/// The official server shows no reasoning; servers that speak its protocol do, in this field.
fn shows_reasoning(said: &Said) -> bool {
    !said.reasoning.is_empty()
}

fn call(call: &SaidCall) -> Value {
    json!({
        "id": call.id, "type": "function",
        "function": { "name": call.name, "arguments": call.arguments },
    })
}

fn delta(said: &Said, delta: &Value) -> Value {
    chunk(said, json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }]))
}

fn chunk(said: &Said, choices: Value) -> Value {
    let mut chunk = head(said, "chat.completion.chunk");
    set(&mut chunk, "choices", choices);
    if said.form.usage {
        set(&mut chunk, "usage", Value::Null);
    }
    chunk
}

fn head(said: &Said, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", said.id),
        "object": object,
        "created": CREATED,
        "model": said.model,
        "service_tier": "default",
        "system_fingerprint": "fp_testbed",
    })
}

fn finish_reason(said: &Said) -> &'static str {
    match said.stop {
        StopReason::MaxTokens => "length",
        StopReason::Other => "content_filter",
        _ if !said.calls.is_empty() => "tool_calls",
        _ => "stop",
    }
}

fn usage(said: &Said) -> Value {
    let tokens = said.tokens;
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input.saturating_add(tokens.output),
        "prompt_tokens_details": { "cached_tokens": tokens.cached, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": tokens.thoughts, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}
