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
use toolcrib_core::Menu;
use toolcrib_scope::http::{HeaderName, StatusCode, header};

pub use self::api::OpenAiApi;
pub(super) use self::{chat::ChatCompletions, responses::Responses};
use super::{
    frames::Framing,
    protocol::{Asked, Protocol, Reader, Refusal},
};

/// The name under which vendor content is kept.
const VENDOR: &str = "openai";

/// What tells the two APIs apart. The rest of the protocol they share.
trait Api: Send + Sync + 'static {
    /// Where a model's next message is asked for.
    const PATH: &'static str;

    fn tools(menu: &Menu) -> String;

    fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error>;

    fn reader(asked: &Asked<'_>) -> Box<dyn Reader>;
}

impl<A: Api> Protocol for A {
    fn path(&self, _model: &str) -> String {
        A::PATH.to_owned()
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        (header::AUTHORIZATION, format!("Bearer {key}"))
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn tools(&self, menu: &Menu) -> String {
        A::tools(menu)
    }

    fn body(&self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        A::body(asked)
    }

    fn reader(&self, asked: &Asked<'_>) -> Box<dyn Reader> {
        A::reader(asked)
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
