//! Chat Completions, as supported by OpenAI and many other servers.
//!
//! Requests are those of OpenAI's own SDK. Responses are accepted more liberally: servers differ in
//! the placement of reasoning, numbers, ids and the end.
//!
//! ```text
//! request   settings, tool choice, and the order of fields
//! messages  the conversation -> messages
//! media     blocks of results -> parts of a user message
//! kept      content that a server requires back with its model's message
//! answer    events -> a response
//! calls     fragments of calls -> calls
//! ```
//!
//! The prompt cache needs no breakpoints: OpenAI sets one automatically, at the end
//! of the last request.

mod answer;
mod calls;
mod kept;
mod media;
mod messages;
mod request;

use self::{answer::Reading, request::Body};
use super::{
    super::{
        first_sent::SentForm,
        protocol::{Asked, Offer, Reader},
    },
    Api, schema,
};

/// OpenAI's Chat Completions.
pub(in super::super) struct ChatCompletions;

impl Api for ChatCompletions {
    const NAME: &'static str = "openai chat completions";

    const PATH: &'static str = "/chat/completions";

    fn tools(offer: Offer<'_>, first: &SentForm) -> String {
        schema::nested(offer, first)
    }

    fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        asked.write(&Body::of(asked))
    }

    fn reader(asked: &Asked<'_>) -> Box<dyn Reader> {
        Box::new(Reading::of(asked))
    }
}
