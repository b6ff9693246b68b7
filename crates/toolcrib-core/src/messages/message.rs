//! Messages to and from a model.

use std::{ops::AddAssign, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::block::{ContentBlock, write_blocks};
use crate::{json::value::PlainJson, names::name::ToolName, text::fence};

/// The name of the tool with which a model finds deferred tools.
pub const SEARCH_TOOLS: &str = "search_tools";

/// The name of the tool with which a model calls a deferred tool.
pub const CALL_TOOL: &str = "call_tool";

/// One message of a conversation. The system text is separate from the messages.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// A user message.
    User {
        /// The text.
        text: Arc<str>,
        /// Images that the user attached, for models that see them; `text` names them. Bytes are
        /// serialized as their length.
        #[serde(skip_serializing_if = "is_empty", serialize_with = "write_blocks")]
        blocks: Arc<[ContentBlock]>,
    },
    /// A response of the model: text and tool calls.
    Assistant {
        /// The text; may be empty when there are calls.
        text: Arc<str>,
        /// The calls, in the model's order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// Vendor-specific content to send back with the message, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        vendor: Option<Arc<VendorContent>>,
    },
    /// The result of a tool call. Each of the assistant's calls has exactly one, in the same order.
    Tool {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool's name, as called by the model.
        name: Arc<str>,
        /// The model's text: sanitized, within its budget, fenced if untrusted.
        text: Arc<str>,
        /// Non-text parts, for models that support them; `text` contains their references. Bytes
        /// are serialized as their length.
        #[serde(skip_serializing_if = "is_empty", serialize_with = "write_blocks")]
        blocks: Arc<[ContentBlock]>,
        /// Whether the call failed.
        is_error: bool,
        /// Whether the content may come from an untrusted author.
        untrusted: bool,
    },
}

fn is_empty(blocks: &Arc<[ContentBlock]>) -> bool {
    blocks.is_empty()
}

/// The prefix of a [notice](Message::notice).
const NOTICE: &str = "[notice of the tool layer, not of the user] ";

impl Message {
    /// A message of the user.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { text: text.into(), blocks: Arc::default() }
    }

    /// Whether it has content of an unknown author: in a result, and in a user message within a
    /// [fence](crate::text::fence()) or an image.
    pub fn is_untrusted(&self) -> bool {
        match self {
            Self::User { text, blocks } => !blocks.is_empty() || text.contains(fence::OPEN),
            Self::Assistant { .. } => false,
            Self::Tool { untrusted, .. } => *untrusted,
        }
    }

    /// A message of the tool layer to the model between iterations, such as that some tools are
    /// currently unavailable. Vendors support only user, model and tool roles, so it is sent as a
    /// user message; its prefix identifies the sender.
    ///
    /// ```
    /// # use toolcrib_core::Message;
    /// let notice = Message::notice("`mcp__git__*` cannot be used at the moment.");
    /// assert_eq!(notice.as_notice(), Some("`mcp__git__*` cannot be used at the moment."));
    /// assert_eq!(Message::user("Hello").as_notice(), None);
    /// ```
    pub fn notice(text: &str) -> Self {
        Self::user(format!("{NOTICE}{text}"))
    }

    /// The text of a [notice](Self::notice); `None` for every other message. Code that looks for
    /// the last user message skips notices.
    pub fn as_notice(&self) -> Option<&str> {
        match self {
            Self::User { text, .. } => text.strip_prefix(NOTICE),
            _ => None,
        }
    }

    /// The tools that this result of `search_tools` names, in the order of its lists, each once.
    /// Empty for any other message, and for a failed search.
    ///
    /// The text of such a result is JSON of the engine, so a stored conversation contains all that
    /// was revealed in it.
    pub fn found_tools(&self) -> Vec<ToolName> {
        #[derive(Deserialize)]
        struct SearchResult {
            found: Vec<Need>,
        }
        #[derive(Deserialize)]
        struct Need {
            tools: Vec<FoundTool>,
        }
        #[derive(Deserialize)]
        struct FoundTool {
            name: Box<str>,
        }
        let Self::Tool { name, text, is_error: false, untrusted: false, .. } = self else {
            return Vec::new();
        };
        if **name != *SEARCH_TOOLS {
            return Vec::new();
        }
        let Ok(SearchResult { found }) = serde_json::from_str(text) else { return Vec::new() };
        let mut names: Vec<ToolName> = Vec::new();
        for FoundTool { name } in found.into_iter().flat_map(|need| need.tools) {
            if let Ok(name) = ToolName::new(name)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// The calls of the model's message; none for others.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant { calls, .. } => calls,
            _ => &[],
        }
    }

    /// The parts of a result or of a user's message that are not text; none for others.
    pub fn blocks(&self) -> &[ContentBlock] {
        match self {
            Self::User { blocks, .. } | Self::Tool { blocks, .. } => blocks,
            Self::Assistant { .. } => &[],
        }
    }

    /// A response of the model with text and calls.
    pub fn assistant(text: impl Into<Arc<str>>, calls: impl Into<Vec<ToolCall>>) -> Self {
        Self::Assistant { text: text.into(), calls: calls.into(), vendor: None }
    }
}

/// Content that a vendor requires to be sent back unchanged with its model's message, such as
/// signed or encrypted reasoning. Only the adapter that made it can interpret it; all others ignore
/// it, because the message's text and calls are complete without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VendorContent {
    /// The vendor: `anthropic`, `gemini`.
    pub vendor: Arc<str>,
    /// Data in the adapter's own format.
    pub content: Value,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of the call.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments.
    pub arguments: Arguments,
}

impl ToolCall {
    /// A call with parsed arguments.
    pub fn new(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments: Arguments::Json(arguments) }
    }

    /// A call with arguments as written by the model.
    pub fn unparsed(
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        arguments: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: Arguments::Text(arguments.into()) }
    }
}

/// Arguments, parsed or as written by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    /// Text that should be JSON; parsed in the pipe.
    Text(String),
    /// Parsed data. Deserialized as [`PlainJson`].
    Json(#[serde(deserialize_with = "plain")] Value),
}

fn plain<'de, D: Deserializer<'de>>(json: D) -> Result<Value, D::Error> {
    PlainJson::deserialize(json).map(|PlainJson(value)| value)
}

/// Token usage and cost of a model call. Add up with `+=`, starting with
/// [`NOTHING`](Self::NOTHING): the default means an unknown cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Input tokens that came from the vendor's prompt cache.
    pub cached_input_tokens: u64,
    /// Input tokens that the vendor wrote to its prompt cache, if it reports them. Omitted in JSON
    /// without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost of models and tools in US dollars. `None` if any part is unknown, as for models
    /// without a [price](crate::Price) whose vendor does not report a response's cost.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// No tokens and no cost.
    pub const NOTHING: Self = Self {
        input_tokens: 0,
        cached_input_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: 0,
        cost_usd: Some(0.0),
    };

    /// The cost of a tool, without tokens. A tool that states no cost counts as free.
    pub fn of_tool(cost_usd: Option<f64>) -> Self {
        Self { cost_usd: Some(cost_usd.unwrap_or_default()), ..Self::NOTHING }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_input_tokens =
            self.cached_input_tokens.saturating_add(other.cached_input_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_usd = self.cost_usd.zip(other.cost_usd).map(|(one, other)| one + other);
    }
}
