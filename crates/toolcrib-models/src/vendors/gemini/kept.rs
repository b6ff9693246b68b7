//! What Gemini wants back with an answer: what it thought, and signatures, each in its part.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_core::VendorContent;

use super::VENDOR;

/// One part of an answer. Text and calls stand in the message, whoever runs the loop may have
/// changed them there; a part says only which of it was there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub(super) enum Part<T> {
    /// What the model thought.
    Thought {
        /// The thought, or the vendor's summary of it.
        text: T,
        #[serde(skip_serializing_if = "Option::is_none", default = "none")]
        signature: Option<T>,
    },
    /// The next piece of the message's text.
    Text {
        /// How long it is.
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

/// `serde(default)` would ask for `T: Default`.
fn none<T>() -> Option<T> {
    None
}

/// The parts of an answer that is coming in.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<Part<String>>);

impl Parts {
    /// Takes in a part. What has no signature is one part with its like before it: an answer comes
    /// in hundreds of pieces. What has one stays as it came.
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

    /// What is kept with the message, unless its text and calls are all that there is.
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

/// The parts of a past answer, if they are Gemini's and fit so many calls.
pub(super) fn parts(content: Option<&VendorContent>, calls: usize) -> Option<Vec<Part<&str>>> {
    let content = content.filter(|content| &*content.vendor == VENDOR)?;
    let parts = <Vec<Part<&str>> as Deserialize>::deserialize(&content.content as &Value).ok()?;
    let of_calls = parts.iter().filter(|part| matches!(part, Part::Call { .. })).count();
    (of_calls == calls).then_some(parts)
}
