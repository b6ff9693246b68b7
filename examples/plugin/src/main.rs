//! A plugin: a tool, a skill and a middleware that come together under one id, and leave together.
//!
//! `cargo run -p example-plugin` prints what is offered and what calls come to, with the plugin and
//! without it.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;

use toolcrib::{
    engine::{Plugin, PluginRegistrar},
    middleware::{CallDecision, call_middleware},
    prelude::*,
};

/// Refunds a charge.
#[tool(destructive)]
async fn refund(
    /// The charge's number.
    charge: u32,
    /// How much, in cents.
    cents: u32,
) -> String {
    format!("refunded {cents} cents of charge {charge}")
}

/// All about money.
struct Billing {
    /// No refund is larger, in cents.
    limit: u64,
}

impl Plugin for Billing {
    fn id(&self) -> &str {
        "billing"
    }

    fn register(
        &self,
        registrar: &mut PluginRegistrar,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let limit = self.limit;
        registrar
            .tool(refund_tool())
            .skill(Skill::new("refunds", "Refunds.", "Look the charge up first.").tools(["refund"]))
            // It sees every call that passed validation and policy, also those of others' tools.
            .middleware(call_middleware("refund-limit", move |call| {
                let is_refund = *call.tool.name() == "refund";
                Ok(if is_refund && call.args["cents"].as_u64().is_none_or(|cents| cents > limit) {
                    CallDecision::Deny(format!("refunds end at {limit} cents; ask a person"))
                } else {
                    CallDecision::Proceed
                })
            }));
        Ok(())
    }
}

/// The time of day.
#[tool(read_only)]
async fn time() -> &'static str {
    "noon"
}

async fn show(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let plugins: Vec<_> = engine.plugins().collect();
    println!("plugins: {plugins:?}");
    let mut turn = engine.turn(TurnOptions::default())?;
    let mut iteration = turn.iteration().await?;
    for tool in iteration.menu().tools() {
        println!("  {} from {}", tool.name(), tool.plugin().unwrap_or("the host"));
    }
    let calls = [r#"{ "charge": 75, "cents": 900 }"#, r#"{ "charge": 75, "cents": 90000 }"#];
    let calls = calls.into_iter().enumerate();
    let calls = calls.map(|(n, args)| ToolCall::unparsed(n.to_string(), "refund", args)).collect();
    for result in iteration.execute(calls).await {
        println!("  refund: {}", result.text);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().tool(time_tool()).plugin(Billing { limit: 5_000 }).build()?;
    show(&engine).await?;
    if let Some(without) = engine.without_plugin("billing") {
        show(&without).await?;
    }
    Ok(())
}
