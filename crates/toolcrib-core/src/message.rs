//! What goes to and comes from a model.

use std::{ops::AddAssign, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    block::{ContentBlock, write_blocks},
    json::PlainJson,
};

/// One message of a conversation. The system text stands beside the messages, not among them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// What the user said.
    User {
        /// The text.
        text: Arc<str>,
    },
    /// What the model said and wants called.
    Assistant {
        /// The text; may be empty when there are calls.
        text: Arc<str>,
        /// The calls, in the model's order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// What the model's vendor wants back with it, if it wants anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        vendor: Option<Arc<VendorContent>>,
    },
    /// What a call gave back. Each call of the assistant's has exactly one, in the same order.
    Tool {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool's name, as the model called it.
        name: Arc<str>,
        /// What the model reads: sanitised, within its budget, fenced where untrusted.
        text: Arc<str>,
        /// What is not plain text, for models that take it; `text` says what there is. Bytes are
        /// serialised as their number.
        #[serde(skip_serializing_if = "is_empty", serialize_with = "write_blocks")]
        blocks: Arc<[ContentBlock]>,
        /// Whether the call failed.
        is_error: bool,
        /// Whether somebody else may have written it.
        untrusted: bool,
    },
}

fn is_empty(blocks: &Arc<[ContentBlock]>) -> bool {
    blocks.is_empty()
}

/// How a [notice](Message::notice) begins.
const NOTICE: &str = "[notice of the tool layer, not of the user] ";

impl Message {
    /// What the user said.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { text: text.into() }
    }

    /// What the tool layer tells the model between its steps, such as that some tools cannot be used
    /// at the moment. Vendors know only users, models and tools, so that it goes out as a user's
    /// message; its first words say who speaks.
    ///
    /// ```
    /// # use toolcrib_core::Message;
    /// let notice = Message::notice("`mcp__git__*` cannot be used at the moment.");
    /// assert_eq!(notice.as_notice(), Some("`mcp__git__*` cannot be used at the moment."));
    /// assert_eq!(Message::user("Hello").as_notice(), None);
    /// ```
    pub fn notice(text: &str) -> Self {
        Self::User { text: format!("{NOTICE}{text}").into() }
    }

    /// What a [notice](Self::notice) says; `None` for every other message. Whoever looks for what the
    /// user said last passes notices over.
    pub fn as_notice(&self) -> Option<&str> {
        match self {
            Self::User { text } => text.strip_prefix(NOTICE),
            _ => None,
        }
    }

    /// What the model said and wants called.
    pub fn assistant(text: impl Into<Arc<str>>, calls: impl Into<Vec<ToolCall>>) -> Self {
        Self::Assistant { text: text.into(), calls: calls.into(), vendor: None }
    }
}

/// What a vendor wants back with a message of its own model, unchanged, such as signed or encrypted
/// reasoning. It means something only to the adapter that made it, and every other one passes it
/// over: text and calls of the message are whole without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VendorContent {
    /// Whose it is: `anthropic`, `gemini`.
    pub vendor: Arc<str>,
    /// Data in a form of the adapter's own.
    pub content: Value,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id for it.
    pub id: Arc<str>,
    /// The name it calls.
    pub name: Arc<str>,
    /// What it passes.
    pub arguments: Arguments,
}

impl ToolCall {
    /// A call with arguments that are data already.
    pub fn new(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments: Arguments::Json(arguments) }
    }

    /// A call with arguments as the model wrote them.
    pub fn unparsed(
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        arguments: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: Arguments::Text(arguments.into()) }
    }
}

/// Arguments, parsed or as the model wrote them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    /// Text that should be JSON; the pipe parses it.
    Text(String),
    /// Data. Read from JSON as [`PlainJson`].
    Json(#[serde(deserialize_with = "plain")] Value),
}

fn plain<'de, D: Deserializer<'de>>(json: D) -> Result<Value, D::Error> {
    PlainJson::deserialize(json).map(|PlainJson(value)| value)
}

/// What a model call used and cost. Sums up with `+=`; a sum begins with [`NOTHING`](Self::NOTHING),
/// since the default says that the cost is not known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Of these, tokens that came from the vendor's prompt cache.
    pub cached_input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// What models and tools cost, in US dollars; none where a part of it is not known, as with every
    /// model whose vendor does not say what an answer cost.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Nothing was used, and it cost nothing.
    pub const NOTHING: Self =
        Self { input_tokens: 0, cached_input_tokens: 0, output_tokens: 0, cost_usd: Some(0.0) };

    /// What a tool cost: no tokens. A tool that states no cost has none.
    pub fn of_tool(cost_usd: Option<f64>) -> Self {
        Self { cost_usd: Some(cost_usd.unwrap_or_default()), ..Self::NOTHING }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_input_tokens =
            self.cached_input_tokens.saturating_add(other.cached_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_usd = self.cost_usd.zip(other.cost_usd).map(|(one, other)| one + other);
    }
}
