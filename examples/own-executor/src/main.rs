//! An executor of your own: it makes tools for one iteration, shows them to its model, and has the calls
//! made by the engine. The guide is `docs/providers.md#executors-and-registries`.
//!
//! `cargo run -p example-own-executor` prints the calls.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::{
    artifacts::{Artifacts, MemoryStore, forge_tools},
    prelude::*,
    tool::ArtifactPolicy,
    turn::Menu,
};

const LOG: &str = "00:00 start\n00:01 pool cut to 2\n00:02 timeout\n00:03 timeout\n00:04 end";

/// Stands for your model: it sees the menu, and asks for calls.
fn ask(menu: &Menu) -> Vec<ToolCall> {
    if menu.get("artifact_grep").is_none() {
        return vec![ToolCall::new("call_1", "read_log", json!({}))];
    }
    // A tool that did not exist when the iteration began, and one that a rule withholds.
    let pool = json!({ "callId": "call_1", "pattern": "pool" });
    vec![
        ToolCall::new("call_2", "artifact_grep", pool),
        ToolCall::new("call_3", "artifact_head", json!({ "callId": "call_1" })),
    ]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let artifacts = Artifacts::new(MemoryStore::new());
    let read_log = Tool::builder("read_log")
        .description("Reads the log of the job.")
        .read_only()
        .artifact_policy(ArtifactPolicy::Always)
        .handler(|_: Value, _: ToolContext| async { LOG });
    let engine = Engine::builder()
        .tool(read_log)
        .artifacts(artifacts.clone())
        .policy(Policy::of([Rule::deny("no reading from the start").tools(["artifact_head"])]))
        .build()?;

    let outcome = TurnRunner::new(engine)
        .run(TurnOptions::default(), async |mut cx: IterationContext| {
            if cx.number() == 3 {
                cx.ack()?;
                return Ok(());
            }
            // The tools know the artifacts that there are now: they are for this iteration.
            let forged = forge_tools(&artifacts.turn(Arc::clone(cx.identity()), cx.turn_id()))?;
            let merged = ToolRegistry::merge([cx.registry(), &forged])?;
            let menu = Arc::clone(cx.offer(&merged)?);
            for withheld in cx.withheld().tools().filter(|tool| forged.has(&tool.name)) {
                println!("withheld: {}: {}", withheld.name, withheld.reason);
            }
            for result in cx.execute(ask(&menu)).await {
                println!("{} -> {}", result.name, result.value);
            }
            Ok(())
        })
        .await?;
    println!("{} after {} iterations", outcome.end.as_str(), outcome.iterations);
    Ok(())
}
