//! ```
//! use toolcrib::{prelude::*, registry::ToolRegistry};
//!
//! /// Turns the light off.
//! #[tool]
//! fn light_off() {}
//!
//! let registry = ToolRegistry::new();
//! registry.register(light_off_tool())?;
//! registry.hide("light_off");
//! assert!(registry.visible().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A registry is an ordered, mutable set of tools. An engine has one; each turn edits its own copy, and
//! no edit reaches another turn. Neighbor: a fixed list is
//! [`static_tools`](crate::provider::static_tools).

#[doc(inline)]
pub use toolcrib_core::registry::*;
