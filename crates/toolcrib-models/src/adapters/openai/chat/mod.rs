//! Chat Completions, as supported by OpenAI and many other servers.
//!
//! Requests are those of OpenAI's own SDK. Responses are accepted more liberally: servers differ in
//! the placement of reasoning, numbers, ids and the end.
//!
//! ```text
//! request   settings, tool choice, and the order of fields
//! messages  the conversation -> messages
//! media     images of the user, blocks of results -> parts of a user message
//! kept      content that a server requires back with its model's message
//! events    the fields of events
//! answer    events -> a response
//! calls     fragments of calls -> calls
//! ```
//!
//! The prompt cache needs no breakpoints: OpenAI sets one automatically, at the end
//! of the last request.

mod answer;
mod calls;
mod events;
mod kept;
mod media;
mod messages;
mod request;

use self::answer::AnswerReader;
use super::{
    super::{
        conversation::Conversation,
        protocol::{Offer, Reader, RequestInput},
        sent_parts::SentForm,
    },
    Api, schema,
};

/// OpenAI's Chat Completions.
pub(in super::super) struct ChatCompletions;

impl Api for ChatCompletions {
    const NAME: &'static str = "openai chat completions";

    const PATH: &'static str = "/chat/completions";

    // A tool message contains only text. A tool's blocks could be sent as a user message, which models
    // trust more, so this requires the setting.
    const IMAGES_IN_RESULTS: bool = false;

    fn tools(offer: Offer<'_>, first: &SentForm) -> String {
        schema::nested(offer, first)
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
