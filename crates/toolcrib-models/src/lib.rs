//! Language models for Toolcrib: implementations of [`toolcrib_core::Model`].
//!
//! [`ScriptedModel`] answers by rules that stand in a TOML file. It needs no key and no network,
//! and the same conversation gives the same answer, which makes it the model of examples and
//! tests. [`record`] makes such a file of a conversation.
//!
//! With the feature `vendors`, `VendorModel` is a model behind the API of OpenAI, Anthropic, Gemini or
//! Ollama, or of a server that speaks as one of them does.

mod script;
#[cfg(feature = "vendors")]
mod vendors;

pub use toolcrib_config::{Diagnostic, Diagnostics, Severity};

pub use self::script::{ScriptedModel, record};
#[cfg(feature = "vendors")]
pub use self::vendors::{
    DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, InvalidBaseUrl, InvalidModelName, InvalidVendorModel,
    ModelName, NotConfigured, OUTPUT_TOKENS, OpenAiApi, ReasoningEffort, TEMPERATURES,
    UnknownVendor, Vendor, VendorModel, VendorModelBuilder,
};
