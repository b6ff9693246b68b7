//! The names that most programs use: tools, providers, policy, turns.
//!
//! ```
//! use toolcrib::prelude::*;
//!
//! /// The state of an order. Use it when somebody asks where an order is.
//! #[tool(read_only)]
//! async fn find_order(
//!     /// The order's number.
//!     order: u32,
//! ) -> Result<String, ToolError> {
//!     if order == 1042 { Ok("on its way".into()) } else { Err(err("there is no such order")) }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::builder().tool(find_order_tool()).build()?;
//!     let mut turn = engine.turn(TurnOptions::default())?;
//!     let mut iteration = turn.iteration().await?;
//!     println!("{}", iteration.menu().rendering()); // what your model is shown
//!     let call = ToolCall::new("call_1", "find_order", serde_json::json!({ "order": 1042 }));
//!     for result in iteration.execute(vec![call]).await {
//!         assert_eq!(&*result.text, "on its way");
//!     }
//!     Ok(())
//! }
//! ```

#[cfg(feature = "macros")]
pub use schemars::{self, JsonSchema};
#[cfg(feature = "agent")]
pub use toolcrib_agent::{Agent, RunOptions};
pub use toolcrib_core::{
    Args, ContentBlock, ErrorCode, EventKind, Json, ListContext, Policy, Progress,
    ReliabilityAction, ReliabilityRule, Rule, State, Tool, ToolCall, ToolContext, ToolError,
    ToolOutput, ToolProvider, ToolRegistry, cached, discovery, err, gated_tools, ok, static_tools,
};
#[cfg(feature = "engine")]
pub use toolcrib_engine::{Engine, IterationContext, Skill, Skills, TurnOptions, TurnRunner};
#[cfg(feature = "macros")]
pub use toolcrib_macros::tool;

#[cfg(all(feature = "agent", feature = "macros"))]
pub use crate::turn::RunTyped;
