//! A loop of your own: the engine says what a model may see and takes its calls; model and history
//! are yours.
//!
//! `cargo run -p example-own-loop` prints the conversation.
#![allow(clippy::print_stdout, reason = "a program for people")]

use serde_json::{Value, json};
use toolcrib::prelude::*;

/// The weather in a city, now.
#[tool(read_only)]
async fn weather(city: String) -> String {
    format!("{city}: 18 degrees, light rain")
}

/// Turns the heating of a house off.
#[tool(destructive)]
async fn heating_off() -> &'static str {
    "the heating is off"
}

/// Stands for your model: it is shown the tools and the messages, and gives back its text and the
/// calls that it wants made.
fn ask(tools: &Value, messages: &[Value]) -> (String, Vec<ToolCall>) {
    let tool_results = messages.iter().filter(|message| message["role"] == "tool").count();
    match tool_results {
        0 => {
            assert_eq!(tools.as_array().map(Vec::len), Some(1), "one tool is offered");
            let weather = ToolCall::unparsed("1", "weather", r#"{ "city": "Bergen" }"#);
            // It was not offered this one, and asks for it all the same.
            (String::new(), vec![weather, ToolCall::unparsed("2", "heating_off", "{}")])
        }
        _ => ("It is 18 degrees in Bergen; I could not touch the heating.".to_owned(), vec![]),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let guests_look = Rule::deny("guests look").tools(["heating_*"]).reason("the owner is away");
    let engine = Engine::builder()
        .tool(weather_tool())
        .tool(heating_off_tool())
        .policy(Policy::of([guests_look]))
        .build()?;

    let mut messages = vec![json!({ "role": "user", "content": "Warm enough in Bergen?" })];
    let mut turn = engine.turn(TurnOptions::default().principal("guest"))?;
    loop {
        let mut iteration = turn.iteration().await?;
        let tools = serde_json::from_str(iteration.menu().rendering())?;
        let (text, calls) = ask(&tools, &messages);
        if calls.is_empty() {
            println!("{text}");
            return Ok(());
        }
        messages.push(json!({ "role": "assistant", "content": text, "calls": calls }));
        for result in iteration.execute(calls).await {
            println!("{} -> {}", result.name, result.text);
            messages.push(json!(result.message()));
        }
    }
}
