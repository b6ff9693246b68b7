//! Responses in the vendors' streaming formats, frame by frame, so that tests can break them.

use serde_json::{Value, json, value::RawValue};
use toolcrib_models::Vendor;
use toolcrib_testbed::Reply;

/// A model's answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// The text, in the pieces in which it comes.
    pub(crate) texts: Vec<String>,
    pub(crate) calls: Vec<AnswerCall>,
    /// Whether it stops at its token limit.
    pub(crate) is_cut: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct AnswerCall {
    /// Ollama and Gemini may give none.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    /// The arguments in pieces; should be JSON.
    pub(crate) arguments: Vec<String>,
}

impl Answer {
    pub(crate) fn text(pieces: &[&str]) -> Self {
        Self { texts: pieces.iter().map(|&piece| piece.to_owned()).collect(), ..Self::default() }
    }

    pub(crate) fn calling(mut self, id: &str, name: &str, arguments: &[&str]) -> Self {
        self.calls.push(AnswerCall {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            arguments: arguments.iter().map(|&piece| piece.to_owned()).collect(),
        });
        self
    }
}

/// A 200 that begins a stream of that vendor's.
pub(crate) fn reply(vendor: Vendor) -> Reply {
    match vendor {
        Vendor::Ollama => Reply::ndjson(),
        _ => Reply::sse(),
    }
}

/// A whole answer, frame by frame.
pub(crate) fn frames(vendor: Vendor, said: &Answer) -> Vec<String> {
    let mut frames = beginning(vendor);
    match vendor {
        Vendor::OpenAi => openai(said, &mut frames),
        Vendor::Anthropic => anthropic(said, &mut frames),
        Vendor::Gemini => gemini(said, &mut frames),
        Vendor::Ollama => ollama(said, &mut frames),
        other => panic!("a vendor without a wire: {other}"),
    }
    frames.extend(end(vendor, said));
    frames
}

/// The frames before the answer.
pub(crate) fn beginning(vendor: Vendor) -> Vec<String> {
    let usage = json!({ "input_tokens": 7, "output_tokens": 1 });
    match vendor {
        Vendor::Anthropic => vec![frame(
            vendor,
            &json!({ "type": "message_start", "message": { "role": "assistant", "usage": usage } }),
        )],
        _ => Vec::new(),
    }
}

/// One more piece of text. Anthropic's belongs to the block that it opens.
pub(crate) fn text(vendor: Vendor, piece: &str) -> String {
    match vendor {
        Vendor::OpenAi => frame(vendor, &choice(&json!({ "content": piece }), None)),
        Vendor::Anthropic => [
            started(0, &json!({ "type": "text", "text": piece })),
            frame(vendor, &json!({ "type": "content_block_stop", "index": 0 })),
        ]
        .concat(),
        Vendor::Gemini => frame(vendor, &candidate(&[json!({ "text": piece })], None)),
        _ => frame(vendor, &json!({ "message": { "content": piece }, "done": false })),
    }
}

/// The frames after the answer.
pub(crate) fn end(vendor: Vendor, said: &Answer) -> Vec<String> {
    let reason =
        |finished: &'static str, cut: &'static str| if said.is_cut { cut } else { finished };
    match vendor {
        Vendor::OpenAi => {
            let finished = if said.calls.is_empty() { "stop" } else { "tool_calls" };
            vec![
                frame(vendor, &choice(&json!({}), Some(reason(finished, "length")))),
                frame(
                    vendor,
                    &json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3 } }),
                ),
                "data: [DONE]\n\n".to_owned(),
            ]
        }
        Vendor::Anthropic => {
            let finished = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
            let delta = json!({ "stop_reason": reason(finished, "max_tokens") });
            vec![
                frame(
                    vendor,
                    &json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 3 } }),
                ),
                frame(vendor, &json!({ "type": "message_stop" })),
            ]
        }
        Vendor::Gemini => {
            let mut last = candidate(&[], Some(reason("STOP", "MAX_TOKENS")));
            last["usageMetadata"] = json!({ "promptTokenCount": 7, "candidatesTokenCount": 3 });
            vec![frame(vendor, &last)]
        }
        _ => vec![frame(
            vendor,
            &json!({ "message": { "content": "" }, "done": true, "prompt_eval_count": 7,
                "eval_count": 3, "done_reason": reason("stop", "length") }),
        )],
    }
}

/// An error in the midst of an answer.
pub(crate) fn error(vendor: Vendor, message: &str) -> String {
    frame(vendor, &error_body(vendor, message))
}

