//! Ollama: requests and responses.

mod requests;
mod streams;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{ContentBlock, Message, ModelRequest, Tool};
use toolcrib_models::{Vendor, VendorModel, VendorModelBuilder};

use crate::support::{ReceivedAnswer, ReceivedRequest, Reply, Server, ask, request, tool};

const DONE: &str = r#"{"model":"m","message":{"role":"assistant","content":"ok"},"done":true,"done_reason":"stop"}"#;

fn builder(server: &Server) -> VendorModelBuilder {
    VendorModel::builder(Vendor::Ollama, "qwen3:8b").base_url(&server.url)
}

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The sent form of a request.
async fn sent_by(
    settings: impl FnOnce(VendorModelBuilder) -> VendorModelBuilder,
    request: ModelRequest,
) -> ReceivedRequest {
    let server = Server::start([Reply::lines(lines(&[DONE]))]).await;
    let model = settings(builder(&server)).build().unwrap();
    ask(&Arc::new(model), request).await.outcome.unwrap();
    server.last()
}

async fn sent(request: ModelRequest) -> Value {
    sent_by(|builder| builder, request).await.json()
}

/// The result of a response in these lines.
async fn heard(stream: &[&str]) -> ReceivedAnswer {
    let server = Server::start([Reply::lines(lines(stream))]).await;
    let model = builder(&server).build().unwrap();
    ask(&Arc::new(model), request(vec![Message::user("Hi")], tools())).await
}

fn tools() -> Vec<Tool> {
    let order = json!({
        "type": "object",
        "properties": {"order_id": {"type": "integer", "minimum": 1}},
        "required": ["order_id"],
        "additionalProperties": false,
    });
    vec![tool("find_order", "One order.", order)]
}

fn result(name: &str, text: &str, blocks: &[ContentBlock], is_error: bool) -> Message {
    Message::Tool {
        call_id: "c".into(),
        name: name.into(),
        text: text.into(),
        blocks: blocks.into(),
        is_error,
        untrusted: false,
    }
}

/// An answer with every part.
const REASONED: [&str; 6] = [
    r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"I need "},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"both."},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"I look "},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"bÖth up."},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"find_order","arguments":{"order_id":1042,"b":1}}},{"id":"x","function":{"index":0,"name":"find_order","arguments":"{\"order_id\":7}"}}]},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"find_order"}}]},"done_reason":"stop","done":true,"prompt_eval_count":80,"eval_count":34}"#,
];
