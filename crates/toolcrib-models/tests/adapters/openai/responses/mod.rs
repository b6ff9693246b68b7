//! OpenAI's Responses: requests, responses, and content that goes back.

mod answer;
mod back;
mod request;
mod wholes;

use toolcrib_models::OpenAiApi;

use super::*;

/// A model of the server.
fn model(server: &Server, name: &str) -> VendorModelBuilder {
    super::model(server, name).api(OpenAiApi::Responses)
}

/// The request to a model of that name.
async fn sent_by(
    request: ModelRequest,
    name: &str,
    set: impl FnOnce(VendorModelBuilder) -> VendorModelBuilder,
) -> ReceivedRequest {
    let server = Server::start([Reply::events(saying("Hi."))]).await;
    let model = Arc::new(set(model(&server, name)).build().unwrap());
    ask(&model, request).await.outcome.unwrap();
    server.last()
}

async fn sent(request: ModelRequest) -> Value {
    sent_by(request, "test-model", |builder| builder).await.json()
}

/// The items of a conversation, as they are sent.
async fn input(messages: Vec<Message>) -> Value {
    sent(request(messages, vec![find_order()])).await["input"].clone()
}

async fn heard(stream: &str) -> ReceivedAnswer {
    let server = Server::start([Reply::events(stream)]).await;
    ask(&Arc::new(model(&server, "test-model").build().unwrap()), hello()).await
}

async fn answered(stream: &str) -> ModelResponse {
    heard(stream).await.outcome.unwrap()
}

/// An event, with its optional name line.
fn event(kind: &str, fields: Value) -> String {
    let Value::Object(mut data) = fields else { panic!("fields") };
    data.insert("type".to_owned(), kind.into());
    format!("event: {kind}\ndata: {}\n\n", Value::Object(data))
}

fn created() -> String {
    let response = json!({ "status": "in_progress", "output": [], "tools": [{}], "error": null });
    ["response.created", "response.in_progress"]
        .map(|kind| event(kind, json!({ "response": response })))
        .concat()
}

fn added(index: u64, item: &Value) -> String {
    event("response.output_item.added", json!({ "output_index": index, "item": item }))
}

fn done(index: u64, item: &Value) -> String {
    event("response.output_item.done", json!({ "output_index": index, "item": item }))
}

fn text(index: u64, piece: &str) -> String {
    let fields = json!({
        "output_index": index, "item_id": format!("msg_{index}"), "content_index": 0,
        "delta": piece, "logprobs": [], "obfuscation": "x7",
    });
    event("response.output_text.delta", fields)
}

fn arguments(index: u64, piece: &str) -> String {
    let fields = json!({ "output_index": index, "item_id": format!("fc_{index}"), "delta": piece });
    event("response.function_call_arguments.delta", fields)
}

fn summary(index: u64, part: u64, piece: &str) -> String {
    let fields = json!({ "output_index": index, "summary_index": part, "delta": piece });
    event("response.reasoning_summary_text.delta", fields)
}

fn message(id: &str, text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    json!({ "type": "message", "id": id, "role": "assistant", "status": "completed", "content": content })
}

fn call(id: &str, call_id: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": id, "call_id": call_id, "name": "find_order",
        "arguments": arguments, "status": "completed",
    })
}

fn thought(id: &str) -> Value {
    json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": format!("…{id}") })
}

fn usage() -> Value {
    json!({
        "input_tokens": 120, "input_tokens_details": { "cached_tokens": 100, "cache_write_tokens": 9 },
        "output_tokens": 31, "output_tokens_details": { "reasoning_tokens": 20 }, "total_tokens": 151,
    })
}

fn completed(output: &Value) -> String {
    let response = json!({ "status": "completed", "output": output, "usage": usage(),
        "error": null, "incomplete_details": null, "tools": [{ "name": "find_order" }] });
    event("response.completed", json!({ "response": response }))
}

