//! The vendors, and what the server asks of each: `read` a request, give an answer `whole` or as a
//! `stream`, put a refusal into the vendor's form.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod responses;

use axum::{
    body::Bytes,
    http::{HeaderMap, StatusCode, header},
};
use serde_json::Value;

use crate::{conversation::Asked, refusal::Refusal, route::Target, said::Said, server::Settings};

/// A protocol of a vendor's that [`ModelServer`](crate::ModelServer) speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OpenAI's Chat Completions, which many other servers speak too.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's generateContent and streamGenerateContent.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

/// An answer as it goes out.
pub(crate) struct Answer {
    pub(crate) content_type: &'static str,
    /// The pieces in which the vendor makes it.
    pub(crate) pieces: Vec<Bytes>,
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Ollama];

    pub(crate) fn check_key(
        self,
        headers: &HeaderMap,
        query: &str,
        key: &str,
    ) -> Result<(), Refusal> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => openai::check_key(headers, key),
            Self::Anthropic => anthropic::check_key(headers, key),
            Self::Gemini => gemini::check_key(headers, query, key),
            Self::Ollama => ollama::check_key(headers, key),
        }
    }

    pub(crate) fn models(self, model: &str) -> Value {
        match self {
            Self::OpenAi | Self::OpenAiResponses => openai::models(model),
            Self::Anthropic => anthropic::models(model),
            Self::Gemini => gemini::models(model),
            Self::Ollama => ollama::models(model),
        }
    }

    pub(crate) fn read(
        self,
        body: &Value,
        headers: &HeaderMap,
        target: &Target,
        settings: &Settings,
    ) -> Result<Asked, Refusal> {
        match self {
            Self::OpenAi => openai::read(body, settings).map_err(|fault| openai::refused(&fault)),
            Self::OpenAiResponses => {
                responses::read(body, settings).map_err(|fault| openai::refused(&fault))
            }
            Self::Anthropic => anthropic::read(body, settings, anthropic::version(headers)?)
                .map_err(|fault| anthropic::refused(&fault)),
            Self::Gemini => gemini::read(body, settings, &target.model, target.stream)
                .map_err(|fault| gemini::refused(&fault)),
            Self::Ollama => ollama::read(body, settings).map_err(|fault| ollama::refused(&fault)),
        }
    }

    /// An id for a call, made of the digits that are given.
    pub(crate) fn call_id(self, digits: &str) -> String {
        match self {
            Self::Anthropic => format!("toolu_01{digits}"),
            Self::OpenAi | Self::OpenAiResponses | Self::Gemini | Self::Ollama => {
                format!("call_{digits}")
            }
        }
    }

    pub(crate) fn answer(self, said: &Said, target: &Target, settings: &Settings) -> Answer {
        if !said.form.stream {
            let whole = match self {
                Self::OpenAi => openai::whole(said),
                Self::OpenAiResponses => responses::whole(said),
                Self::Anthropic => anthropic::whole(said),
                Self::Gemini => gemini::whole(said, settings),
                Self::Ollama => ollama::whole(said, settings),
            };
            return Answer { content_type: JSON, pieces: vec![whole.to_string().into()] };
        }
        let content_type = match self {
            Self::Ollama => LINES,
            Self::Gemini if !target.as_events => JSON,
            _ => EVENTS,
        };
        let pieces = match self {
            Self::OpenAi => openai::stream(said, settings),
            Self::OpenAiResponses => responses::stream(said, settings),
            Self::Anthropic => anthropic::stream(said, settings),
            Self::Gemini => gemini::stream(said, settings, target.as_events),
            Self::Ollama => ollama::stream(said, settings),
        };
        Answer { content_type, pieces }
    }

    /// Status and body of a refusal.
    pub(crate) fn refusal(self, refusal: &Refusal, id: &str) -> (StatusCode, Value) {
        match self {
            Self::OpenAi | Self::OpenAiResponses => {
                (refusal.usual_status(), openai::error(refusal))
            }
            Self::Anthropic => (anthropic::status(refusal), anthropic::error(refusal, id)),
            Self::Gemini => (gemini::status(refusal), gemini::error(refusal)),
            Self::Ollama => (refusal.usual_status(), ollama::error(refusal)),
        }
    }

    /// Whether a refusal says in a header when to try again.
    pub(crate) fn has_retry_after(self) -> bool {
        self != Self::Gemini
    }
}

/// The text of a header.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The key of an authorization header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Sets a field of an object.
fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(field.to_owned(), value.into());
    }
}

/// A server-sent event that has no name.
fn sse_data(data: &str) -> Bytes {
    format!("data: {data}\n\n").into()
}
