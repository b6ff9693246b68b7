//! ```
//! use toolcrib::{prelude::*, turn::TurnRunner};
//!
//! /// Answers.
//! #[tool]
//! fn ping() -> &'static str {
//!     "pong"
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().tool(ping_tool()).build()?;
//! let outcome = TurnRunner::new(engine)
//!     .run(TurnOptions::default(), async |mut cx: IterationContext| {
//!         let call = ToolCall::new("call_1", "ping", serde_json::json!({}));
//!         assert_eq!(&*cx.execute(vec![call]).await[0].text, "pong");
//!         cx.ack()?;
//!         Ok(())
//!     })
//!     .await?;
//! assert_eq!(outcome.iterations, 1);
//! # Ok(())
//! # }
//! ```
//!
//! A turn is one user message until the answer. An iteration of it has a menu, which the model sees, and
//! takes the calls that the model requests. `Engine::turn` is for a loop of your own; [`TurnRunner`]
//! drives an executor, with [`middleware`](crate::middleware) around it; `agent` has a complete loop.
//! Without the feature `engine`, this module has only the menu and the signals.

#[cfg(all(feature = "agent", feature = "macros"))]
#[doc(inline)]
pub use crate::typed::{RunTyped, Typed};
#[doc(inline)]
pub use toolcrib_core::{menu::Menu, turn::*};
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::{runner::*, turn::*};
