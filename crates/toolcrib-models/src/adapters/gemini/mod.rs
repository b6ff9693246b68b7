//! Google's [Gemini API](https://ai.google.dev/api/generate-content).

mod answer;
mod contents;
mod kept;
mod name;
mod refusal;
mod request;
mod schema;
mod series;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use toolcrib_capabilities::http::{HeaderName, StatusCode};
use toolcrib_core::ImageSupport;

use self::series::Series;
use super::{
    conversation::Conversation,
    frames::Framing,
    protocol::{Offer, Protocol, Reader, Refusal, RequestInput},
    sent_parts::SentForm,
};

/// The vendor name of a message's vendor content.
const VENDOR: &str = "gemini";

/// The characters that are encoded in a model's name in a URL; it may contain a `/`, as in
/// `tunedModels/mine`.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'@')
    .remove(b':');

/// Google's Gemini API, in the version that its SDKs use.
pub(super) struct Gemini;

impl Protocol for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn path(&self, model: &str) -> String {
        let kind = if model.contains('/') { "" } else { "models/" };
        format!("/v1/{kind}{}:streamGenerateContent?alt=sse", utf8_percent_encode(model, IN_PATH))
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        (HeaderName::from_static("x-goog-api-key"), key.to_owned())
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn tools(&self, offer: Offer<'_>, first: &SentForm) -> String {
        // Names, descriptions and schemas are JSON already, so they can be serialized.
        schema::tools(offer, first).unwrap_or_default()
    }

    fn images(&self, model: &str) -> ImageSupport {
        let series = Series::of(model);
        ImageSupport {
            sees: (series != Series::Unknown).then_some(true),
            in_results: series.takes_media_in_results(),
            limits: contents::LIMITS,
        }
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
        "/v1/models?pageSize=1000"
    }

    fn model_names(&self, list: &Value) -> Option<Vec<String>> {
        let models = list.get("models")?.as_array()?.iter();
        Some(models.filter(|model| answers(model)).filter_map(name_of).collect())
    }
}

/// Whether a listed model generates content: others embed or draw.
fn answers(model: &Value) -> bool {
    match model.get("supportedGenerationMethods").and_then(Value::as_array) {
        Some(methods) => methods.iter().any(|method| method == "generateContent"),
        None => true,
    }
}

fn name_of(model: &Value) -> Option<String> {
    let name = model.get("name")?.as_str()?;
    Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
}
