//! OpenAI's Chat Completions: requests, responses and errors. Its Responses are in `responses`.

mod answer;
mod calls;
mod refusal;
mod request;
mod responses;
mod schema;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_core::{
    ContentBlock, Message, ModelErrorClass, ModelRequest, ModelResponse, Secret, StopReason, Tool,
    ToolCall, ToolChoice, ToolName, VendorContent,
};
use toolcrib_models::{ReasoningEffort, Vendor, VendorModel, VendorModelBuilder};

use crate::support::{ReceivedAnswer, ReceivedRequest, Reply, Server, ask, request, tool};

/// The path of a server's list of models.
fn base_url(server: &Server) -> String {
    format!("{}/v1", server.url)
}

/// A model of the server.
fn model(server: &Server, name: &str) -> VendorModelBuilder {
    VendorModel::builder(Vendor::OpenAi, name)
        .base_url(base_url(server))
        .key(Secret::new("sk-test"))
}

/// The request to a model of that name.
async fn sent_by(
    request: ModelRequest,
    name: &str,
    set: impl FnOnce(VendorModelBuilder) -> VendorModelBuilder,
) -> ReceivedRequest {
    let server = Server::start([Reply::events(stream(&[text("Hi.")], "stop"))]).await;
    let model = Arc::new(set(model(&server, name)).build().unwrap());
    ask(&model, request).await.outcome.unwrap();
    server.last()
}

async fn sent(request: ModelRequest) -> Value {
    sent_by(request, "test-model", |builder| builder).await.json()
}

async fn heard_of(reply: Reply) -> ReceivedAnswer {
    let server = Server::start([reply]).await;
    ask(&Arc::new(model(&server, "test-model").build().unwrap()), hello()).await
}

/// The result of reading a stream.
async fn heard(stream: &str) -> ReceivedAnswer {
    heard_of(Reply::events(stream)).await
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

/// The prefix of every image of that kind.
const PNG: &[u8] = toolcrib_testbed::images::PNG;

/// [`PNG`] as requests contain it.
fn png_url() -> String {
    format!("data:image/png;base64,{}", toolcrib_testbed::images::PNG_BASE64)
}

fn assistant(text: &str, ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| ToolCall::new(*id, "find_order", json!({ "id": 1 })));
    Message::assistant(text, calls.collect::<Vec<_>>())
}

fn with_vendor(message: Message, vendor: &str, content: Value) -> Message {
    let Message::Assistant { text, calls, .. } = message else { panic!("an assistant's") };
    let vendor = VendorContent { vendor: vendor.into(), content };
    Message::Assistant { text, calls, vendor: Some(Arc::new(vendor)) }
}

fn result(id: &str, text: &str) -> Message {
    result_with(id, text, false, Vec::new())
}

fn result_with(id: &str, text: &str, is_error: bool, blocks: Vec<ContentBlock>) -> Message {
    Message::Tool {
        call_id: id.into(),
        name: "find_order".into(),
        text: text.into(),
        blocks: blocks.into(),
        is_error,
        untrusted: false,
    }
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn choice(choice: &Value) -> String {
    event(&json!({ "object": "chat.completion.chunk", "choices": [choice], "usage": null }))
}

fn delta(delta: &Value) -> String {
    choice(&json!({ "index": 0, "delta": delta, "finish_reason": null }))
}

fn text(text: &str) -> String {
    delta(&json!({ "content": text }))
}

fn calls(fragments: &Value) -> String {
    delta(&json!({ "tool_calls": fragments }))
}

fn stopped(reason: &str) -> String {
    choice(&json!({ "index": 0, "delta": {}, "finish_reason": reason }))
}

fn usage(usage: &Value) -> String {
    event(&json!({ "choices": [], "usage": usage }))
}

const DONE: &str = "data: [DONE]\n\n";

fn stream(deltas: &[String], reason: &str) -> String {
    let begin = delta(&json!({ "role": "assistant", "content": "", "refusal": null }));
    let used = usage(&json!({
        "prompt_tokens": 120, "completion_tokens": 31, "total_tokens": 151,
        "prompt_tokens_details": { "cached_tokens": 100 },
        "completion_tokens_details": { "reasoning_tokens": 20 },
    }));
    format!("{begin}{}{}{used}{DONE}", deltas.concat(), stopped(reason))
}

/// Reasoning, text and two calls, in pieces.
fn rich() -> String {
    stream(
        &[
            delta(&json!({ "reasoning_content": "First the order; " })),
            delta(&json!({ "reasoning_content": "größer." })),
            text("Ich schaue "),
            text("nach 👀."),
            calls(&json!([{ "index": 0, "id": "call_1", "type": "function",
                "function": { "name": "find_order", "arguments": "" } }])),
            calls(&json!([{ "index": 0, "function": { "arguments": "{\"id\": 10" } }])),
            calls(&json!([{ "index": 1, "id": "call_2", "type": "function",
                "function": { "name": "find_order", "arguments": "{}" } }])),
            calls(&json!([{ "index": 0, "function": { "arguments": "42}" } }])),
        ],
        "tool_calls",
    )
}

fn rich_response(server: &Server) -> ModelResponse {
    let mut response = ModelResponse {
        text: "Ich schaue nach 👀.".to_owned(),
        calls: vec![
            ToolCall::unparsed("call_1", "find_order", "{\"id\": 1042}"),
            ToolCall::unparsed("call_2", "find_order", "{}"),
        ],
        vendor: Some(Arc::new(VendorContent {
            vendor: "openai".into(),
            content: json!({
                "server": base_url(server), "model": "test-model",
                "reasoning_content": "First the order; größer.", "calls": [null, null],
            }),
        })),
        ..ModelResponse::default()
    };
    response.usage.input_tokens = 120;
    response.usage.cached_input_tokens = 100;
    response.usage.output_tokens = 31;
    response
}

/// The calls of an answer as (id, name, arguments).
fn said(response: &ModelResponse) -> Value {
    let all = response.calls.iter();
    all.map(|call| json!([call.id, call.name, serde_json::to_value(&call.arguments).unwrap()]))
        .collect()
}

#[tokio::test]
async fn models_are_listed() {
    let lists = [
        json!({ "object": "list", "data": [{ "id": "a", "object": "model" }, {}, { "id": "b" }] }),
        json!([{ "id": "a" }, { "id": "b" }]),
        json!({ "models": [{ "name": "a" }, "b"] }),
    ];
    for list in lists {
        let server = Server::start([Reply::json(200, &list.to_string())]).await;
        let model = model(&server, "test-model").build().unwrap();
        assert_eq!(model.list_models().await.unwrap(), ["a", "b"]);
        assert_eq!(server.last().line(), "GET /v1/models");
        assert_eq!(server.last().header("authorization"), Some("Bearer sk-test"));
    }
}
