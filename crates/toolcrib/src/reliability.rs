//! ```
//! use toolcrib::reliability::{ReliabilityAction, ReliabilityRule, Retry, Stage};
//!
//! let rule = ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(3)))
//!     .stage(Stage::Discover)
//!     .error_class("timeout");
//! assert!(rule.check().is_ok());
//! ```
//!
//! Rules decide what follows a failure of a provider, a model or a tool: retry with backoff, a fallback,
//! or an error. They use the first match, as [`policy`](crate::policy) does. A circuit breaker pauses
//! attempts after repeated failures.

#[doc(inline)]
pub use toolcrib_core::reliability::*;
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::reliability::*;
