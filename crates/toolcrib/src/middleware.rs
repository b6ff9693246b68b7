//! ```
//! use toolcrib::{Engine, middleware::{CallDecision, call_middleware}};
//!
//! let guard = call_middleware("office-hours", |call| {
//!     Ok(if call.tool.annotations().destructive {
//!         CallDecision::Deny("nothing is deleted at night; try again in the morning".into())
//!     } else {
//!         CallDecision::Proceed
//!     })
//! });
//! let engine = Engine::builder().middleware(guard).build()?;
//! # Ok::<(), toolcrib::engine::BuildError>(())
//! ```
//!
//! Middleware decides in code on each call, after policy and before approval, and runs around turns and
//! iterations. A [`Reducer`] shortens the results of one tool. Neighbor: [`policy`](crate::policy) is
//! data, and decides on visibility too.

#[doc(inline)]
pub use toolcrib_core::middleware::*;
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::{middleware::*, turn::MiddlewareError};
