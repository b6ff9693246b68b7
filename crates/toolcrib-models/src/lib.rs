//! Language models for Toolcrib: implementations of [`toolcrib_core::Model`].
//!
//! [`ScriptedModel`] answers by the rules of a TOML file. It needs no key and no network, and the
//! same conversation gets the same answer, which makes it the model of examples and tests.
//! [`record`] makes such a file from a conversation.
//!
//! With the feature `vendors`, `VendorModel` is a model of the API of OpenAI, Anthropic, Gemini or
//! Ollama, or of a compatible server.
//!
//! # Layers
//!
//! - `adapters`: models with the APIs of their vendors.
//! - `script`: the scripted model.

#[cfg(feature = "vendors")]
mod adapters;
mod script;

pub use toolcrib_config::{Diagnostic, Diagnostics, Help, Severity, Spot};

#[cfg(feature = "vendors")]
pub use self::adapters::{
    CLEAR_TOKENS, DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, InvalidBaseUrlError,
    InvalidModelNameError, InvalidVendorModelError, ModelName, NotConfiguredError, OUTPUT_TOKENS,
    OpenAiApi, ReasoningEffort, TEMPERATURES, UnknownVendorError, Vendor, VendorModel,
    VendorModelBuilder,
};
pub use self::script::{ScriptedModel, record};
