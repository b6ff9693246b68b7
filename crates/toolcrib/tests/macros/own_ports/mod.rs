//! An own implementation of each port, in a crate that depends on the facade alone, besides a runtime and
//! JSON values. Each implementation is used by a run.

#![allow(clippy::unnecessary_literal_bound, reason = "as the traits are written")]

mod calls;
mod remote;
mod sources;
mod stores;
mod turns;

use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolcrib::{Engine, tool::ToolCall, tool::ToolResult, turn::TurnOptions};

/// Calls of ports, in order.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// One call in a separate turn.
async fn call(engine: &Engine, options: TurnOptions, tool: &str, args: Value) -> ToolResult {
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call_1", tool, args)]).await.remove(0)
}
