//! ```
//! use toolcrib::{Tool, ToolContext, tool::InvalidToolError};
//!
//! let ping = Tool::builder("ping")
//!     .description("Answers `pong`.")
//!     .read_only()
//!     .handler(|_: serde_json::Value, _: ToolContext| async { "pong" })?;
//! assert!(ping.annotations().read_only);
//! # Ok::<(), InvalidToolError>(())
//! ```
//!
//! A tool: its definition, its body, the context and the output of one call, and the capabilities that
//! it declares. The attribute `#[tool]` makes one of a function. Tools go into an `Engine`, a
//! [`registry`](crate::registry) or a [`provider`](crate::provider).

#[doc(inline)]
pub use toolcrib_core::tool::*;
