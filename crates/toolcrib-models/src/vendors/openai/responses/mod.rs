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

use toolcrib_core::Menu;

use self::{answer::Reading, request::Body};
use super::{
    super::protocol::{Asked, Reader},
    Api, schema,
};

/// OpenAI's Responses.
pub(in super::super) struct Responses;

impl Api for Responses {
    const PATH: &'static str = "/responses";

    fn tools(menu: &Menu) -> String {
        schema::flat(menu)
    }

    fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        asked.write(&Body::of(asked))
    }

    fn reader(asked: &Asked<'_>) -> Box<dyn Reader> {
        Box::new(Reading::of(asked))
    }
}
