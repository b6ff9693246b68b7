//! OpenAI's two APIs: Responses, which its own models are made for, and Chat Completions, which many
//! other servers speak.
//!
//! ```text
//! responses  items in, events of items out; what was thought goes back encrypted
//! chat       messages in, deltas out; liberal in what it takes, since servers differ
//!
//! api        which of them a model is spoken to by
//! sent       what both take of calls and results
//! media      images, sounds and documents in results
//! schema     the tool block
//! own        what holds for OpenAI's own models only
//! refusal    what errors mean
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
use toolcrib_scope::http::{HeaderName, header};

pub use self::api::OpenAiApi;
pub(super) use self::{chat::ChatCompletions, responses::Responses};

/// The name under which vendor content is kept.
const VENDOR: &str = "openai";

/// Where models are listed.
const MODELS_PATH: &str = "/models";

/// The header of the key.
fn key(key: &str) -> (HeaderName, String) {
    (header::AUTHORIZATION, format!("Bearer {key}"))
}

/// The names in a list of models. Some servers send it without a frame, or framed as Ollama does.
fn model_names(list: &Value) -> Option<Vec<String>> {
    let models = list.get("data").or_else(|| list.get("models")).unwrap_or(list).as_array()?;
    let name = |model: &Value| {
        let named = ["id", "name"].iter().find_map(|key| model.get(key)?.as_str());
        named.or_else(|| model.as_str()).map(str::to_owned)
    };
    let names: Vec<_> = models.iter().filter_map(name).collect();
    // Any list may come without a frame.
    (models.is_empty() || !names.is_empty()).then_some(names)
}
