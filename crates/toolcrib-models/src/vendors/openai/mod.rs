//! OpenAI's Chat Completions, as OpenAI and many other servers speak them.
//!
//! What is sent is what OpenAI's own SDK sends. What is taken is wider: servers differ in where
//! they put reasoning, numbers, ids and the end.
//!
//! ```text
//! request   settings, tool choice, and the order of it all
//! messages  the conversation -> messages
//! media     images, sounds and documents in results
//! kept      what a server wants back with its model's message
//! own       what holds for OpenAI's own models only
//! schema    the tool block
//! answer    events -> an answer
//! calls     fragments of calls -> calls
//! refusal   what its errors mean
//! ```
//!
//! There are no breakpoints to set for the prompt cache: OpenAI sets one by itself, at the end of
//! what it was sent last.

mod answer;
mod calls;
mod kept;
mod media;
mod messages;
mod own;
mod refusal;
mod request;
mod schema;

use serde_json::Value;
use toolcrib_core::{Menu, ModelRequest};
use toolcrib_scope::http::{HeaderName, StatusCode, header};

use self::{answer::Reading, request::Body};
use super::{
    frames::Framing,
    protocol::{Asked, Protocol, Reader, Refusal},
};

/// The name under which vendor content is kept.
const VENDOR: &str = "openai";

/// OpenAI's Chat Completions.
pub(super) struct OpenAi;

impl Protocol for OpenAi {
    fn path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        (header::AUTHORIZATION, format!("Bearer {key}"))
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn tools(&self, menu: &Menu) -> String {
        schema::tools(menu)
    }

    fn body(&self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Body::of(asked))
    }

    fn reader(&self, _request: &ModelRequest) -> Box<dyn Reader> {
        Box::new(Reading::default())
    }

    fn refusal(&self, _status: StatusCode, body: &Value) -> Refusal {
        refusal::of_status(body)
    }

    fn models_path(&self) -> &'static str {
        "/models"
    }

    fn model_names(&self, list: &Value) -> Vec<String> {
        // Some servers list them without a frame, or frame them as Ollama does.
        let models = list.get("data").or_else(|| list.get("models")).unwrap_or(list);
        let name = |model: &Value| {
            let named = ["id", "name"].iter().find_map(|key| model.get(key)?.as_str());
            named.or_else(|| model.as_str()).map(str::to_owned)
        };
        models.as_array().into_iter().flatten().filter_map(name).collect()
    }
}
