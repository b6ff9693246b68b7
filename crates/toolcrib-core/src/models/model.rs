//! The port to a language model.

use std::{error::Error, pin::Pin, sync::Arc, time::Duration};

use futures_util::stream::Stream;
use serde::Serialize;

use super::price::Price;
use crate::{
    menu::Menu,
    messages::{
        image::ImageSupport,
        message::{Message, ToolCall, Usage, VendorContent},
        sent_parts::SentParts,
    },
    names::name::ToolName,
};

/// A request to a model. All parts are shared; cloning is cheap.
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
    /// The parts of earlier requests of the session, which are sent again as they were; `None`
    /// without a session.
    pub sent_parts: Option<Arc<SentParts>>,
}

/// Whether a model may or must call tools. The agent loop verifies it: not every server enforces
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// Calls are not allowed. The tool block stays, so that the prompt cache stays valid.
    None,
    /// One or more calls are required.
    Required,
    /// A call of this tool is required.
    Tool(ToolName),
}

/// A piece of a model's response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelChunk {
    /// A text delta.
    Text(String),
    /// A reasoning delta, if the vendor exposes reasoning. Not part of the answer.
    Reasoning(String),
    /// The complete response. Always the last piece.
    Done(ModelResponse),
}

/// A model's complete response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelResponse {
    /// All the text of the answer. Reasoning that was recognized only at the end is not part of it,
    /// and was streamed as text before.
    pub text: String,
    /// The tool calls.
    pub calls: Vec<ToolCall>,
    /// Token usage.
    pub usage: Usage,
    /// The finish reason.
    pub stop: StopReason,
    /// Vendor content to send back with the conversation, if any.
    pub vendor: Option<Arc<VendorContent>>,
}

/// The reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It finished, or waits for the results of its calls.
    #[default]
    Finished,
    /// The output limit was reached: the answer, or the arguments of its last call, may be cut off.
    MaxTokens,
    /// A stop sequence was reached.
    StopSequence,
    /// The vendor gives another reason, or none.
    Other,
}

/// A stream of a model's response. Dropping it aborts the request.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelChunk, ModelError>> + Send>>;

/// A language model that an agent calls. One value serves many runs at the same time. An [`Arc`] of
/// one is a model, too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    label = "neither a `Model` nor an `Arc` of one",
    note = "`VendorModel::from_env(\"openai:gpt-5-mini\")?` makes a model of a vendor, `ScriptedModel` one for tests"
)]
pub trait Model: Send + Sync + 'static {
    /// The model's name in events: `script:script.toml`, `openai:gpt-5`.
    fn name(&self) -> &str;

    /// Whether its responses state their cost, in [`Usage::cost_usd`]. Default: yes.
    fn reports_cost(&self) -> bool {
        true
    }

    /// The price of its tokens, from which the agent loop computes the cost of each response.
    /// Default: none; then a cost counts only if the response states it.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Whether it sees images, and which. The model itself leaves out the others of a conversation,
    /// with a text in their place. Default: it sees none.
    fn images(&self) -> ImageSupport {
        ImageSupport::BLIND
    }

    /// Requests the next message.
    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn reports_cost(&self) -> bool {
        (**self).reports_cost()
    }

    fn price(&self) -> Option<Price> {
        (**self).price()
    }

    fn images(&self) -> ImageSupport {
        (**self).images()
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        M::respond(Arc::clone(&*self), request)
    }
}

/// A model call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// The stable class.
    pub class: ModelErrorClass,
    /// The message, for the operator. Never contains a key.
    pub message: String,
    /// The HTTP status, if a server returned an error.
    pub status: Option<u16>,
    /// The retry delay that the vendor requested, if any.
    pub retry_after: Option<Duration>,
    /// Usage despite the failure, as far as the vendor reported it.
    pub usage: Usage,
    /// The cause.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// The class of a model's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorClass {
    /// A scripted model has no rule for the conversation.
    NoRule,
    /// The key is missing, invalid, or lacks permission.
    Auth,
    /// No credit is left. Waiting does not help.
    Quota,
    /// Too many requests or tokens within a period; see [`ModelError::retry_after`].
    RateLimit,
    /// The vendor cannot serve the request at the moment.
    Overloaded,
    /// The vendor failed.
    Server,
    /// The conversation exceeds the model's context window.
    ContextOverflow,
    /// The vendor refuses to answer this, or the model declines.
    ContentFilter,
    /// The vendor rejects the request; the model may not exist.
    BadRequest,
    /// The vendor is unreachable.
    Network,
    /// An idle timeout or a total timeout.
    Timeout,
    /// The stream ended or reported an error before the response was complete. Parts of its text
    /// may have been shown already.
    Incomplete,
    /// The response violates the vendor's protocol.
    Protocol,
    /// The model ignored the [`ToolChoice`].
    ToolChoiceIgnored,
    /// The response is complete, and has no text and no call, at most reasoning.
    EmptyAnswer,
    /// No request was made because the circuit breaker is open after repeated failures.
    BreakerOpen,
}

impl ModelErrorClass {
    /// Every class, in the order of its declaration.
    pub const ALL: [Self; 16] = [
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
        Self::EmptyAnswer,
        Self::BreakerOpen,
    ];

    /// The class as written in JSON.
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
            Self::EmptyAnswer => "empty_answer",
            Self::BreakerOpen => "breaker_open",
        }
    }
}

impl ModelError {
    /// An error of the given class.
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

    /// Adds the cause of the error.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}
