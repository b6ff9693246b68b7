//! Models behind the APIs of their vendors.
//!
//! ```text
//! model     a request                -> a stream of chunks; what the vendors have in common
//! vendor    which there are, and how each is called
//! protocol  what each vendor says otherwise: openai/ anthropic/ gemini/ ollama/
//! exchange  a body -> HTTP -> frames -> chunks, with its time limits
//! frames    bytes as they come       -> events or lines
//! answer    what frames say          -> one whole answer
//! failure   statuses, broken wires   -> classes of errors
//! ```

mod answer;
mod anthropic;
mod arguments;
mod base_url;
mod environment;
mod exchange;
mod failure;
mod frames;
mod gemini;
mod menu_cache;
mod model;
mod ollama;
mod openai;
mod plain_schema;
mod protocol;
mod settings;
mod vendor;

pub use self::{
    base_url::InvalidBaseUrl,
    environment::NotConfigured,
    model::{
        DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, InvalidVendorModel, VendorModel, VendorModelBuilder,
    },
    settings::ReasoningEffort,
    vendor::{ModelName, UnknownVendor, Vendor},
};
