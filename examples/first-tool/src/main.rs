//! A function becomes a tool, and a model calls it.
//!
//! `cargo run -p example-first-tool` prints the answer. The model is a scripted one, so it needs no
//! key and no network; `script.toml` says what it does.
#![allow(clippy::print_stdout, reason = "a program for people")]

use toolcrib::{agent::RunOptions, models::ScriptedModel, prelude::*};

/// The state of an order. Use it when somebody asks where an order is.
#[tool(read_only)]
fn find_order(
    /// The order's number.
    order: u32,
) -> String {
    format!("order {order} left the warehouse this morning")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::from_toml("script.toml", include_str!("../script.toml"))?;
    let agent = Agent::builder().model(model).tool(find_order_tool()).build()?;
    let outcome = agent.run("Where is order 1042?", RunOptions::default()).await;
    println!("{}", outcome.into_answer()?);
    Ok(())
}
