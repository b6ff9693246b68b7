//! Chat Completions, as OpenAI and many other servers speak them.
//!
//! What is sent is what OpenAI's own SDK sends. What is taken is wider: servers differ in where
//! they put reasoning, numbers, ids and the end.
//!
//! ```text
//! request   settings, tool choice, and the order of it all
//! messages  the conversation -> messages
//! media     what results show -> parts of a user's message
//! kept      what a server wants back with its model's message
//! answer    events -> an answer
//! calls     fragments of calls -> calls
//! ```
//!
//! There are no breakpoints to set for the prompt cache: OpenAI sets one by itself, at the end of
//! what it was sent last.

mod answer;
mod calls;
mod kept;
mod media;
mod messages;
mod request;

use toolcrib_core::Menu;

use self::{answer::Reading, request::Body};
use super::{
    super::protocol::{Asked, Reader},
    Api, schema,
};

/// OpenAI's Chat Completions.
pub(in super::super) struct ChatCompletions;

impl Api for ChatCompletions {
    const PATH: &'static str = "/chat/completions";

    fn tools(menu: &Menu) -> String {
        schema::nested(menu)
    }

    fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        asked.write(&Body::of(asked))
    }

    fn reader(asked: &Asked<'_>) -> Box<dyn Reader> {
        Box::new(Reading::of(asked))
    }
}
