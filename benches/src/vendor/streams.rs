//! Responses in the vendors' streaming formats.

use serde_json::{Value, json};

use super::format::Wire;
use crate::runs::ITERATIONS;

/// The arguments of a call, in pieces of typical size.
const ARGUMENTS: [&str; 6] = ["{\"", "number", "\":", " ", "104", "2}"];

/// A model's answer to one request.
enum Said {
    /// A call, with this id if the vendor has ids.
    Call { id: String },
    /// The end.
    Done,
}

/// The responses of a whole run: a call of tool 7 for each iteration, then text.
pub fn answers(wire: Wire) -> Vec<Vec<u8>> {
    let calls = (0..ITERATIONS).map(|number| Said::Call { id: format!("call_{number}") });
    calls.chain([Said::Done]).map(|said| response(wire, &said)).collect()
}

/// Each event is a separate chunk, and all are written at once.
fn response(wire: Wire, said: &Said) -> Vec<u8> {
    let media_type = match wire {
        Wire::Ollama => "application/x-ndjson",
        _ => "text/event-stream",
    };
    let mut response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    for event in events(wire, said) {
        response.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
    }
    response.push_str("0\r\n\r\n");
    response.into_bytes()
}

fn events(wire: Wire, said: &Said) -> Vec<String> {
    let data = |data: Value| format!("data: {data}\n\n");
    let named = |event: Value| {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    match wire {
        Wire::Anthropic => anthropic(said).into_iter().map(named).collect(),
        Wire::OpenAiChat => {
            let done = "data: [DONE]\n\n".to_owned();
            chat(said).into_iter().map(data).chain([done]).collect()
        }
        Wire::OpenAiResponses => responses(said).into_iter().map(named).collect(),
        Wire::Gemini => gemini(said).into_iter().map(data).collect(),
        Wire::Ollama => ollama(said).into_iter().map(|line| format!("{line}\n")).collect(),
    }
}

fn chat(said: &Said) -> Vec<Value> {
    let chunk = |choices: Value, usage: Value| {
        json!({
            "id": "chatcmpl-CkQ0Y3Z1fUUgB9bVnGkq5t7d2aXcW",
            "object": "chat.completion.chunk",
            "created": 1_795_000_000,
            "model": "gpt-bench",
            "service_tier": "default",
            "system_fingerprint": null,
            "choices": choices,
            "usage": usage,
        })
    };
    let choice = |delta: Value, reason: Value| {
        let choice = json!({
            "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason,
        });
        chunk(json!([choice]), Value::Null)
    };
    let mut chunks = Vec::new();
    match said {
        Said::Call { id } => {
            let function = json!({ "name": "look_up_0007", "arguments": "" });
            let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
            let delta = json!({ "role": "assistant", "content": null, "tool_calls": [call], "refusal": null });
            chunks.push(choice(delta, Value::Null));
            chunks.extend(ARGUMENTS.map(|piece| {
                let more = json!({ "index": 0, "function": { "arguments": piece } });
                choice(json!({ "tool_calls": [more] }), Value::Null)
            }));
            chunks.push(choice(json!({}), "tool_calls".into()));
        }
        Said::Done => {
            chunks.push(choice(json!({ "role": "assistant", "content": "Done." }), Value::Null));
            chunks.push(choice(json!({}), "stop".into()));
        }
    }
    let usage = json!({
        "prompt_tokens": 1200, "completion_tokens": 18, "total_tokens": 1218,
        "prompt_tokens_details": { "cached_tokens": 1152, "audio_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0, "audio_tokens": 0 },
    });
    chunks.push(chunk(json!([]), usage));
    chunks
}

/// The vendor's own events with the whole response also repeat the request's tools; these do not.
fn responses(said: &Said) -> Vec<Value> {
    const ITEM: &str = "fc_68f5c1b6e0dc8190b7d2f7a5c9a3e1d40a2b";
    let arguments = ARGUMENTS.concat();
    let (begun, pieces, whole, item) = match said {
        Said::Call { id } => {
            let item = |status: &str, arguments: &str| {
                json!({
                    "id": ITEM, "type": "function_call", "status": status,
                    "arguments": arguments, "call_id": id, "name": "look_up_0007",
                })
            };
            let more = |piece: &str| {
                json!({
                    "type": "response.function_call_arguments.delta", "item_id": ITEM,
                    "output_index": 0, "delta": piece, "obfuscation": "x9Kd2mQ7",
                })
            };
            let whole = json!({
                "type": "response.function_call_arguments.done", "item_id": ITEM,
                "output_index": 0, "arguments": arguments,
            });
            let pieces = ARGUMENTS.map(more).to_vec();
            (item("in_progress", ""), pieces, whole, item("completed", &arguments))
        }
        Said::Done => {
            let item = |status: &str, content: Value| {
                json!({
                    "id": ITEM, "type": "message", "status": status, "role": "assistant",
                    "content": content,
                })
            };
            let event = |kind: &str, key: &str| {
                let mut event = json!({
                    "type": kind, "item_id": ITEM, "output_index": 0, "content_index": 0,
                });
                if let Value::Object(event) = &mut event {
                    event.insert(key.to_owned(), "Done.".into());
                }
                event
            };
            let text = json!([{ "type": "output_text", "text": "Done.", "annotations": [] }]);
            (
                item("in_progress", json!([])),
                vec![event("response.output_text.delta", "delta")],
                event("response.output_text.done", "text"),
                item("completed", text),
            )
        }
    };
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": "resp_68f5c1b5d2fc8190a4a9d7a1f2c3b4e50a2b", "object": "response",
            "created_at": 1_795_000_000, "status": status, "background": false, "error": null,
            "incomplete_details": null, "instructions": null, "max_output_tokens": null,
            "model": "gpt-bench", "output": output, "parallel_tool_calls": true,
            "previous_response_id": null, "store": false, "temperature": 1.0,
            "tool_choice": "auto", "top_p": 1.0, "truncation": "disabled", "usage": usage,
        })
    };
    let usage = json!({
        "input_tokens": 1200, "input_tokens_details": { "cached_tokens": 1152 },
        "output_tokens": 18, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 1218,
    });
    let about = |kind: &str, item: &Value| json!({ "type": kind, "output_index": 0, "item": item });
    let begins = || response("in_progress", json!([]), Value::Null);
    let mut events = vec![
        json!({ "type": "response.created", "response": begins() }),
        json!({ "type": "response.in_progress", "response": begins() }),
        about("response.output_item.added", &begun),
    ];
    events.extend(pieces);
    events.extend([
        whole,
        about("response.output_item.done", &item),
        json!({
            "type": "response.completed", "response": response("completed", json!([item]), usage),
        }),
    ]);
    for (number, event) in events.iter_mut().enumerate() {
        if let Value::Object(event) = event {
            event.insert("sequence_number".to_owned(), number.into());
        }
    }
    events
}

