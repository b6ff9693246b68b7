//! Gemini: requests and responses.

mod refusals;
mod requests;
mod streams;
mod thoughts;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    ContentBlock, Message, ModelRequest, ModelResponse, Secret, Tool, ToolCall, VendorContent,
};
use toolcrib_models::{Vendor, VendorModel, VendorModelBuilder};

use crate::support::{ReceivedAnswer, ReceivedRequest, Reply, Server, ask, request, tool};

const STOP: &str = r#"{"candidates":[{"content":{"parts":[{"text":"ok"}],"role":"model"},"finishReason":"STOP"}]}"#;

fn builder(server: &Server, model: &str) -> VendorModelBuilder {
    VendorModel::builder(Vendor::Gemini, model)
        .base_url(&server.url)
        .key(Secret::new("a-dummy-key"))
}

fn events(chunks: &[&str]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

/// The sent form of a request.
async fn sent_by(
    model: &str,
    settings: impl FnOnce(VendorModelBuilder) -> VendorModelBuilder,
    request: ModelRequest,
) -> ReceivedRequest {
    let server = Server::start([Reply::events(events(&[STOP]))]).await;
    let model = settings(builder(&server, model)).build().unwrap();
    ask(&Arc::new(model), request).await.outcome.unwrap();
    server.last()
}

async fn sent(request: ModelRequest) -> Value {
    sent_by("gemini-3.8-flash", |builder| builder, request).await.json()
}

/// The result of a response in these chunks.
async fn heard(chunks: &[&str]) -> ReceivedAnswer {
    let server = Server::start([Reply::events(events(chunks))]).await;
    let model = builder(&server, "gemini-3.8-flash").build().unwrap();
    ask(&Arc::new(model), request(vec![Message::user("Hi")], tools())).await
}

fn tools() -> Vec<Tool> {
    let order = json!({
        "type": "object",
        "properties": {"order_id": {"type": "integer", "minimum": 1}},
        "required": ["order_id"],
        "additionalProperties": false,
    });
    vec![
        tool("find_order", "One order.", order),
        tool("3d_view", "A view.", json!({"properties": {"kind": {"const": "wire"}}})),
    ]
}

fn result(id: &str, name: &str, text: &str) -> Message {
    with_blocks(id, name, text, &[], false)
}

fn with_blocks(
    id: &str,
    name: &str,
    text: &str,
    blocks: &[ContentBlock],
    is_error: bool,
) -> Message {
    Message::Tool {
        call_id: id.into(),
        name: name.into(),
        text: text.into(),
        blocks: blocks.into(),
        is_error,
        untrusted: false,
    }
}

fn answered(text: &str, calls: Vec<ToolCall>, vendor: Option<Arc<VendorContent>>) -> Message {
    Message::Assistant { text: text.into(), calls, vendor }
}

/// The answer as it goes into the history, its calls with ids.
fn kept(response: ModelResponse) -> Message {
    let ModelResponse { text, mut calls, vendor, .. } = response;
    for (position, call) in calls.iter_mut().enumerate() {
        call.id = format!("call_{position}").into();
    }
    answered(&text, calls, vendor)
}

/// An answer with all parts that Gemini requires back.
const REASONED: [&str; 6] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"I need ","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":80,"thoughtsTokenCount":14,"totalTokenCount":94}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"both.","thought":true}]},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"I look "}]},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"bÖth up."}, {"text":"","thoughtSignature":"c2lnbmVk"}]},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find_order","args":{"order_id":1042}},"thoughtSignature":"Q2lRQg=="},{"functionCall":{"id":"x","name":"_3d_view","args":{"kind":"wire","b":1}}}]},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find_order"}}]},"index":0,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":80,"cachedContentTokenCount":64,"toolUsePromptTokenCount":5,"candidatesTokenCount":20,"thoughtsTokenCount":14,"totalTokenCount":119}}"#,
];
