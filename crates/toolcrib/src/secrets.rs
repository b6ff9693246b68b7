//! ```
//! use toolcrib::secrets::{Secret, SecretError, secrets_fn};
//!
//! let secrets = secrets_fn(|name| match name {
//!     "BANK_KEY" => Ok(Secret::new("0123456789")),
//!     _ => Err(SecretError::Unknown { name: name.into() }),
//! });
//! # let _ = secrets;
//! ```
//!
//! A source resolves the secrets that tools declare, call by call. A `Redactor` removes known secrets
//! from results, events and artifacts. Neighbor: [`untrusted`](crate::untrusted) is about the text that
//! a tool returns.

#[doc(inline)]
pub use toolcrib_core::secrets::*;
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::secrets::*;