/// A whole answer that is a text.
fn saying(words: &str) -> String {
    let item = message("msg_0", words);
    let begun = added(0, &message("msg_0", ""));
    let whole = completed(&json!([item]));
    [created(), begun, text(0, words), done(0, &item), whole].concat()
}

/// A model's reasoning, text and calls, in pieces.
fn rich() -> String {
    let items = [
        json!({ "type": "reasoning", "id": "rs_0", "encrypted_content": "gAAA", "summary": [
            { "type": "summary_text", "text": "First the order; größer." },
            { "type": "summary_text", "text": "Then both." },
        ]}),
        message("msg_1", "Ich schaue nach 👀."),
        call("fc_2", "call_1", "{\"id\": 1042}"),
        call("fc_3", "call_2", "{}"),
    ];
    let thinks =
        json!({ "type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "gA" });
    [
        created(),
        added(0, &thinks),
        summary(0, 0, "First the order; "),
        summary(0, 0, "größer."),
        summary(0, 1, "Then both."),
        done(0, &items[0]),
        added(1, &message("msg_1", "")),
        text(1, "Ich schaue "),
        text(1, "nach 👀."),
        event(
            "response.output_text.done",
            json!({ "output_index": 1, "text": "Ich schaue nach 👀." }),
        ),
        done(1, &items[1]),
        added(2, &call("fc_2", "call_1", "")),
        arguments(2, "{\"id\": 10"),
        added(3, &call("fc_3", "call_2", "")),
        arguments(2, "42}"),
        event(
            "response.function_call_arguments.done",
            json!({ "output_index": 2, "arguments": "{\"id\": 1042}" }),
        ),
        arguments(3, "{}"),
        done(2, &items[2]),
        done(3, &items[3]),
        completed(&json!(items)),
    ]
    .concat()
}

const RICH_REASONING: &str = "First the order; größer.\n\nThen both.";

fn rich_response(server: &Server) -> ModelResponse {
    let mut response = ModelResponse {
        text: "Ich schaue nach 👀.".to_owned(),
        calls: vec![
            ToolCall::unparsed("call_1", "find_order", "{\"id\": 1042}"),
            ToolCall::unparsed("call_2", "find_order", "{}"),
        ],
        vendor: Some(Arc::new(VendorContent {
            vendor: "openai".into(),
            content: json!({ "server": base_url(server), "model": "test-model", "items": [
                { "type": "reasoning", "id": "rs_0", "encrypted_content": "gAAA", "summary": [
                    { "type": "summary_text", "text": "First the order; größer." },
                    { "type": "summary_text", "text": "Then both." },
                ]},
                { "type": "message", "id": "msg_1", "bytes": 21 },
                { "type": "function_call", "id": "fc_2" },
                { "type": "function_call", "id": "fc_3" },
            ]}),
        })),
        ..ModelResponse::default()
    };
    response.usage.input_tokens = 120;
    response.usage.cached_input_tokens = 100;
    response.usage.output_tokens = 31;
    response
}

#[tokio::test]
async fn the_vendors_own_models_are_spoken_to_by_responses_and_all_others_by_chat_completions() {
    use OpenAiApi::{ChatCompletions, Responses};
    // A proxy sees the path: only the host decides.
    let cases = [
        (None, "/v1/chat/completions"),
        (Some(ChatCompletions), "/v1/chat/completions"),
        (Some(Responses), "/v1/responses"),
    ];
    for (api, path) in cases {
        let server = Server::start([Reply::json(400, "{}")]).await;
        let mut builder = super::model(&server, "gpt-6.2-sol");
        if let Some(api) = api {
            builder = builder.api(api);
        }
        ask(&Arc::new(builder.build().unwrap()), hello()).await.outcome.unwrap_err();
        assert_eq!(server.last().line(), format!("POST {path}"));
    }
    let refused = VendorModel::builder(Vendor::Gemini, "m").api(Responses).build().unwrap_err();
    insta::assert_snapshot!(refused, @"gemini has one API, and `responses` is one of OpenAI's; set none");
}
