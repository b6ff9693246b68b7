//! ```
//! use std::time::Duration;
//! use toolcrib::{
//!     Tool,
//!     provider::{CacheOptions, KeyField, Ttl, cached, from_async_fn, gated_tools},
//! };
//!
//! # async fn fetch(_tenant: Option<&str>) -> Result<Vec<Tool>, std::io::Error> { Ok(vec![]) }
//! let crm = from_async_fn("crm", async |cx| fetch(cx.identity().tenant.as_deref()).await);
//! let options = CacheOptions::new([KeyField::Tenant], Ttl::after(Duration::from_secs(60)));
//! let provider = gated_tools("harmless", cached(crm, options), |tool, _cx| {
//!     !tool.annotations().destructive
//! });
//! assert_eq!(provider.path(), "gated(harmless) > cached > crm");
//! ```
//!
//! A provider lists tools once per iteration: a fixed list, a function, a hub. Decorators cache, gate,
//! rename or limit another provider. Neighbors: a [`registry`](crate::registry) is a list that a turn
//! edits; [`policy`](crate::policy) decides by rules that are data; MCP servers are in `mcp`, and hubs
//! over HTTP in `tools`.

#[doc(inline)]
pub use toolcrib_core::provider::*;
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::provider::*;
