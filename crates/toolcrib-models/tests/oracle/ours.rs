//! The same conversations with our adapters.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::runtime::{self, Runtime};
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{
    Arguments, CALL_TOOL, ContentBlock, Menu, Message, Model, ModelChunk, ModelError, ModelRequest,
    ModelResponse, SEARCH_TOOLS, Secret, StopReason, Tool, ToolCall, ToolChoice, ToolName,
};
use toolcrib_models::{ReasoningEffort, VendorModel};

use super::{api::Api, case::Case};

/// How long an answer may be.
pub(crate) const MAX_TOKENS: u32 = 1000;

pub(crate) struct Ours {
    api: Api,
    base_url: String,
    /// One for all: loading the machine's certificate authorities takes time.
    client: HttpClient,
    runtime: Runtime,
}

impl Ours {
    pub(crate) fn new(api: Api, base_url: &str) -> Self {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let loopback = "127.0.0.0/8".parse().unwrap();
        let client = HttpClient::builder().allow_addresses([loopback]).build();
        Self { api, base_url: base_url.to_owned(), client, runtime }
    }

    /// Plays a conversation; returns the result of each request. It ends with the first error.
    pub(crate) fn hold(&self, case: &Case, model: &str) -> Vec<Value> {
        let model = Arc::new(self.model(case, model));
        let mut outcomes = Vec::new();
        let mut messages = Vec::new();
        let mut calls: Vec<ToolCall> = Vec::new();
        for message in case.json["messages"].as_array().unwrap() {
            let said = match (message["role"].as_str().unwrap(), message["heard"] == true) {
                ("assistant", true) => match self.ask(&model, case, &messages, &mut outcomes) {
                    Some(answer) => heard(answer, messages.len()),
                    None => return outcomes,
                },
                ("assistant", false) => Message::assistant(text(message), given(message)),
                ("user", _) => Message::user(text(message)),
                (_, _) => result(message, &calls),
            };
            if let Message::Assistant { calls: asked, .. } = &said {
                calls.clone_from(asked);
            }
            messages.push(said);
        }
        self.ask(&model, case, &messages, &mut outcomes);
        outcomes
    }

    fn model(&self, case: &Case, name: &str) -> VendorModel {
        let mut model = self
            .api
            .of(VendorModel::builder(self.api.vendor(), name))
            .base_url(&self.base_url)
            .key(Secret::new("a-dummy-key"))
            .client(self.client.clone())
            .max_output_tokens(MAX_TOKENS);
        let settings = &case.json["settings"];
        if let Some(temperature) = settings["temperature"].as_f64() {
            model = model.temperature(temperature);
        }
        if let Some(effort) = settings["reasoning"].as_str() {
            assert_eq!(effort, "low");
            model = model.reasoning(ReasoningEffort::Low);
        }
        if let Some(send) = settings["result_blocks"].as_bool() {
            model = model.result_blocks(send);
        }
        let has_search = matches!(self.api, Api::Anthropic | Api::Responses);
        if has_search && case.json["deferred"].is_array() {
            model = model.tool_search(true);
        }
        model.build().unwrap()
    }

    fn ask(
        &self,
        model: &Arc<VendorModel>,
        case: &Case,
        messages: &[Message],
        outcomes: &mut Vec<Value>,
    ) -> Option<ModelResponse> {
        let request = ModelRequest {
            system: case.json["system"].as_str().unwrap().into(),
            messages: Arc::new(messages.to_vec()),
            menu: Arc::new(menu(case, messages)),
            tool_choice: choice(&case.json["tool_choice"]),
            sent_parts: None,
        };
        let chunks = self
            .runtime
            .block_on(async { Arc::clone(model).respond(request).collect::<Vec<_>>().await });
        let (mut text, mut reasoning) = (String::new(), String::new());
        for chunk in chunks {
            match chunk {
                Ok(ModelChunk::Text(piece)) => text.push_str(&piece),
                Ok(ModelChunk::Reasoning(piece)) => reasoning.push_str(&piece),
                Ok(ModelChunk::Done(response)) => {
                    assert_eq!(response.text, text, "the pieces are not the whole: {}", case.name);
                    outcomes.push(outcome(&response, &reasoning));
                    return Some(response);
                }
                Err(error) => {
                    outcomes.push(failed(&error));
                    return None;
                }
                Ok(other) => panic!("what is {other:?}?"),
            }
        }
        panic!("neither an answer nor an error: {}", case.name);
    }
}

