//! The port to a language model.

use std::{error::Error, fmt, pin::Pin, sync::Arc, time::Duration};

use futures_util::stream::Stream;
use serde::Serialize;

use crate::{
    menu::Menu,
    message::{Message, ToolCall, Usage, VendorContent},
    name::ToolName,
};

/// What is asked of a model. Everything in it is shared; cloning is cheap.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The system text.
    pub system: Arc<str>,
    /// The conversation so far.
    pub messages: Arc<Vec<Message>>,
    /// The tool block.
    pub menu: Arc<Menu>,
    /// Whether tools may be called.
    pub tool_choice: ToolChoice,
}

/// Whether a model may or must call tools. Whether it kept to that is checked by whoever runs the
/// loop: not every server enforces it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must answer. The tool block stays, so that the prompt cache holds.
    None,
    /// It must call one or more tools.
    Required,
    /// It must call this tool, and no other.
    Tool(ToolName),
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelChunk {
    /// More text.
    Text(String),
    /// More of what the model thinks before it answers, where its vendor shows that. It is no part
    /// of the answer.
    Reasoning(String),
    /// The end: the whole answer. Always the last piece.
    Done(ModelResponse),
}

/// A model's whole answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelResponse {
    /// All the text.
    pub text: String,
    /// The calls it asks for.
    pub calls: Vec<ToolCall>,
    /// What it used.
    pub usage: Usage,
    /// Why it stopped.
    pub stop: StopReason,
    /// What the vendor wants back with the conversation, if it wants anything.
    pub vendor: Option<Arc<VendorContent>>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It has said what it wanted to say, or waits for the results of its calls.
    #[default]
    Finished,
    /// It wrote as much as it was allowed to: the answer, or the arguments of its last call, may be
    /// cut.
    MaxTokens,
    /// It wrote a text at which it was told to stop.
    StopSequence,
    /// Its vendor gives another reason, or none.
    Other,
}

/// A stream of a model's answer. Dropping it aborts the request.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelChunk, ModelError>> + Send>>;

/// A language model. One value serves many runs at the same time.
pub trait Model: Send + Sync + 'static {
    /// What the model is called in events: `script:script.toml`, `openai:gpt-5`.
    fn name(&self) -> &str;

    /// Whether its answers say what they cost, in [`Usage::cost_usd`]. Default: yes.
    fn states_cost(&self) -> bool {
        true
    }

    /// Asks for the next message.
    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream;
}

/// A model call that failed.
#[derive(Debug)]
#[non_exhaustive]
pub struct ModelError {
    /// The stable class.
    pub class: ModelErrorClass,
    /// What happened, for the operator. Never a key.
    pub message: String,
    /// The HTTP status, if a server answered with one that says no.
    pub status: Option<u16>,
    /// How long the vendor asks to wait before the next attempt, if it says so.
    pub retry_after: Option<Duration>,
    /// What was used all the same, as far as the vendor has said it.
    pub usage: Usage,
    /// The cause.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// The class of a model's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorClass {
    /// A scripted model has no rule for what it sees.
    NoRule,
    /// The key is missing, wrong, or not allowed to do this.
    Auth,
    /// There is no credit left. Waiting does not help.
    Quota,
    /// Too many requests or tokens within a time; see [`ModelError::retry_after`].
    RateLimit,
    /// The vendor cannot serve the request at the moment.
    Overloaded,
    /// The vendor failed.
    Server,
    /// The conversation is longer than the model takes.
    ContextOverflow,
    /// The vendor refuses to answer this, or the model declines.
    ContentFilter,
    /// The request is not as the vendor takes it; there may be no such model.
    BadRequest,
    /// The vendor cannot be reached.
    Network,
    /// Nothing came for too long, or the whole took too long.
    Timeout,
    /// The answer broke off: its stream ended, or reports an error, before it was complete. Text of
    /// it may have been shown already.
    Incomplete,
    /// What came is not what the vendor's protocol says.
    Protocol,
    /// The model did not keep to the [`ToolChoice`].
    ToolChoiceIgnored,
    /// It was not asked, because it failed several times in a row.
    BreakerOpen,
}

impl ModelErrorClass {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::NoRule,
        Self::Auth,
        Self::Quota,
        Self::RateLimit,
        Self::Overloaded,
        Self::Server,
        Self::ContextOverflow,
        Self::ContentFilter,
        Self::BadRequest,
        Self::Network,
        Self::Timeout,
        Self::Incomplete,
        Self::Protocol,
        Self::ToolChoiceIgnored,
        Self::BreakerOpen,
    ];

    /// The word as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoRule => "no_rule",
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::ContextOverflow => "context_overflow",
            Self::ContentFilter => "content_filter",
            Self::BadRequest => "bad_request",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::Incomplete => "incomplete",
            Self::Protocol => "protocol",
            Self::ToolChoiceIgnored => "tool_choice_ignored",
            Self::BreakerOpen => "breaker_open",
        }
    }
}

impl ModelError {
    /// An error of a class.
    pub fn new(class: ModelErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            status: None,
            retry_after: None,
            usage: Usage::NOTHING,
            source: None,
        }
    }

    /// The same with its cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
