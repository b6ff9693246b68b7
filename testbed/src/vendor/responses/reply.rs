//! How Responses answer.

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::StopReason;

use super::{PAIRED, SEAL};
use crate::{
    said::{Said, pieces},
    server::Settings,
    vendor::{openai::CREATED, set},
};

/// The answer in one piece.
pub(crate) fn whole(said: &Said) -> Value {
    response(said, ending(said), &items(said).into_iter().map(|item| item.whole).collect())
}

/// The answer as events: each item is announced, comes in pieces, and once more as a whole.
pub(crate) fn stream(said: &Said, settings: &Settings) -> Vec<Bytes> {
    let mut events = Events::default();
    for kind in ["response.created", "response.in_progress"] {
        let response = response(said, "in_progress", &json!([]));
        events.add(kind, json!({ "response": response }));
    }
    let items = items(said);
    for (index, item) in items.iter().enumerate() {
        let begun = json!({ "output_index": index, "item": item.begun });
        events.add("response.output_item.added", begun);
        let about = json!({ "output_index": index, "item_id": item.whole.get("id") });
        for (kind, more) in item.pieces(settings) {
            let mut event = about.clone();
            for (key, value) in more.as_object().into_iter().flatten() {
                set(&mut event, key, value.clone());
            }
            events.add(kind, event);
        }
        let done = json!({ "output_index": index, "item": item.whole });
        events.add("response.output_item.done", done);
    }
    let output = items.into_iter().map(|item| item.whole).collect();
    let end = ending(said);
    events.add(&format!("response.{end}"), json!({ "response": response(said, end, &output) }));
    events.all
}

#[derive(Default)]
struct Events {
    all: Vec<Bytes>,
}

impl Events {
    fn add(&mut self, kind: &str, mut event: Value) {
        set(&mut event, "type", kind);
        set(&mut event, "sequence_number", self.all.len());
        self.all.push(format!("event: {kind}\ndata: {event}\n\n").into());
    }
}

/// An item as it begins, and as it is in the end.
struct Item {
    begun: Value,
    whole: Value,
    said: Content,
}

enum Content {
    Thought { summary: Option<String> },
    Text(String),
    Arguments(String),
}

impl Item {
    fn of(whole: Value, empty: &[(&str, Value)], said: Content) -> Self {
        let mut begun = whole.clone();
        for (key, value) in empty {
            set(&mut begun, key, value.clone());
        }
        Self { begun, whole, said }
    }

    /// The events between its beginning and its end.
    fn pieces(&self, settings: &Settings) -> Vec<(&'static str, Value)> {
        let cut = |text| pieces(text, settings.fragment_chars).into_iter();
        let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
        match &self.said {
            Content::Thought { summary: None } => Vec::new(),
            Content::Thought { summary: Some(text) } => {
                let part = |text: &str| json!({ "summary_index": 0, "part": { "type": "summary_text", "text": text } });
                let deltas = cut(text).map(|piece| {
                    let delta = json!({ "summary_index": 0, "delta": piece });
                    ("response.reasoning_summary_text.delta", delta)
                });
                std::iter::once(("response.reasoning_summary_part.added", part("")))
                    .chain(deltas)
                    .chain([
                        (
                            "response.reasoning_summary_text.done",
                            json!({ "summary_index": 0, "text": text }),
                        ),
                        ("response.reasoning_summary_part.done", part(text)),
                    ])
                    .collect()
            }
            Content::Text(text) => {
                let of = |key: &str, value: Value| json!({ "content_index": 0, key: value });
                let deltas = cut(text).map(|piece| {
                    let mut delta = of("delta", piece.into());
                    set(&mut delta, "logprobs", json!([]));
                    ("response.output_text.delta", delta)
                });
                std::iter::once(("response.content_part.added", of("part", part(""))))
                    .chain(deltas)
                    .chain([
                        ("response.output_text.done", of("text", text.as_str().into())),
                        ("response.content_part.done", of("part", part(text))),
                    ])
                    .collect()
            }
            Content::Arguments(arguments) => cut(arguments)
                .map(|piece| ("response.function_call_arguments.delta", json!({ "delta": piece })))
                .chain([(
                    "response.function_call_arguments.done",
                    json!({ "arguments": arguments }),
                )])
                .collect(),
        }
    }
}

fn items(said: &Said) -> Vec<Item> {
    let mut items = Vec::new();
    let thinks = !said.reasoning.is_empty();
    if thinks {
        let summary = said.form.thoughts.then(|| said.reasoning.clone());
        let parts: Vec<_> =
            summary.iter().map(|text| json!({ "type": "summary_text", "text": text })).collect();
        let whole = json!({
            "id": format!("rs_{}", said.id), "type": "reasoning", "summary": parts,
            "encrypted_content": format!("{SEAL}{}", said.id),
        });
        // What an item has when it begins is not what goes back.
        let begun = [("summary", json!([])), ("encrypted_content", "unfinished".into())];
        items.push(Item::of(whole, &begun, Content::Thought { summary }));
    }
    // The item behind what was thought belongs to it.
    let mut paired = thinks;
    let mut id = |kind: &str, position: usize| match std::mem::take(&mut paired) {
        true => format!("{kind}_{PAIRED}{}", said.id),
        false => format!("{kind}_{position}{}", said.id),
    };
    if !said.text.is_empty() || said.calls.is_empty() {
        let whole = json!({
            "id": id("msg", 0), "type": "message", "role": "assistant", "status": ending(said),
            "content": [{ "type": "output_text", "text": said.text, "annotations": [], "logprobs": [] }],
        });
        let begun = [("content", json!([])), ("status", "in_progress".into())];
        items.push(Item::of(whole, &begun, Content::Text(said.text.clone())));
    }
    for (position, call) in said.calls.iter().enumerate() {
        let whole = json!({
            "id": id("fc", position + 1), "type": "function_call", "call_id": call.id,
            "name": call.name, "arguments": call.arguments, "status": ending(said),
        });
        let begun = [("arguments", "".into()), ("status", "in_progress".into())];
        items.push(Item::of(whole, &begun, Content::Arguments(call.arguments.clone())));
    }
    items
}

fn ending(said: &Said) -> &'static str {
    match said.stop {
        StopReason::MaxTokens | StopReason::Other => "incomplete",
        _ => "completed",
    }
}

fn response(said: &Said, status: &str, output: &Value) -> Value {
    let reason = match said.stop {
        StopReason::MaxTokens => "max_output_tokens",
        _ => "content_filter",
    };
    let tokens = said.tokens;
    let usage = json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {
            "cached_tokens": tokens.cached, "cache_write_tokens": tokens.cache_written,
        },
        "output_tokens": tokens.output,
        "output_tokens_details": { "reasoning_tokens": tokens.thoughts },
        "total_tokens": tokens.input.saturating_add(tokens.output),
    });
    let has_ended = status != "in_progress";
    json!({
        "id": format!("resp_{}", said.id),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": (status == "incomplete").then(|| json!({ "reason": reason })),
        "model": said.model,
        "output": output,
        "parallel_tool_calls": true,
        "store": false,
        "tool_choice": "auto",
        "tools": [],
        "usage": has_ended.then_some(usage),
    })
}
