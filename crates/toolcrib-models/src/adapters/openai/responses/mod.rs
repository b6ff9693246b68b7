//! Responses, which OpenAI's own models are made for.
//!
//! A conversation is a list of items: messages, calls, their results, and the model's reasoning,
//! encrypted. The vendor stores nothing: each request contains all of it.
//!
//! ```text
//! request   settings, tool choice, and the order of fields
//! input     the conversation -> items
//! media     blocks of results -> parts of a result
//! kept      the kept content of a response, so that its items go back unchanged
//! answer    events -> a response
//! item      the fields of an item in an event
//! items     partial items
//! ```
//!
//! The vendor sets a breakpoint of its prompt cache automatically, at the end of the last request;
//! a key for each conversation routes its requests to the machine with that cache.

mod answer;
mod input;
mod item;
mod items;
mod kept;
mod media;
mod request;

use self::answer::AnswerReader;
use super::{
    super::{
        conversation::Conversation,
        protocol::{Offer, Reader, RequestInput},
        sent_parts::SentForm,
    },
    Api,
    own::loads_tools,
    schema,
};

/// OpenAI's Responses.
pub(in super::super) struct Responses;

impl Api for Responses {
    const NAME: &'static str = "openai responses";

    const PATH: &'static str = "/responses";

    const IMAGES_IN_RESULTS: bool = true;

    const CLEARS: bool = true;

    fn tools(offer: Offer<'_>, first: &SentForm) -> String {
        schema::flat(offer, first)
    }

    fn loads_tools(model: &str) -> Option<bool> {
        Some(loads_tools(model))
    }

    fn body(
        input: &RequestInput<'_>,
        conversation: &mut Conversation,
    ) -> serde_json::Result<Vec<u8>> {
        request::body(input, conversation)
    }

    fn reader(input: &RequestInput<'_>) -> Box<dyn Reader> {
        Box::new(AnswerReader::of(input))
    }
}
