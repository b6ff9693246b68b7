//! Models behind the APIs of their vendors.
//!
//! ```text
//! model     a request                -> a stream of chunks; what the vendors have in common
//! vendor    which there are, and how each is called
//! protocol  what each vendor says otherwise: openai/ anthropic/ gemini/ ollama/
//! exchange  a body -> HTTP -> frames -> chunks, with its time limits
//! frames    bytes as they come       -> events or lines
//! answer    what frames say          -> one whole answer
//! schema    schemas of arguments    -> in words that vendors take
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
mod image_type;
mod menu_cache;
mod model;
mod ollama;
mod openai;
mod protocol;
mod schema;
mod settings;
mod vendor;

pub use self::{
    base_url::InvalidBaseUrl,
    environment::NotConfigured,
    model::{
        DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, InvalidVendorModel, OUTPUT_TOKENS, TEMPERATURES,
        VendorModel, VendorModelBuilder,
    },
    openai::OpenAiApi,
    settings::ReasoningEffort,
    vendor::{InvalidModelName, ModelName, UnknownVendor, Vendor},
};
