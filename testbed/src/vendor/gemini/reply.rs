//! How Gemini answers.

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::{Digest, StopReason};

use crate::{
    said::{Said, as_object, pieces},
    server::Settings,
    vendor::{set, sse_data},
};

/// The answer in one piece.
pub(crate) fn whole(said: &Said, settings: &Settings) -> Value {
    let mut parts = Vec::new();
    parts.extend(thoughts(said).map(|text| json!({ "text": text, "thought": true })));
    if !said.text.is_empty() {
        parts.push(json!({ "text": said.text }));
    }
    parts.extend(calls(said, settings));
    answer(said, &parts, true)
}

/// The answer as events, or as one array of them where `alt=sse` was not asked for. Each call
/// comes whole.
pub(crate) fn stream(said: &Said, settings: &Settings, as_events: bool) -> Vec<Bytes> {
    let cut = |text| pieces(text, settings.fragment_chars).into_iter();
    let mut parts: Vec<Value> = Vec::new();
    if let Some(text) = thoughts(said) {
        parts.extend(cut(text).map(|piece| json!({ "text": piece, "thought": true })));
    }
    parts.extend(cut(&said.text).map(|piece| json!({ "text": piece })));
    parts.extend(calls(said, settings));
    let mut answers: Vec<Value> =
        parts.into_iter().map(|part| answer(said, &[part], false)).collect();
    answers.push(answer(said, &[json!({ "text": "" })], true));
    if as_events {
        return answers.iter().map(|answer| sse_data(&answer.to_string())).collect();
    }
    let last = answers.len().saturating_sub(1);
    let answers = answers.iter().enumerate();
    let answers = answers.map(|(i, answer)| {
        let (before, after) =
            (if i == 0 { "[" } else { ",\r\n" }, if i == last { "]" } else { "" });
        Bytes::from(format!("{before}{answer}{after}"))
    });
    answers.collect()
}

fn thoughts(said: &Said) -> Option<&str> {
    Some(&*said.reasoning).filter(|text| said.form.thoughts && !text.is_empty())
}

/// The calls, or none of them where one's arguments are no JSON.
fn calls(said: &Said, settings: &Settings) -> Vec<Value> {
    let calls = said.calls.iter().enumerate().map(|(i, call)| {
        let mut function = json!({ "name": call.name, "args": as_object(&call.arguments)? });
        if settings.call_ids {
            set(&mut function, "id", call.id.as_str());
        }
        let mut part = json!({ "functionCall": function });
        if settings.thoughts && i == 0 {
            set(&mut part, "thoughtSignature", signature(&call.name));
        }
        Some(part)
    });
    calls.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// What shows that a call is this server's own. Hexadecimal digits are base64 too.
pub(super) fn signature(function: &str) -> String {
    Digest::of(function).to_string()
}

fn answer(said: &Said, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if is_last {
        set(&mut candidate, "finishReason", finish_reason(said));
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(said),
        "modelVersion": said.model,
        "responseId": said.id,
    })
}

fn finish_reason(said: &Said) -> &'static str {
    match said.stop {
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::Other => "OTHER",
        _ if said.calls.iter().any(|call| as_object(&call.arguments).is_none()) => {
            "MALFORMED_FUNCTION_CALL"
        }
        _ => "STOP",
    }
}

fn usage(said: &Said) -> Value {
    let tokens = said.tokens;
    let mut usage = json!({
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": tokens.output.saturating_sub(tokens.thoughts),
        "totalTokenCount": tokens.input.saturating_add(tokens.output),
        "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": tokens.input }],
    });
    // What is zero is left out.
    if tokens.cached > 0 {
        set(&mut usage, "cachedContentTokenCount", tokens.cached);
    }
    if tokens.thoughts > 0 {
        set(&mut usage, "thoughtsTokenCount", tokens.thoughts);
    }
    usage
}
