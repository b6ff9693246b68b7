//! Content that Gemini requires back with a response: thoughts, and signatures, each in its part.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_core::VendorContent;

use super::VENDOR;
use crate::adapters::answer::SettledAnswer;

/// One part of a response. Text and calls are in the message, where the caller's loop may have
/// changed them; a part only refers to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub(super) enum Part<T> {
    /// A thought of the model.
    Thought {
        /// The thought, or the vendor's summary of it.
        text: T,
        #[serde(skip_serializing_if = "Option::is_none", default = "none")]
        signature: Option<T>,
    },
    /// The next piece of the message's text.
    Text {
        /// Its length.
        chars: usize,
        #[serde(skip_serializing_if = "Option::is_none", default = "none")]
        signature: Option<T>,
    },
    /// The next of the message's calls.
    Call {
        #[serde(skip_serializing_if = "Option::is_none", default = "none")]
        signature: Option<T>,
    },
}

/// `serde(default)` would require `T: Default`.
fn none<T>() -> Option<T> {
    None
}

/// The parts of a response that is being received.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<Part<String>>);

impl Parts {
    /// Adds a part. A part without a signature is merged with a similar one before it: a response
    /// comes in hundreds of pieces. A part with a signature is unchanged.
    pub(super) fn push(&mut self, part: Part<String>) {
        match (self.0.last_mut(), part) {
            (
                Some(Part::Thought { text, signature: None }),
                Part::Thought { text: more, signature: None },
            ) => text.push_str(&more),
            (
                Some(Part::Text { chars, signature: None }),
                Part::Text { chars: more, signature: None },
            ) => *chars += more,
            (_, Part::Text { chars: 0, signature: None }) => {}
            (_, part) => self.0.push(part),
        }
    }

    /// Removes repeated calls.
    pub(super) fn settle(&mut self, settled: &SettledAnswer) {
        settled.remove_repeated(&mut self.0, |part| matches!(part, Part::Call { .. }));
    }

    /// The content to keep with the message, unless it consists only of text and calls.
    pub(super) fn into_content(self) -> Option<VendorContent> {
        let plain = |part: &Part<String>| match part {
            Part::Thought { .. } => false,
            Part::Text { signature, .. } | Part::Call { signature } => signature.is_none(),
        };
        if self.0.iter().all(plain) {
            return None;
        }
        Some(VendorContent { vendor: VENDOR.into(), content: json!(self.0) })
    }
}

/// The parts of a past response, if they are Gemini's and match this number of calls.
pub(super) fn parts(content: Option<&VendorContent>, calls: usize) -> Option<Vec<Part<&str>>> {
    let content = content.filter(|content| &*content.vendor == VENDOR)?;
    let parts = <Vec<Part<&str>> as Deserialize>::deserialize(&content.content as &Value).ok()?;
    let of_calls = parts.iter().filter(|part| matches!(part, Part::Call { .. })).count();
    (of_calls == calls).then_some(parts)
}