fn outcome(response: &ModelResponse, reasoning: &str) -> Value {
    let calls: Vec<_> = response
        .calls
        .iter()
        .map(|call| {
            let arguments = match &call.arguments {
                Arguments::Json(value) => value.clone(),
                Arguments::Text(text) => {
                    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
                }
            };
            let id = (!call.id.is_empty()).then_some(&call.id);
            json!({ "id": id, "name": call.name, "arguments": arguments })
        })
        .collect();
    let stop = match response.stop {
        StopReason::Finished => "finished",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        _ => "other",
    };
    json!({
        "text": response.text,
        "reasoning": reasoning,
        "calls": calls,
        "stop": stop,
        "usage": {
            "input": response.usage.input_tokens,
            "cached": response.usage.cached_input_tokens,
            "output": response.usage.output_tokens,
        },
    })
}

fn failed(error: &ModelError) -> Value {
    json!({ "error": {
        "class": error.class.as_str(),
        "status": error.status,
        "retry_after": error.retry_after.map(|wait| wait.as_secs()),
    } })
}

/// The menu after these messages.
fn menu(case: &Case, messages: &[Message]) -> Menu {
    let tool = |tool: &Value| {
        let name = tool["name"].as_str().unwrap();
        let builder = Tool::builder(name)
            .description(tool["description"].as_str().unwrap())
            .input_schema(tool["input_schema"].clone());
        let builder =
            if [SEARCH_TOOLS, CALL_TOOL].contains(&name) { builder.framework() } else { builder };
        builder.handler(|_: Value, _| async { "never called" }).unwrap()
    };
    let tools = |key: &str| case.json[key].as_array().into_iter().flatten().map(tool).collect();
    let found: Vec<_> = messages.iter().flat_map(Message::found_tools).collect();
    Menu::with_deferred(tools("tools"), tools("deferred")).unwrap().reveal(&found, false)
}

fn choice(choice: &Value) -> ToolChoice {
    match (choice.as_str(), choice["tool"].as_str()) {
        (None | Some("auto"), None) => ToolChoice::Auto,
        (Some("none"), None) => ToolChoice::None,
        (Some("required"), None) => ToolChoice::Required,
        (None, Some(name)) => ToolChoice::Tool(ToolName::new(name).unwrap()),
        _ => panic!("no tool choice: {choice}"),
    }
}

fn text(message: &Value) -> &str {
    message["text"].as_str().unwrap()
}

/// The calls of an assistant's message that a case gives.
fn given(message: &Value) -> Vec<ToolCall> {
    let Some(calls) = message["calls"].as_array() else { return Vec::new() };
    let call = |call: &Value| {
        let word = |key: &str| call[key].as_str().unwrap();
        ToolCall::new(word("id"), word("name"), call["arguments"].clone())
    };
    calls.iter().map(call).collect()
}

/// An answer as the loop keeps it: calls without an id get one.
fn heard(answer: ModelResponse, number: usize) -> Message {
    let ModelResponse { text, mut calls, vendor, .. } = answer;
    for (position, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() {
            call.id = format!("call_{}", number + position).into();
        }
    }
    Message::Assistant { text: text.into(), calls, vendor }
}

/// The result of one of the last calls.
fn result(message: &Value, calls: &[ToolCall]) -> Message {
    let call = &calls[usize::try_from(message["of"].as_u64().unwrap()).unwrap()];
    let image = |image: &Value| {
        let bytes = BASE64_STANDARD.decode(image["data"].as_str().unwrap()).unwrap();
        ContentBlock::image(image["media_type"].as_str().unwrap(), bytes)
    };
    Message::Tool {
        call_id: Arc::clone(&call.id),
        name: Arc::clone(&call.name),
        text: text(message).into(),
        blocks: message["images"].as_array().into_iter().flatten().map(image).collect(),
        is_error: message["is_error"] == true,
        untrusted: false,
    }
}
