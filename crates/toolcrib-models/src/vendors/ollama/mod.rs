//! [Ollama's own API](https://docs.ollama.com/api/chat).

mod answer;
mod refusal;
mod request;
mod tools;

use serde_json::Value;
use toolcrib_core::{Menu, ModelRequest};
use toolcrib_scope::http::{HeaderName, StatusCode, header};

use super::{
    frames::Framing,
    protocol::{Asked, Protocol, Reader, Refusal},
};

/// Whose content a message's vendor content is.
const VENDOR: &str = "ollama";

/// Ollama's own API. It says nothing of its prompt cache, and has no tool choice: a tool that must be
/// called is asked for by whoever runs the loop, which notices where it is not.
pub(super) struct Ollama;

impl Protocol for Ollama {
    fn path(&self, _model: &str) -> String {
        "/api/chat".to_owned()
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        (header::AUTHORIZATION, format!("Bearer {key}"))
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn tools(&self, menu: &Menu) -> String {
        // Names, descriptions and schemas are JSON already, so it can be written.
        tools::block(menu).unwrap_or_default()
    }

    fn body(&self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&request::Body::new(asked))
    }

    fn reader(&self, _request: &ModelRequest) -> Box<dyn Reader> {
        Box::<answer::Reading>::default()
    }

    fn refusal(&self, _status: StatusCode, body: &Value) -> Refusal {
        refusal::of_body(body)
    }

    fn models_path(&self) -> &'static str {
        "/api/tags"
    }

    fn model_names(&self, list: &Value) -> Vec<String> {
        let models = list.get("models").and_then(Value::as_array).into_iter().flatten();
        models.filter_map(|model| Some(model.get("name")?.as_str()?.to_owned())).collect()
    }
}
