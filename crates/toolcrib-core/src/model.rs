//! The port to a language model.

use std::{error::Error, fmt, pin::Pin, sync::Arc};

use futures_util::stream::Stream;
use serde::Serialize;

use crate::{
    menu::Menu,
    message::{Message, ToolCall, Usage},
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

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must answer. The tool block stays, so that the prompt cache holds.
    None,
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelChunk {
    /// More text.
    Text(String),
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
}

/// A stream of a model's answer. Dropping it aborts the request.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelChunk, ModelError>> + Send>>;

/// A language model. One value serves many runs at the same time.
pub trait Model: Send + Sync + 'static {
    /// What the model is called in events: `script:script.toml`, `openai:gpt-5`.
    fn name(&self) -> &str;

    /// Asks for the next message.
    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream;
}

/// A model call that failed.
#[derive(Debug)]
pub struct ModelError {
    /// The stable class.
    pub class: ModelErrorClass,
    /// What happened, for the operator.
    pub message: String,
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
    /// The stream ended without an end.
    Incomplete,
}

impl ModelError {
    /// An error of a class.
    pub fn new(class: ModelErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), source: None }
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
