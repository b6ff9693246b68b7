//! A model's thinking, kept with its message and sent back with it.
//!
//! The vendor signs its models' thinking and requires it back unchanged, at its place among texts
//! and calls. Newer models (since Fable 5.1 and Opus 5.5) also refuse it if anything before it has
//! changed since: the tools, the system text, a message. The history only grows, but the menu
//! changes; and stored content may have been redacted. So kept content records what it was made
//! under, and goes back only if all of that is the same. Omitting it costs the model a memory;
//! sending it would cost the response.

use serde_json::{Value, json};
use toolcrib_core::{Digest, VendorContent};

use super::no_tools::NO_TOOLS;
use crate::adapters::prompt_prefix::PromptPrefix;

/// The name under which content of this vendor is kept.
pub(super) const VENDOR: &str = "anthropic";

/// The digest of the parts before every message, which reads the whole system text.
pub(super) fn digest(under: &PromptPrefix) -> Digest {
    let tools = under.tools().unwrap_or_else(|| Digest::of(NO_TOOLS));
    Digest::of_all([&tools, &Digest::of(&*under.system)])
}

/// One block of a message, at its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum StoredBlock<'a> {
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    /// Encrypted thinking.
    Redacted {
        data: &'a str,
    },
    /// The next `bytes` bytes of the message's text.
    Text {
        bytes: usize,
    },
    /// The message's next call.
    Call,
}

impl<'a> StoredBlock<'a> {
    /// Reads a block as [`keep`] has written it.
    pub(super) fn of(block: &'a Value) -> Option<Self> {
        let text = |key: &str| block.get(key)?.as_str();
        Some(match text("type")? {
            "thinking" => {
                Self::Thinking { thinking: text("thinking")?, signature: text("signature")? }
            }
            "redacted_thinking" => Self::Redacted { data: text("data")? },
            "text" => Self::Text { bytes: usize::try_from(block.get("bytes")?.as_u64()?).ok()? },
            "tool_use" => Self::Call,
            _ => return None,
        })
    }

    fn to_json(self) -> Value {
        match self {
            Self::Thinking { thinking, signature } => {
                json!({ "type": "thinking", "thinking": thinking, "signature": signature })
            }
            Self::Redacted { data } => json!({ "type": "redacted_thinking", "data": data }),
            Self::Text { bytes } => json!({ "type": "text", "bytes": bytes }),
            Self::Call => json!({ "type": "tool_use" }),
        }
    }
}

/// The content to keep of a message with these blocks and this text.
pub(super) fn keep<'a>(
    blocks: impl IntoIterator<Item = StoredBlock<'a>>,
    made_under: &Digest,
    text: &str,
) -> VendorContent {
    let blocks: Value = blocks.into_iter().map(StoredBlock::to_json).collect();
    let made = made(&blocks, made_under, text);
    let content = json!({ "made": made, "blocks": blocks });
    VendorContent { vendor: VENDOR.into(), content }
}

/// The blocks of a message, if they may go back with it.
pub(super) fn kept<'a>(
    vendor: &'a VendorContent,
    made_under: impl FnOnce() -> Digest,
    text: &str,
    calls: usize,
) -> Option<Vec<StoredBlock<'a>>> {
    if &*vendor.vendor != VENDOR {
        return None;
    }
    let blocks = vendor.content.get("blocks")?;
    let made_as = vendor.content.get("made")?.as_str()?;
    let list: Vec<_> = blocks.as_array()?.iter().filter_map(StoredBlock::of).collect();
    let called = list.iter().filter(|block| matches!(block, StoredBlock::Call)).count();
    let is_same = called == calls && made_as == made(blocks, &made_under(), text).to_string();
    is_same.then_some(list)
}

/// A digest of everything that must not have changed.
fn made(blocks: &Value, under: &Digest, text: &str) -> Digest {
    Digest::of_all([under, &Digest::of(text), &Digest::of_json(blocks)])
}
