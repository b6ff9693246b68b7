//! The scripted model from a user's point of view: a script and a request go in, an answer comes
//! out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod answering;
mod documented;
mod loading;
mod matching;
mod recording;

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use toolcrib_core::{
    Menu, Message, Model, ModelChunk, ModelError, ModelRequest, ModelResponse, Tool, ToolCall,
    ToolChoice,
};
use toolcrib_models::ScriptedModel;

fn model(script: &str) -> Arc<ScriptedModel> {
    match ScriptedModel::from_toml("script:test.toml", script) {
        Ok(model) => Arc::new(model),
        Err(errors) => panic!("{errors}"),
    }
}

fn tool(name: &str) -> Tool {
    Tool::builder(name)
        .description("A tool.")
        .handler(|_: Value, _| async { "never called" })
        .unwrap()
}

/// A conversation that a test builds up.
#[derive(Clone)]
struct Conversation {
    messages: Vec<Message>,
    offered: Vec<&'static str>,
    tool_choice: ToolChoice,
}

fn user(text: &str) -> Conversation {
    Conversation {
        messages: vec![Message::user(text)],
        offered: Vec::new(),
        tool_choice: ToolChoice::Auto,
    }
}

impl Conversation {
    fn offering(mut self, tools: &[&'static str]) -> Self {
        self.offered = tools.to_vec();
        self
    }

    fn wrapping_up(mut self) -> Self {
        self.tool_choice = ToolChoice::None;
        self
    }

    /// A call and its result.
    #[expect(clippy::needless_pass_by_value, reason = "tests pass what they have just made")]
    fn result(self, tool: &str, text: impl ToString) -> Self {
        self.call(tool, text.to_string(), false)
    }

    fn error(self, tool: &str, text: &str) -> Self {
        self.call(tool, text.to_owned(), true)
    }

    fn call(mut self, tool: &str, text: String, is_error: bool) -> Self {
        let id: Arc<str> = format!("call_{}", self.messages.len()).into();
        let call = ToolCall::new(Arc::clone(&id), tool, json!({}));
        self.messages.push(Message::assistant("", [call]));
        let name = tool.into();
        let text = text.into();
        self.messages.push(Message::Tool {
            call_id: id,
            name,
            text,
            blocks: Arc::default(),
            is_error,
            untrusted: false,
        });
        self
    }

    fn then(mut self, text: &str) -> Self {
        self.messages.push(Message::user(text));
        self
    }

    fn request(&self) -> ModelRequest {
        ModelRequest {
            system: "You are a test.".into(),
            messages: Arc::new(self.messages.clone()),
            menu: Arc::new(
                Menu::new(self.offered.iter().map(|name| tool(name)).collect()).unwrap(),
            ),
            tool_choice: self.tool_choice.clone(),
            sent_parts: None,
        }
    }
}

async fn chunks(
    model: &Arc<ScriptedModel>,
    conversation: &Conversation,
) -> Vec<Result<ModelChunk, ModelError>> {
    Arc::clone(model).respond(conversation.request()).collect().await
}

async fn try_ask(
    model: &Arc<ScriptedModel>,
    conversation: &Conversation,
) -> Result<ModelResponse, ModelError> {
    respond(model, conversation.request()).await
}

async fn respond(
    model: &Arc<ScriptedModel>,
    request: ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let chunks: Vec<_> = Arc::clone(model).respond(request).collect().await;
    match chunks.into_iter().next_back().unwrap()? {
        ModelChunk::Done(response) => Ok(response),
        other => panic!("the last piece is {other:?}"),
    }
}

/// The answer's text by a script of these rules.
async fn text(script: &str, conversation: &Conversation) -> String {
    try_ask(&model(script), conversation).await.unwrap().text
}

/// The error of a script of these rules.
async fn failure(script: &str, conversation: &Conversation) -> String {
    try_ask(&model(script), conversation).await.unwrap_err().to_string()
}
