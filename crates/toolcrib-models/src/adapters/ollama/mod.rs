//! [Ollama's own API](https://docs.ollama.com/api/chat).

mod answer;
mod refusal;
mod request;
mod schema;

use serde_json::Value;
use toolcrib_capabilities::http::StatusCode;
use toolcrib_core::{ImageLimits, ImageSupport};

use super::{
    conversation::Conversation,
    frames::Framing,
    protocol::{Offer, Protocol, Reader, Refusal, RequestInput},
    sent_parts::SentForm,
};

/// The vendor name of a message's vendor content.
const VENDOR: &str = "ollama";

/// Ollama's own API. It reports nothing about its prompt cache, and has no tool choice: the model
/// receives it as an instruction, and the caller's loop detects if the model does not follow it.
pub(super) struct Ollama;

/// The server decodes PNG and JPEG, by its maintainers (<https://github.com/ollama/ollama/issues/7804>),
/// and documents no other limits.
const LIMITS: ImageLimits =
    ImageLimits { media_types: &["image/png", "image/jpeg"], ..ImageLimits::NONE };

impl Protocol for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn path(&self, _model: &str) -> String {
        "/api/chat".to_owned()
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn tools(&self, offer: Offer<'_>, first: &SentForm) -> String {
        // Names, descriptions and schemas are JSON already, so they can be serialized.
        schema::tools(offer, first).unwrap_or_default()
    }

    fn images(&self, _model: &str) -> ImageSupport {
        ImageSupport { sees: None, in_results: true, limits: LIMITS }
    }

    fn body(
        &self,
        input: &RequestInput<'_>,
        conversation: &mut Conversation,
    ) -> serde_json::Result<Vec<u8>> {
        request::body(input, conversation)
    }

    fn reader(&self, _asked: &RequestInput<'_>) -> Box<dyn Reader> {
        Box::<answer::AnswerReader>::default()
    }

    fn refusal(&self, _status: StatusCode, body: &Value) -> Refusal {
        refusal::of_body(body)
    }

    fn models_path(&self) -> &'static str {
        "/api/tags"
    }

    fn model_names(&self, list: &Value) -> Option<Vec<String>> {
        let models = list.get("models")?;
        if models.is_null() {
            // Older servers write an empty list like this.
            return Some(Vec::new());
        }
        let names = models.as_array()?.iter().map(|model| model.get("name")?.as_str());
        Some(names.flatten().map(str::to_owned).collect())
    }
}
