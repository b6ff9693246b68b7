//! Anthropic's Messages API.
//!
//! ```text
//! request   settings, tool choice, and the order of fields
//! messages  the conversation -> messages of blocks, with cache breakpoints
//! thinking  thinking -> kept with its message -> sent back
//! media     images and documents
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
use serde_json::{Value, value::RawValue};
use toolcrib_capabilities::http::{HeaderName, StatusCode};
use toolcrib_core::ImageSupport;

use self::answer::AnswerReader;
use super::{
    conversation::Conversation,
    frames::Framing,
    protocol::{Offer, Protocol, Reader, Refusal, RequestInput},
    sent_parts::{Part, SentForm},
    settings::Settings,
};

/// Anthropic's Messages.
pub(super) struct Anthropic;

/// The version that every compatible server knows. The next one, 2026-10-21, differs in one
/// relevant way: it does not accept `temperature`, and models up to 4.6 still have one.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// The beta of `context_management`.
const CLEARS: (&str, &str) = ("anthropic-beta", "context-management-2025-06-27");

impl Protocol for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic messages"
    }

    fn path(&self, _model: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn key(&self, key: &str) -> (HeaderName, String) {
        (HeaderName::from_static("x-api-key"), key.to_owned())
    }

    fn headers(&self, settings: &Settings) -> &'static [(&'static str, &'static str)] {
        match settings.clear_above {
            Some(_) => &[VERSION, CLEARS],
            None => &[VERSION],
        }
    }

    fn clears(&self) -> bool {
        true
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn tools(&self, offer: Offer<'_>, first: &SentForm) -> String {
        schema::tools(offer, first)
    }

    fn images(&self, model: &str) -> ImageSupport {
        media::images(model)
    }

    fn loads_tools(&self, model: &str) -> Option<bool> {
        Some(loads_tools(model))
    }

    fn body(
        &self,
        input: &RequestInput<'_>,
        conversation: &mut Conversation,
    ) -> serde_json::Result<Vec<u8>> {
        request::body(input, conversation)
    }

    fn reader(&self, input: &RequestInput<'_>) -> Box<dyn Reader> {
        Box::new(AnswerReader::new(input))
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

/// Whether a model loads tools by reference: those from 4.5 on do, and all of the newer families.
fn loads_tools(model: &str) -> bool {
    let Some(name) = model.strip_prefix("claude-") else { return false };
    let mut parts = name.split('-');
    let family = parts.next().unwrap_or_default();
    // A longer number is a date.
    let number = |part: &str| part.parse::<u32>().ok().filter(|_| part.len() < 3);
    let major = parts.next().and_then(number);
    let minor = parts.next().and_then(number).unwrap_or(0);
    match (family, major) {
        ("opus" | "sonnet" | "haiku", Some(major)) => (major, minor) >= (4, 5),
        ("fable" | "mythos", _) => true,
        _ => false,
    }
}

/// A cache breakpoint: everything up to it is cached, for five minutes from its last use.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Breakpoint {
    Ephemeral,
}

/// The field of a breakpoint, after others.
const BREAKPOINT: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Sets a breakpoint at a part. Breakpoints are not part of what was first sent.
fn end_cached<T>(part: &mut Part<T>, set: impl FnOnce(&mut T)) {
    match part {
        Part::Now(part) => set(part),
        Part::First(json) => {
            let Some(fields) = json.get().trim_end().strip_suffix('}') else { return };
            let marked = format!("{fields}{BREAKPOINT}}}");
            if let Ok(marked) = RawValue::from_string(marked) {
                *json = marked;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::loads_tools;

    #[test]
    fn models_that_load_tools_are_known_by_name() {
        for model in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-opus-4-6",
            "claude-haiku-4-5-20251001",
            "claude-sonnet-5-5",
            "claude-opus-5",
            "claude-fable-5-1",
            "claude-mythos-preview",
        ] {
            assert!(loads_tools(model), "{model}");
        }
        for model in [
            "claude-3-5-sonnet-20241022",
            "claude-3-haiku-20240307",
            "claude-sonnet-4-20250514",
            "claude-opus-4-1-20250805",
            "claude-opus-4-1",
            "claude-2.1",
            "qwen3",
            "",
        ] {
            assert!(!loads_tools(model), "{model}");
        }
    }
}
