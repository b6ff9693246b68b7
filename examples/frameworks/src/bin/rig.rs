//! An engine's tools inside rig: rig drives the loop, the engine offers the tools and makes the calls.
//!
//! Prints the tools of the request, the result that the model received, and rig's answer.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::{error::Error, sync::Arc};

use example_frameworks::engine;
use rig::{
    AgentBuilder,
    message::ToolName,
    providers::openai::{OpenAIConfig, Route},
    tool::{DynamicTool, ToolExecutionError, ToolOutput},
};
use serde_json::json;
use tokio::sync::Mutex;
use toolcrib::{prelude::*, turn::Turn};
use toolcrib_testbed::{CannedServer, Reply};

// snippet
/// The tools that an engine offers, as tools of rig. The turn must live as long as they do.
async fn tools(turn: &mut Turn) -> Result<Vec<DynamicTool>, Box<dyn Error>> {
    let iteration = turn.iteration().await?;
    let menu = Arc::clone(iteration.menu());
    let iteration = Arc::new(Mutex::new((iteration, 0)));
    let tool = |tool: &Tool| {
        let (name, iteration) = (tool.name().to_string(), Arc::clone(&iteration));
        let (description, schema) = (tool.description(), tool.input_schema().clone());
        Ok(DynamicTool::new(ToolName::new(&*name)?, description, schema, move |args| {
            let (name, iteration) = (name.clone(), Arc::clone(&iteration));
            Box::pin(async move {
                let (iteration, calls) = &mut *iteration.lock().await;
                *calls += 1;
                let call = ToolCall::new(format!("rig-{calls}"), name, args);
                let result = iteration.execute(vec![call]).await.remove(0);
                match result.is_ok() {
                    true => Ok(ToolOutput::text(&*result.text)),
                    false => {
                        Err(ToolExecutionError::other("the engine refused or the tool failed")
                            .with_model_feedback(&*result.text))
                    }
                }
            })
        }))
    };
    menu.tools().iter().map(tool).collect()
}
// end

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let vendor = CannedServer::start([
        completion(
            &json!({ "role": "assistant", "content": null, "tool_calls": [{
            "id": "call_1", "type": "function",
            "function": { "name": "weather", "arguments": r#"{"city":"Bergen"}"# },
        }] }),
            "tool_calls",
        ),
        completion(&json!({ "role": "assistant", "content": "Take a coat." }), "stop"),
    ])
    .await?;

    // snippet
    let mut turn = engine()?.turn(TurnOptions::default().principal("guest"))?;
    let config = OpenAIConfig::new("test-key").with_base_url(format!("{}/v1", vendor.url()));
    let model = config.with_route(Route::Chat).client().completion("test-model");
    let agent = AgentBuilder::new(model).dynamic_tools(tools(&mut turn).await?).build();
    let answer = agent.prompt("Warm enough in Bergen?").max_turns(2).await?;
    // end

    let requests = vendor.recorder().requests();
    for tool in requests[0].json()?["tools"].as_array().into_iter().flatten() {
        println!("offered: {}", tool["function"]["name"]);
    }
    let second = requests[1].json()?;
    let messages = second["messages"].as_array().cloned().unwrap_or_default();
    println!("result: {}", messages.last().ok_or("no message")?["content"]);
    println!("answer: {}", answer.output());
    Ok(())
}

/// A response of OpenAI's Chat Completions.
fn completion(message: &serde_json::Value, reason: &str) -> Reply {
    Reply::json(
        200,
        &json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test-model",
            "choices": [{ "index": 0, "message": message, "finish_reason": reason, "logprobs": null }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
        }),
    )
}
