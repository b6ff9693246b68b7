//! Anthropic's Messages API.
//!
//! ```text
//! request   settings, tool choice, and the order of fields
//! messages  the conversation -> messages of blocks, with cache breakpoints
//! thinking  thinking -> kept with its message -> sent back
//! media     images and documents in results
//! schema    the tool block
//! answer    events -> a response
//! refusal   classifies the vendor's errors
//! ```

mod answer;
mod media;
mod messages;
mod no_tools;
mod refusal;
mod request;
mod schema;
mod thinking;

use serde::Serialize;
use serde_json::Value;
use toolcrib_capabilities::http::{HeaderName, StatusCode};
use toolcrib_core::Menu;

use self::{answer::Reading, request::Body};
use super::{
    frames::Framing,
    protocol::{Asked, Protocol, Reader, Refusal},
};

/// Anthropic's Messages.
pub(super) struct Anthropic;

/// The version that every compatible server knows. The next one, 2026-10-21, differs in one
/// relevant way: it does not accept `temperature`, and models up to 4.6 still have one.
const HEADERS: &[(&str, &str)] = &[("anthropic-version", "2023-06-01")];

impl Protocol for Anthropic {
    fn path(&self, _model: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        (HeaderName::from_static("x-api-key"), key.to_owned())
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        HEADERS
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn tools(&self, menu: &Menu) -> String {
        schema::tools(menu)
    }

    fn body(&self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        asked.write(&Body::new(asked)?)
    }

    fn reader(&self, asked: &Asked<'_>) -> Box<dyn Reader> {
        Box::new(Reading::new(asked.request))
    }

    fn refusal(&self, _status: StatusCode, body: &Value) -> Refusal {
        refusal::read(body)
    }

    fn models_path(&self) -> &'static str {
        // Without a limit, the response has the twenty newest.
        "/v1/models?limit=1000"
    }

    fn model_names(&self, list: &Value) -> Option<Vec<String>> {
        let models = list.get("data")?.as_array()?.iter();
        let names = models
            .filter(|model| model.get("lifecycle").is_none_or(|stage| stage != "retired"))
            .filter_map(|model| model.get("id")?.as_str().map(str::to_owned));
        Some(names.collect())
    }
}

/// A cache breakpoint: everything up to it is cached, for five minutes from its last use.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Breakpoint {
    Ephemeral,
}