fn anthropic(said: &Said) -> Vec<Value> {
    let usage = json!({
        "input_tokens": 3, "cache_creation_input_tokens": 45, "cache_read_input_tokens": 1152,
        "output_tokens": 1, "service_tier": "standard",
    });
    let message = json!({
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
        "model": "claude-bench", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": usage,
    });
    let begin =
        |block: Value| json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let more = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    let mut events = vec![json!({ "type": "message_start", "message": message })];
    let reason = match said {
        Said::Call { id } => {
            let call = json!({ "type": "tool_use", "id": id, "name": "look_up_0007", "input": {} });
            events.extend([begin(call), json!({ "type": "ping" })]);
            events.extend(
                [""].into_iter().chain(ARGUMENTS).map(|piece| {
                    more(json!({ "type": "input_json_delta", "partial_json": piece }))
                }),
            );
            "tool_use"
        }
        Said::Done => {
            events.push(begin(json!({ "type": "text", "text": "" })));
            events.push(more(json!({ "type": "text_delta", "text": "Done." })));
            "end_turn"
        }
    };
    events.extend([
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({
            "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": 34 },
        }),
        json!({ "type": "message_stop" }),
    ]);
    events
}

fn gemini(said: &Said) -> Vec<Value> {
    let part = match said {
        Said::Call { id } => json!({
            "functionCall": { "id": id, "name": "look_up_0007", "args": { "number": 1042 } },
            "thoughtSignature": "CiQBjz1rX4K0Yb8cQ1mJ2uV5sT7wE9xN3aL6pR0dF8hG4kZ2",
        }),
        Said::Done => json!({ "text": "Done." }),
    };
    let candidate = json!({
        "content": { "parts": [part], "role": "model" }, "finishReason": "STOP", "index": 0,
    });
    let usage = json!({
        "promptTokenCount": 1200, "candidatesTokenCount": 18, "totalTokenCount": 1218,
        "cachedContentTokenCount": 1152,
    });
    vec![json!({
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-bench",
        "responseId": "kq5taY3Z1fUUgB9bVnG",
    })]
}

fn ollama(said: &Said) -> Vec<Value> {
    let line = |message: Value, done: Value| {
        let mut line = json!({
            "model": "qwen3", "created_at": "2026-11-22T04:56:00.123456789Z", "message": message,
        });
        if let (Value::Object(line), Value::Object(done)) = (&mut line, done) {
            line.extend(done);
        }
        line
    };
    let message = match said {
        Said::Call { .. } => {
            let function = json!({ "name": "look_up_0007", "arguments": { "number": 1042 } });
            json!({ "role": "assistant", "content": "", "tool_calls": [{ "function": function }] })
        }
        Said::Done => json!({ "role": "assistant", "content": "Done." }),
    };
    let end = json!({
        "done": true, "done_reason": "stop", "total_duration": 812_000_000,
        "load_duration": 12_000_000, "prompt_eval_count": 1200, "prompt_eval_duration": 90_000_000,
        "eval_count": 18, "eval_duration": 700_000_000,
    });
    vec![
        line(message, json!({ "done": false })),
        line(json!({ "role": "assistant", "content": "" }), end),
    ]
}
