//! Content that a server requires back with its model's message.
//!
//! OpenAI itself requires none. Models that reason between calls do: DeepSeek, Kimi, GLM and vLLM
//! send `reasoning_content` or `reasoning`, OpenRouter also `reasoning_details` with signatures,
//! and Gemini's compatible endpoint a signature in the `extra_content` of calls. Each goes back
//! under its original name, and only to the server and the model that it came from: others refuse a
//! conversation with unknown fields. It is kept as vendor content of this form, with absent fields
//! omitted:
//!
//! ```json
//! {
//!   "server": "https://api.deepseek.com",
//!   "model": "deepseek-v4",
//!   "reasoning_content": "…",
//!   "reasoning": "…",
//!   "reasoning_details": [{ "type": "reasoning.text", "text": "…", "signature": "…" }],
//!   "calls": [{ "google": { "thought_signature": "…" } }, null]
//! }
//! ```
//!
//! `calls` has one entry for each call of the message.

use std::mem;

use serde::Serialize;
use serde_json::{Map, Value};
use toolcrib_core::VendorContent;

use super::{
    super::{
        super::{answer::SettledAnswer, protocol::RequestInput},
        VENDOR,
    },
    events::Delta,
};

const SERVER: &str = "server";
const MODEL: &str = "model";
const REASONING_CONTENT: &str = "reasoning_content";
const REASONING: &str = "reasoning";
const REASONING_DETAILS: &str = "reasoning_details";
const CALLS: &str = "calls";

/// The content that goes back with a message.
#[derive(Default, Serialize)]
pub(super) struct ReasoningFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a Value>,
}

impl<'a> ReasoningFields<'a> {
    /// The content kept with a message and with each of its calls; nothing if it came from
    /// elsewhere or does not match the number of calls.
    pub(super) fn of(
        kept: Option<&'a VendorContent>,
        calls: usize,
        input: &RequestInput<'_>,
    ) -> (Self, &'a [Value]) {
        let is_from_there = |content: &Value| {
            let is = |key, text| content.get(key).is_some_and(|kept| kept == text);
            is(SERVER, input.server) && is(MODEL, input.model)
        };
        let content = kept.filter(|kept| *kept.vendor == *VENDOR).map(|kept| &kept.content);
        let Some(content) = content.filter(|content| is_from_there(content)) else {
            return Default::default();
        };
        let extra_contents =
            content.get(CALLS).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if extra_contents.len() != calls {
            return Default::default();
        }
        let text = |key| content.get(key).and_then(Value::as_str);
        let returned = Self {
            reasoning_content: text(REASONING_CONTENT),
            reasoning: text(REASONING),
            reasoning_details: content.get(REASONING_DETAILS),
        };
        (returned, extra_contents)
    }
}

/// The content to keep of a partial response.
pub(super) struct VendorContentBuilder {
    server: String,
    model: String,
    reasoning_content: String,
    reasoning: String,
    reasoning_details: Vec<Value>,
    extra_contents: Vec<Value>,
}

impl VendorContentBuilder {
    /// The content for this request, still empty.
    pub(super) fn of(input: &RequestInput<'_>) -> Self {
        Self {
            server: input.server.to_owned(),
            model: input.model.to_owned(),
            reasoning_content: String::new(),
            reasoning: String::new(),
            reasoning_details: Vec::new(),
            extra_contents: Vec::new(),
        }
    }

    /// Adds a delta; returns the reasoning to show. vLLM sends the same under two names.
    pub(super) fn delta<'d>(&mut self, delta: &'d Delta<'_>) -> &'d str {
        for detail in &delta.reasoning_details.0 {
            self.detail(detail);
        }
        let (content, plain) = (delta.reasoning_content.text(), delta.reasoning.text());
        if content.is_empty() {
            self.reasoning.push_str(plain);
            plain
        } else {
            self.reasoning_content.push_str(content);
            content
        }
    }

    /// Pieces of one detail have one index: their texts are concatenated, other fields are kept
    /// once.
    fn detail(&mut self, piece: &Value) {
        let same = |known: &&mut Value| {
            known.get("type") == piece.get("type")
                && known.get("index") == piece.get("index")
                && piece.get("index").is_some()
        };
        let known = self.reasoning_details.last_mut().filter(same).and_then(Value::as_object_mut);
        let (Some(known), Some(piece)) = (known, piece.as_object()) else {
            self.reasoning_details.push(piece.clone());
            return;
        };
        for (key, value) in piece.iter().filter(|(_, value)| !value.is_null()) {
            match (known.get_mut(key), value) {
                (Some(Value::String(text)), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    text.push_str(more);
                }
                _ => drop(known.insert(key.clone(), value.clone())),
            }
        }
    }

    /// Adds the extra content of a call.
    pub(super) fn extra_content(&mut self, position: usize, extra: Value) {
        if let Some(kept) = self.extra_contents.get_mut(position) {
            *kept = extra;
        } else {
            self.extra_contents.resize(position, Value::Null);
            self.extra_contents.push(extra);
        }
    }

    /// Removes the extra content of repeated calls.
    pub(super) fn settle(&mut self, settled: &SettledAnswer) {
        settled.remove_repeated(&mut self.extra_contents, |_| true);
    }

    /// Takes the content, if there is any.
    pub(super) fn take(&mut self, calls: usize) -> Option<VendorContent> {
        let texts = [
            (REASONING_CONTENT, mem::take(&mut self.reasoning_content)),
            (REASONING, mem::take(&mut self.reasoning)),
        ];
        let reasoning_details = mem::take(&mut self.reasoning_details);
        let mut extra_contents = mem::take(&mut self.extra_contents);
        let has_text = texts.iter().any(|(_, text)| !text.is_empty());
        if !has_text && reasoning_details.is_empty() && extra_contents.is_empty() {
            return None;
        }
        let from = [(SERVER, mem::take(&mut self.server)), (MODEL, mem::take(&mut self.model))];
        let mut content = Map::new();
        for (key, text) in from.into_iter().chain(texts).filter(|(_, text)| !text.is_empty()) {
            content.insert(key.to_owned(), text.into());
        }
        if !reasoning_details.is_empty() {
            content.insert(REASONING_DETAILS.to_owned(), reasoning_details.into());
        }
        extra_contents.resize(calls, Value::Null);
        content.insert(CALLS.to_owned(), extra_contents.into());
        Some(VendorContent { vendor: VENDOR.into(), content: content.into() })
    }
}
