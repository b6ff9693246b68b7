//! ```
//! use toolcrib::{Engine, engine::{Limits, Personality}};
//!
//! let engine = Engine::builder()
//!     .personality(Personality::new("support").toolset(["orders"]))
//!     .limits(Limits { batch_calls: 8, ..Limits::default() })
//!     .build()?;
//! assert_eq!(engine.limits().batch_calls, 8);
//! # Ok::<(), toolcrib::engine::BuildError>(())
//! ```
//!
//! How an engine is built: its builder, limits, personalities and plugins. The tools come from
//! [`tool`](mod@crate::tool), [`provider`](crate::provider) and [`skills`](crate::skills); what an
//! engine does is in [`turn`](crate::turn).

#[doc(inline)]
pub use toolcrib_engine::engine::*;
