//! What a call came to, after the whole pipe.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{block::ContentBlock, message::Message, output::ErrorCode};

/// What a call came to: what is stored is what a model reads, and what is replayed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call's id, as the model gave it.
    pub call_id: Arc<str>,
    /// The name, as the model called it.
    pub name: Arc<str>,
    /// What was passed, with known secrets redacted. Text where it was no JSON.
    pub args: Value,
    /// The class of the failure; `None` is success.
    pub code: Option<ErrorCode>,
    /// The text, or the error's: redacted, within its budget, sanitised, not fenced.
    pub value: Arc<str>,
    /// The text as a model reads it: [`value`](Self::value) and what stands for the
    /// [`blocks`](Self::blocks), fenced where untrusted.
    pub text: Arc<str>,
    /// The answer as data, for programs: redacted and within its cap, but neither sanitised nor
    /// fenced, and never shown to a model.
    pub structured: Option<Value>,
    /// What is not plain text. The texts in it are redacted, within the call's cap all together, and
    /// sanitised where untrusted; a text is cut where [`text`](Self::text) is.
    pub blocks: Arc<[ContentBlock]>,
    /// What the call cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// How long it took, from the first stage to the last.
    pub duration: Duration,
    /// Whether somebody else may have written it.
    pub untrusted: bool,
    /// Whether the body ignored cancellation and was left behind.
    pub abandoned: bool,
    /// For the operator only: the cause chain, or the rule that refused.
    pub cause: Option<Arc<str>>,
    /// The ids of the artifacts that were made of it.
    pub artifacts: Arc<[Arc<str>]>,
    /// How many characters the tool came up with, before anything was cut: what was kept as artifacts
    /// counts too. 0 for the [framework's own](crate::ToolDefinition::is_framework) tools, which show
    /// what is counted already.
    pub produced_chars: u64,
}

impl ToolResult {
    /// A result with everything else empty.
    pub fn new(call_id: Arc<str>, name: Arc<str>) -> Self {
        Self {
            call_id,
            name,
            args: Value::Null,
            code: None,
            value: Arc::default(),
            text: Arc::default(),
            structured: None,
            blocks: Arc::default(),
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

    /// The message that goes into the history.
    pub fn message(&self) -> Message {
        Message::Tool {
            call_id: Arc::clone(&self.call_id),
            name: Arc::clone(&self.name),
            text: Arc::clone(&self.text),
            blocks: Arc::clone(&self.blocks),
            is_error: !self.is_ok(),
            untrusted: self.untrusted,
        }
    }
}
