//! Responses, as OpenAI's own models are made for them.
//!
//! A conversation is a list of items: messages, calls, their results, and what the model thought,
//! encrypted. Nothing is stored at the vendor: each request holds all of it.
//!
//! ```text
//! request   settings, tool choice, and the order of it all
//! input     the conversation -> items
//! media     what results show -> parts of a result
//! kept      what is kept of an answer, so that its items go back as they were
//! answer    events -> an answer
//! items     items as far as they have come
//! ```
//!
//! The vendor sets a breakpoint of its prompt cache by itself, at the end of what it was sent last;
//! a key for each conversation brings its requests to the machine that has it.

mod answer;
mod input;
mod items;
mod kept;
mod media;
mod request;

use serde_json::Value;
use toolcrib_core::Menu;
use toolcrib_scope::http::{HeaderName, StatusCode};

use self::{answer::Reading, request::Body};
use super::{
    super::{
        frames::Framing,
        protocol::{Asked, Protocol, Reader, Refusal},
    },
    refusal, schema,
};

/// OpenAI's Responses.
pub(in super::super) struct Responses;

impl Protocol for Responses {
    fn path(&self, _model: &str) -> String {
        "/responses".to_owned()
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        super::key(key)
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn tools(&self, menu: &Menu) -> String {
        schema::flat(menu)
    }

    fn body(&self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        asked.write(&Body::of(asked))
    }

    fn reader(&self, asked: &Asked<'_>) -> Box<dyn Reader> {
        Box::new(Reading::of(asked))
    }

    fn refusal(&self, status: StatusCode, body: &Value) -> Refusal {
        refusal::of(status, body)
    }

    fn models_path(&self) -> &'static str {
        super::MODELS_PATH
    }

    fn model_names(&self, list: &Value) -> Option<Vec<String>> {
        super::model_names(list)
    }
}
