//! OpenAI's two APIs: Responses, which its own models are made for, and Chat Completions, which
//! many other servers support.
//!
//! ```text
//! responses  items in, events of items out; thinking goes back encrypted
//! chat       messages in, deltas out; accepts variants, since servers differ
//!
//! api        the choice between them
//! sent       calls and results in the form of both
//! media      images, sounds and documents
//! schema     the tool block
//! own        rules for OpenAI's own models only
//! refusal    classifies errors
//! ```

mod api;
mod chat;
mod media;
mod own;
mod refusal;
mod responses;
mod schema;
mod sent;

use serde_json::Value;
use toolcrib_capabilities::http::StatusCode;
use toolcrib_core::ImageSupport;

pub use self::api::OpenAiApi;
pub(super) use self::{chat::ChatCompletions, responses::Responses};
use super::{
    conversation::Conversation,
    frames::Framing,
    protocol::{Offer, Protocol, Reader, Refusal, RequestInput},
    sent_parts::SentForm,
};

/// The name under which vendor content is kept.
const VENDOR: &str = "openai";

/// The difference between the two APIs. They share the rest of the protocol.
trait Api: Send + Sync + 'static {
    /// The path for a model's next message.
    const PATH: &'static str;

    /// See [`Protocol::name`].
    const NAME: &'static str;

    fn tools(offer: Offer<'_>, first: &SentForm) -> String;

    /// See [`Protocol::loads_tools`].
    fn loads_tools(_model: &str) -> Option<bool> {
        None
    }

    /// Whether images in results are sent without a setting.
    const IMAGES_IN_RESULTS: bool;

    /// See [`Protocol::clears`].
    const CLEARS: bool = false;

    /// See [`Protocol::body`].
    fn body(
        input: &RequestInput<'_>,
        conversation: &mut Conversation,
    ) -> serde_json::Result<Vec<u8>>;

    fn reader(input: &RequestInput<'_>) -> Box<dyn Reader>;
}

impl<A: Api> Protocol for A {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn path(&self, _model: &str) -> String {
        A::PATH.to_owned()
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn tools(&self, offer: Offer<'_>, first: &SentForm) -> String {
        A::tools(offer, first)
    }

    fn images(&self, model: &str) -> ImageSupport {
        ImageSupport {
            sees: own::sees_images(model),
            in_results: A::IMAGES_IN_RESULTS,
            limits: media::LIMITS,
        }
    }

    fn loads_tools(&self, model: &str) -> Option<bool> {
        A::loads_tools(model)
    }

    fn clears(&self) -> bool {
        A::CLEARS
    }

    fn body(
        &self,
        input: &RequestInput<'_>,
        conversation: &mut Conversation,
    ) -> serde_json::Result<Vec<u8>> {
        A::body(input, conversation)
    }

    fn reader(&self, input: &RequestInput<'_>) -> Box<dyn Reader> {
        A::reader(input)
    }

    fn refusal(&self, status: StatusCode, body: &Value) -> Refusal {
        refusal::of(status, body)
    }

    fn models_path(&self) -> &'static str {
        "/models"
    }

    fn model_names(&self, list: &Value) -> Option<Vec<String>> {
        model_names(list)
    }
}

/// The names in a list of models. Some servers send the bare list, or wrap it like Ollama.
fn model_names(list: &Value) -> Option<Vec<String>> {
    let models = list.get("data").or_else(|| list.get("models")).unwrap_or(list).as_array()?;
    let name = |model: &Value| {
        let named = ["id", "name"].iter().find_map(|key| model.get(key)?.as_str());
        named.or_else(|| model.as_str()).map(str::to_owned)
    };
    let names: Vec<_> = models.iter().filter_map(name).collect();
    // Any list may be bare.
    (models.is_empty() || !names.is_empty()).then_some(names)
}
