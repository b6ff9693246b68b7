//! Anthropic's Messages: requests, responses and errors.

mod caching;
mod refusals;
mod requests;
mod streams;
mod thinking;
mod tool_block;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{ContentBlock, Message, ModelRequest, ModelResponse, Secret, Tool, ToolCall};
use toolcrib_models::{Vendor, VendorModel, VendorModelBuilder};
use toolcrib_testbed::images;

use crate::support::{ReceivedAnswer, ReceivedRequest, Reply, Server, ask, request, tool};

const PNG: &[u8] = images::PNG;

/// A model of the server.
fn model(
    server: &Server,
    set: impl FnOnce(VendorModelBuilder) -> VendorModelBuilder,
) -> Arc<VendorModel> {
    let builder = VendorModel::builder(Vendor::Anthropic, "claude-test")
        .base_url(&server.url)
        .key(Secret::new("sk-ant-test"));
    Arc::new(set(builder).build().unwrap())
}

/// The sent form of a request.
async fn sent_by(
    request: ModelRequest,
    set: impl FnOnce(VendorModelBuilder) -> VendorModelBuilder,
) -> ReceivedRequest {
    let server = Server::start([Reply::events(stream(&[text(0, "Hi.")], "end_turn"))]).await;
    ask(&model(&server, set), request).await.outcome.unwrap();
    server.last()
}

async fn sent(request: ModelRequest) -> Value {
    sent_by(request, |builder| builder).await.json()
}

/// The result of reading a stream.
async fn heard(stream: &str) -> ReceivedAnswer {
    let server = Server::start([Reply::events(stream)]).await;
    ask(&model(&server, |builder| builder), hello()).await
}

async fn answered(stream: &str) -> ModelResponse {
    heard(stream).await.outcome.unwrap()
}

fn hello() -> ModelRequest {
    request(vec![Message::user("Hello.")], vec![find_order()])
}

fn find_order() -> Tool {
    tool(
        "find_order",
        "One order with its charges.",
        json!({ "type": "object", "properties": { "id": { "type": "integer" } } }),
    )
}

fn assistant(text: &str, calls: &[(&str, Value)]) -> Message {
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, arguments)| ToolCall::new(*id, "find_order", arguments.clone()))
        .collect();
    Message::assistant(text, calls)
}

fn result(id: &str, text: &str, is_error: bool, blocks: Vec<ContentBlock>) -> Message {
    Message::Tool {
        call_id: id.into(),
        name: "find_order".into(),
        text: text.into(),
        blocks: blocks.into(),
        is_error,
        untrusted: false,
    }
}

/// One event.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn block(index: u64, start: &Value, deltas: &[Value]) -> String {
    let mut events = event(&json!({
        "type": "content_block_start", "index": index, "content_block": start
    }));
    for delta in deltas {
        events += &event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }
    events + &event(&json!({ "type": "content_block_stop", "index": index }))
}

fn text(index: u64, text: &str) -> String {
    let delta = |piece: &[char]| json!({ "type": "text_delta", "text": String::from_iter(piece) });
    let chars: Vec<_> = text.chars().collect();
    let deltas: Vec<_> = chars.chunks(7).map(delta).collect();
    block(index, &json!({ "type": "text", "text": "" }), &deltas)
}

fn thought(index: u64, text: &str, signature: &str) -> String {
    block(
        index,
        &json!({ "type": "thinking", "thinking": "", "signature": "" }),
        &[
            json!({ "type": "thinking_delta", "thinking": text }),
            json!({ "type": "signature_delta", "signature": signature }),
        ],
    )
}

fn call(index: u64, id: &str, pieces: &[&str]) -> String {
    let delta = |piece: &&str| json!({ "type": "input_json_delta", "partial_json": piece });
    let deltas: Vec<_> = pieces.iter().map(delta).collect();
    block(
        index,
        &json!({ "type": "tool_use", "id": id, "name": "find_order", "input": {} }),
        &deltas,
    )
}

fn started() -> String {
    event(&json!({ "type": "message_start", "message": {
        "id": "msg_1", "role": "assistant", "content": [], "stop_reason": null,
        "usage": {
            "input_tokens": 7, "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 100, "output_tokens": 1,
        },
    }}))
}

fn stopped(reason: &str) -> String {
    event(&json!({
        "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 31 },
    }))
}

fn stream(blocks: &[String], reason: &str) -> String {
    let ping = event(&json!({ "type": "ping" }));
    let end = event(&json!({ "type": "message_stop" }));
    format!("{}{ping}{}{}{end}", started(), blocks.concat(), stopped(reason))
}

/// Thoughts, text and two calls, in pieces.
fn rich() -> String {
    stream(
        &[
            thought(0, "First the order; größer.", "sig/1=="),
            text(1, "Ich schaue nach 👀."),
            call(2, "toolu_1", &["", "{\"id\": 10", "42}"]),
            block(3, &json!({ "type": "redacted_thinking", "data": "c2VjcmV0" }), &[]),
            call(4, "toolu_2", &["{}"]),
        ],
        "tool_use",
    )
}

fn without_breakpoints(body: &str) -> String {
    body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

/// The message that a stream is kept as.
async fn spoken(stream: &str) -> Message {
    let ModelResponse { text, calls, vendor, .. } = answered(stream).await;
    Message::Assistant { text: text.into(), calls, vendor }
}
