//! A client of genai as the model of an agent: vendors and keys are genai's, the tools are the engine's.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::{error::Error, sync::Arc};

use example_frameworks::{heating_off_tool, policy, weather_tool};
use futures::{TryStreamExt as _, stream};
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{self, ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, ToolResponse},
    resolver::{AuthData, Endpoint, ServiceTargetResolver},
};
use serde_json::Value;
use toolcrib::{
    models::{
        Message, Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
        ModelStream, ScriptedModel, Usage,
    },
    prelude::*,
    tool::Arguments,
};
use toolcrib_testbed::ModelServer;

// snippet
struct GenaiModel {
    client: Client,
    name: String,
}

impl Model for GenaiModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        let asked = async move {
            let options = ChatOptions::default()
                .with_capture_content(true)
                .with_capture_tool_calls(true)
                .with_capture_usage(true);
            let request = chat_request(&request);
            let answer = self.client.exec_chat_stream(&*self.name, request, Some(&options)).await;
            Ok::<_, ModelError>(answer.map_err(failed)?.stream.map_err(failed))
        };
        let events = stream::once(asked).try_flatten();
        Box::pin(events.try_filter_map(|event| async move { Ok(chunk(event)) }))
    }
}

/// The conversation and the menu, as genai has them.
fn chat_request(request: &ModelRequest) -> ChatRequest {
    let tools = request.menu.tools().iter().map(|tool| {
        chat::Tool::new(tool.name().to_string())
            .with_description(tool.description())
            .with_schema(tool.input_schema().clone())
    });
    let mut asked = ChatRequest::from_system(&*request.system).with_tools(tools);
    for message in &*request.messages {
        asked = match message {
            Message::User { text, .. } => asked.append_message(ChatMessage::user(&**text)),
            Message::Assistant { text, calls, .. } if calls.is_empty() => {
                asked.append_message(ChatMessage::assistant(&**text))
            }
            Message::Assistant { calls, .. } => {
                asked.append_message(calls.iter().map(wanted).collect::<Vec<_>>())
            }
            Message::Tool { call_id, text, .. } => {
                asked.append_message(ToolResponse::new(&**call_id, &**text))
            }
            _ => asked,
        };
    }
    asked
}

fn wanted(call: &ToolCall) -> chat::ToolCall {
    chat::ToolCall {
        call_id: call.id.to_string(),
        fn_name: call.name.to_string(),
        fn_arguments: match &call.arguments {
            Arguments::Json(arguments) => arguments.clone(),
            Arguments::Text(text) => Value::from(text.as_str()),
        },
        thought_signatures: None,
    }
}

/// A piece of the response; the last one is complete.
fn chunk(event: ChatStreamEvent) -> Option<ModelChunk> {
    match event {
        ChatStreamEvent::Chunk(piece) => Some(ModelChunk::Text(piece.content)),
        ChatStreamEvent::ReasoningChunk(piece) => Some(ModelChunk::Reasoning(piece.content)),
        ChatStreamEvent::End(end) => {
            let count = |tokens: Option<i32>| tokens.and_then(|it| it.try_into().ok()).unwrap_or(0);
            let used = end.captured_usage.clone().unwrap_or_default();
            let usage = Usage {
                input_tokens: count(used.prompt_tokens),
                output_tokens: count(used.completion_tokens),
                cost_usd: None,
                ..Usage::NOTHING
            };
            let text = end.captured_texts().unwrap_or_default().concat();
            let calls = end.captured_into_tool_calls().unwrap_or_default().into_iter();
            let calls =
                calls.map(|call| ToolCall::new(call.call_id, call.fn_name, call.fn_arguments));
            let calls = calls.collect();
            Some(ModelChunk::Done(ModelResponse { text, calls, usage, ..ModelResponse::default() }))
        }
        _ => None,
    }
}

fn failed(error: genai::Error) -> ModelError {
    ModelError::new(ModelErrorClass::Server, error.to_string()).caused_by(error)
}
// end

const SCRIPT: &str = r#"
[[rule]]
not_called = "weather"
calls = [{ tool = "weather", args = { city = "Bergen" } }]

[[rule]]
text = "Take a coat."
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let script = ScriptedModel::from_toml("script", SCRIPT)?;
    let vendor = ModelServer::builder(Arc::new(script)).start().await?;
    let endpoint = Endpoint::from_owned(format!("{}/", vendor.base_url()));
    let resolver = ServiceTargetResolver::from_resolver_fn(
        move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
            let model = ModelIden::new(AdapterKind::OpenAI, target.model.model_name);
            let auth = AuthData::from_single("test-key");
            Ok(ServiceTarget { endpoint: endpoint.clone(), auth, model })
        },
    );

    // snippet
    let client = Client::builder().with_service_target_resolver(resolver).build()?;
    let model = GenaiModel { client, name: "test-model".to_owned() };
    let agent = Agent::builder().model(model).policy(policy());
    let agent = agent.tool(weather_tool()).tool(heating_off_tool()).build()?;
    let outcome = agent.run("Warm enough in Bergen?", TurnOptions::default()).await;
    // end

    for call in &outcome.tool_calls {
        println!("{} -> {}", call.name, call.text);
    }
    println!("answer: {}", outcome.into_answer()?);
    Ok(())
}
