//! ```
//! use toolcrib::models::Message;
//!
//! let message = Message::user("Where is order 1042?");
//! assert_eq!(serde_json::json!(message)["role"], "user");
//! ```
//!
//! A model is asked with messages and a menu, and answers with text and calls. This module has the port
//! [`Model`] and the types of a conversation; the feature `models` adds a model that follows a script,
//! and the feature `vendors` the models of OpenAI, Anthropic, Gemini and Ollama. `agent` asks a model in
//! a loop.

#[doc(inline)]
pub use toolcrib_core::models::*;
#[cfg(feature = "models")]
#[doc(inline)]
pub use toolcrib_models::*;
