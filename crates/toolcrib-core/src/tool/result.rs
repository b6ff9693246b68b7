//! The result of a call after the whole pipe.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value};

use super::output::ErrorCode;
use crate::{
    json::digest::Digest,
    messages::{block::ContentBlock, message::Message},
};

/// The result of a call that a dry run did not make, after all checks before its effect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct CallPlan {
    /// The rule that requires approval; `None` if the call would be made at once.
    pub approval_rule: Option<Arc<str>>,
    /// The reason of that rule, with known secrets redacted.
    pub approval_reason: Option<Arc<str>>,
}

/// The result of a call: the same content is stored, read by a model, and replayed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call's id, given by the model.
    pub call_id: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The name that the model called, if it is another: `call_tool`.
    pub called: Option<Arc<str>>,
    /// The arguments, with known secrets redacted. Text if they were not JSON.
    pub args: Value,
    /// The digest of the name and of the arguments as they ran, by which approvals and events name the
    /// call; `None` for a result that no engine made.
    pub args_digest: Option<Digest>,
    /// Whether a middleware changed the arguments. The conversation of an agent then contains
    /// [`args`](Self::args) in the place of those that the model wrote.
    pub rewritten: bool,
    /// The error code; `None` is success.
    pub code: Option<ErrorCode>,
    /// Set if the call was not made, because the turn is a [dry run](crate::ToolContext::dry_run):
    /// what is left to do before it would be.
    pub plan: Option<Box<CallPlan>>,
    /// The text of the result or error: redacted, within its budget, sanitized, not fenced.
    pub value: Arc<str>,
    /// The model's text: [`value`](Self::value) and the references of the [`blocks`](Self::blocks),
    /// fenced if untrusted.
    pub text: Arc<str>,
    /// The text before the first block, without the references of the blocks, fenced if untrusted;
    /// `None` without blocks, where it is [`text`](Self::text).
    pub lead: Option<Arc<str>>,
    /// The structured data, for programs: redacted and within its cap, but neither sanitized nor
    /// fenced, and never shown to a model.
    pub structured: Option<Value>,
    /// Non-text parts. Their texts are redacted, together within the call's cap, and sanitized if
    /// untrusted; a text is truncated where [`text`](Self::text) is.
    pub blocks: Arc<[ContentBlock]>,
    /// Metadata of a protocol's result, treated like [`structured`](Self::structured).
    pub meta: Option<Box<Map<String, Value>>>,
    /// The cost of the call in US dollars.
    pub cost_usd: Option<f64>,
    /// The duration from the first stage to the last.
    pub duration: Duration,
    /// Whether the content may come from an untrusted author.
    pub untrusted: bool,
    /// Whether the body ignored cancellation and was abandoned.
    pub abandoned: bool,
    /// The cause chain, or the rule that denied the call; for the operator only.
    pub cause: Option<Arc<str>>,
    /// The ids of its artifacts.
    pub artifacts: Arc<[Arc<str>]>,
    /// The number of characters that the tool produced, before truncation and including content
    /// stored as artifacts. 0 for [framework tools](crate::ToolDefinition::is_framework), which
    /// show content that is already counted.
    pub produced_chars: u64,
}

impl ToolResult {
    /// A result with everything else empty.
    pub fn new(call_id: Arc<str>, name: Arc<str>) -> Self {
        Self {
            call_id,
            name,
            called: None,
            args: Value::Null,
            args_digest: None,
            rewritten: false,
            code: None,
            plan: None,
            value: Arc::default(),
            text: Arc::default(),
            lead: None,
            structured: None,
            blocks: Arc::default(),
            meta: None,
            cost_usd: None,
            duration: Duration::ZERO,
            untrusted: false,
            abandoned: false,
            cause: None,
            artifacts: Arc::default(),
            produced_chars: 0,
        }
    }

    /// Whether the call succeeded.
    pub fn is_ok(&self) -> bool {
        self.code.is_none()
    }

    /// The message for the conversation. Its text contains the paragraphs among the blocks.
    pub fn message(&self) -> Message {
        let is_paragraph = |block: &ContentBlock| matches!(block, ContentBlock::Paragraph { .. });
        let blocks = match self.blocks.iter().any(is_paragraph) {
            true => self.blocks.iter().filter(|block| !is_paragraph(block)).cloned().collect(),
            false => Arc::clone(&self.blocks),
        };
        Message::Tool {
            call_id: Arc::clone(&self.call_id),
            name: Arc::clone(self.called.as_ref().unwrap_or(&self.name)),
            text: Arc::clone(&self.text),
            blocks,
            is_error: !self.is_ok(),
            untrusted: self.untrusted,
        }
    }
}
