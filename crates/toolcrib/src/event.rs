//! ```
//! use toolcrib::{Engine, event::EventKind};
//!
//! let engine = Engine::builder().build()?;
//! engine.events().on("tools.*", |event| {
//!     if let EventKind::DiscoveryFailed { provider, .. } = &event.kind {
//!         eprintln!("{provider} cannot be listed");
//!     }
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Events say what happened: discovery, menus, calls, decisions of a policy. An engine has all of them,
//! a turn its own. A [`Journal`] records calls before and after they run. Neighbor:
//! [`explain`](crate::explain) answers why a tool is on the menu or not.

#[doc(inline)]
pub use toolcrib_core::event::*;
