//! A function becomes a tool, and a vendor's model calls it. The program below is the README's first one.
//!
//! `cargo run -p example-first-tool` requires `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for another server.
#![allow(clippy::print_stdout, reason = "a program for people")]

use toolcrib::{models::VendorModel, prelude::*};

/// The state of an order. Use it when a user asks where an order is.
#[tool(read_only)]
fn find_order(
    /// The order's number.
    order: u32,
) -> String {
    format!("order {order} left the warehouse this morning")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = VendorModel::from_env("openai:gpt-5-mini")?;
    let agent = Agent::builder().model(model).tool(find_order_tool()).build()?;
    println!("{}", agent.run("Where is order 1042?", TurnOptions::default()).await.into_answer()?);
    Ok(())
}
