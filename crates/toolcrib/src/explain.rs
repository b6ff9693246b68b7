//! ```
//! use toolcrib::{policy::{Policy, Rule}, prelude::*};
//!
//! /// Gives money back.
//! #[tool]
//! fn refund() {}
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::of([Rule::deny("no refunds").tools(["refund"])]);
//! let engine = Engine::builder().tool(refund_tool()).policy(policy).build()?;
//! let mut turn = engine.turn(TurnOptions::default())?;
//! let iteration = turn.iteration().await?;
//! assert!(!iteration.why("refund").is_some_and(|why| why.offered));
//! # Ok(())
//! # }
//! ```
//!
//! Why a tool is on the menu or withheld: each decision in order, and the smallest change that would
//! reverse the outcome. `Iteration::why` answers for one tool.

#[doc(inline)]
pub use toolcrib_core::provider::{WithheldBy, WithheldTool};
#[doc(inline)]
pub use toolcrib_engine::compose::*;
