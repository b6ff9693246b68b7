//! A function becomes a tool, and a model calls it.
//!
//! `cargo run -p example-first-tool` prints the answer. The model is a scripted one, so it needs no
//! key and no network; `script.toml` says what it does.
//!
//! `cargo run -p example-first-tool -- openai:gpt-5.1` asks a real one. Its key and its address come
//! from the environment, by the names that its vendor's own SDK has: `OPENAI_API_KEY` and
//! `OPENAI_BASE_URL`.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a program for people")]

use std::{env, error::Error};

use toolcrib::{
    ToolChoice, ToolName,
    agent::RunOptions,
    models::{ScriptedModel, VendorModel},
    prelude::*,
};

/// The state of an order. Use it when somebody asks where an order is.
#[tool(read_only)]
fn find_order(
    /// The order's number.
    order: u32,
) -> String {
    format!("order {order} left the warehouse this morning")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder().tool(find_order_tool());
    let agent = match env::args().nth(1) {
        Some(name) => agent.model(VendorModel::from_env(&name)?),
        None => {
            agent.model(ScriptedModel::from_toml("script.toml", include_str!("../script.toml"))?)
        }
    };
    // First it must look, then it must answer.
    let choices = [ToolChoice::Tool(ToolName::new("find_order")?), ToolChoice::None];
    let options = RunOptions::default().tool_choices(choices);
    let outcome = agent.build()?.run("Where is order 1042?", options).await;
    for call in &outcome.tool_calls {
        eprintln!("{} {}: {}", call.name, call.args, call.value);
    }
    println!("{}", outcome.into_answer()?);
    Ok(())
}
