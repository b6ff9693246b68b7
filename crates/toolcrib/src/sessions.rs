//! A session is a conversation that outlives the process. This module has the port [`SessionStore`]
//! and its types; the feature `sessions` adds stores, and `agent::Session`, which runs use.

#[doc(inline)]
pub use toolcrib_core::{sessions::*, store::*};
#[cfg(feature = "sessions")]
#[doc(inline)]
pub use toolcrib_store::*;