/// The body of a refusal.
pub(crate) fn error_body(vendor: Vendor, message: &str) -> Value {
    match vendor {
        Vendor::OpenAi => {
            json!({ "error": { "message": message, "type": "made_up", "code": null } })
        }
        Vendor::Anthropic => {
            json!({ "type": "error", "error": { "type": "made_up", "message": message } })
        }
        Vendor::Gemini => json!({ "error": { "message": message, "status": "MADE_UP" } }),
        _ => json!({ "error": message }),
    }
}

/// A frame without content that keeps the connection alive.
pub(crate) fn keep_alive(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Ollama => "\n",
        Vendor::Anthropic => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        _ => ": keep-alive\n\n",
    }
}

/// One message of that vendor's stream.
pub(crate) fn frame(vendor: Vendor, json: &Value) -> String {
    match vendor {
        Vendor::Ollama => format!("{json}\n"),
        Vendor::Anthropic => {
            format!("event: {}\ndata: {json}\n\n", json["type"].as_str().unwrap_or_default())
        }
        _ => format!("data: {json}\n\n"),
    }
}

fn choice(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }] })
}

fn candidate(parts: &[Value], reason: Option<&str>) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    json!({ "candidates": [candidate] })
}

fn started(index: usize, block: &Value) -> String {
    let event = json!({ "type": "content_block_start", "index": index, "content_block": block });
    frame(Vendor::Anthropic, &event)
}

fn openai(said: &Answer, frames: &mut Vec<String>) {
    let vendor = Vendor::OpenAi;
    frames.extend(said.texts.iter().map(|piece| text(vendor, piece)));
    for (index, call) in said.calls.iter().enumerate() {
        let fragment =
            |fragment: Value| frame(vendor, &choice(&json!({ "tool_calls": [fragment] }), None));
        frames.push(fragment(json!({ "index": index, "id": call.id, "type": "function",
            "function": { "name": call.name, "arguments": "" } })));
        frames.extend(
            call.arguments.iter().map(|piece| {
                fragment(json!({ "index": index, "function": { "arguments": piece } }))
            }),
        );
    }
}

fn anthropic(said: &Answer, frames: &mut Vec<String>) {
    let vendor = Vendor::Anthropic;
    let event = |index: usize, kind: &str, delta: Value| {
        frame(vendor, &json!({ "type": kind, "index": index, "delta": delta }))
    };
    if !said.texts.is_empty() {
        frames.push(started(0, &json!({ "type": "text", "text": "" })));
        frames.extend(said.texts.iter().map(|piece| {
            event(0, "content_block_delta", json!({ "type": "text_delta", "text": piece }))
        }));
        frames.push(event(0, "content_block_stop", Value::Null));
    }
    for (index, call) in (1..).zip(&said.calls) {
        frames.push(started(
            index,
            &json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} }),
        ));
        frames.extend(call.arguments.iter().map(|piece| {
            let delta = json!({ "type": "input_json_delta", "partial_json": piece });
            event(index, "content_block_delta", delta)
        }));
        frames.push(event(index, "content_block_stop", Value::Null));
    }
}

fn gemini(said: &Answer, frames: &mut Vec<String>) {
    frames.extend(said.texts.iter().map(|piece| text(Vendor::Gemini, piece)));
    frames.extend(said.calls.iter().map(|call| {
        let id = call.id.as_ref().map_or_else(String::new, |id| format!("\"id\":{},", json!(id)));
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{{id}\
             \"name\":{},\"args\":{}}}}}]}}}}]}}\n\n",
            json!(call.name),
            whole(call)
        )
    }));
}

fn ollama(said: &Answer, frames: &mut Vec<String>) {
    frames.extend(said.texts.iter().map(|piece| text(Vendor::Ollama, piece)));
    frames.extend(said.calls.iter().map(|call| {
        format!(
            "{{\"message\":{{\"tool_calls\":[{{\"id\":{},\"function\":{{\"name\":{},\
             \"arguments\":{}}}}}]}}}}\n",
            json!(call.id),
            json!(call.name),
            whole(call)
        )
    }));
}

/// The arguments where they come in one piece: as they are if they are JSON of any kind.
fn whole(call: &AnswerCall) -> String {
    let written = call.arguments.concat();
    match serde_json::from_str::<&RawValue>(&written) {
        Ok(raw) => raw.get().replace(['\n', '\r'], " "),
        Err(_) => json!(written).to_string(),
    }
}
