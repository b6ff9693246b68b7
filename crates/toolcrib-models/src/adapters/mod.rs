//! Models with the APIs of their vendors.
//!
//! ```text
//! model     a request                -> a stream of chunks; common to all vendors
//! vendor    the list of vendors, and their names
//! protocol  the vendors' differences: openai/ anthropic/ gemini/ ollama/
//! conversation  messages -> their JSON, which the next request continues
//! exchange  a body -> HTTP -> frames -> chunks, with its time limits
//! frames    streamed bytes           -> events or lines
//! lenient   the fields of a frame, of whatever type
//! answer    frames                   -> one complete response: repeats/ of calls, think_tags in its text
//! images    blocks of messages        -> the images that are sent, and texts for the others
//! schema    schemas of arguments     -> schemas that vendors accept
//! failure   statuses, network errors -> classes of errors
//! ```

mod alternating;
mod answer;
mod anthropic;
mod arguments;
mod base_url;
mod conversation;
mod environment;
mod exchange;
mod failure;
mod frames;
mod gemini;
mod images;
mod lenient;
mod menu_cache;
mod model;
mod ollama;
mod openai;
mod prompt_prefix;
mod protocol;
mod repeats;
mod schema;
mod sent_parts;
mod settings;
mod think_tags;
mod vendor;

pub use self::{
    base_url::InvalidBaseUrlError,
    environment::NotConfiguredError,
    model::{
        CLEAR_TOKENS, DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, InvalidVendorModelError,
        OUTPUT_TOKENS, TEMPERATURES, VendorModel, VendorModelBuilder,
    },
    openai::OpenAiApi,
    settings::ReasoningEffort,
    vendor::{InvalidModelNameError, ModelName, UnknownVendorError, Vendor},
};
