//! A conversation as a vendor's request tells it, on its way to becoming a [`ModelRequest`].

use std::{collections::HashSet, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use toolcrib_core::{ContentBlock, Menu, Message, ModelRequest, Tool, ToolCall, ToolContext};

use crate::{
    cache::Prompt,
    reading::{Fault, Node},
};

/// What a request comes to, whoever's form it has.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) request: ModelRequest,
    pub(crate) prompt: Prompt,
    /// How much the answer may use.
    pub(crate) most_tokens: Option<u64>,
    pub(crate) form: Form,
}

/// In what form the answer is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Form {
    pub(crate) stream: bool,
    /// OpenAI: whether a stream ends with its usage.
    pub(crate) usage: bool,
    /// Whether what the model thinks is shown, where that is asked for.
    pub(crate) thoughts: bool,
}

/// What a call came to, as a request tells it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) blocks: Vec<ContentBlock>,
    pub(crate) is_error: bool,
}

impl Outcome {
    /// A result of which the vendor's form does not say whether it failed, only the text.
    pub(crate) fn marked(text: &str, failure_mark: &str) -> Self {
        let failed = Some(failure_mark).filter(|mark| !mark.is_empty());
        let failed = failed.and_then(|mark| text.strip_prefix(mark));
        Self {
            text: failed.unwrap_or(text).to_owned(),
            is_error: failed.is_some(),
            ..Self::default()
        }
    }
}

/// Why a result belongs to no call.
#[derive(Debug, PartialEq)]
pub(crate) enum Unpaired {
    /// There is no such call in the message before it.
    NoCall,
    /// The call has a result already.
    Twice,
    /// It is this tool's turn.
    OutOfOrder(Arc<str>),
}

/// The messages so far, and the calls that still wait for their results. However results come in,
/// they leave in the order of their calls.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    open: Vec<OpenCall>,
    ids: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct OpenCall {
    id: Arc<str>,
    name: Arc<str>,
    result: Option<Outcome>,
}

impl Conversation {
    pub(crate) fn user(&mut self, text: &str) {
        self.messages.push(Message::user(text));
    }

    /// What the model said; its calls wait for results from now on.
    ///
    /// The error is an id that an earlier call has.
    pub(crate) fn assistant(&mut self, text: &str, calls: Vec<ToolCall>) -> Result<(), Arc<str>> {
        for call in &calls {
            if !self.ids.insert(Arc::clone(&call.id)) {
                return Err(Arc::clone(&call.id));
            }
            let (id, name) = (Arc::clone(&call.id), Arc::clone(&call.name));
            self.open.push(OpenCall { id, name, result: None });
        }
        self.messages.push(Message::assistant(text, calls));
        Ok(())
    }

    /// An id for a call of a vendor that gives none.
    pub(crate) fn made_up_id(&self, before: usize) -> String {
        format!("call_{}", self.ids.len() + before + 1)
    }

    pub(crate) fn waits(&self) -> bool {
        !self.open.is_empty()
    }

    /// How many calls wait.
    pub(crate) fn waiting(&self) -> usize {
        self.open.len()
    }

    /// The result of the call with that id.
    pub(crate) fn result(&mut self, id: &str, outcome: Outcome) -> Result<(), Unpaired> {
        let call = self.open.iter_mut().find(|call| *call.id == *id).ok_or(Unpaired::NoCall)?;
        match call.result.replace(outcome) {
            None => Ok(()),
            Some(_) => Err(Unpaired::Twice),
        }
    }

    /// The result of the next call that has none, where results say only which tool's they are.
    /// Nothing but their order tells two results of one tool apart.
    pub(crate) fn next_result(
        &mut self,
        name: Option<&str>,
        outcome: Outcome,
    ) -> Result<(), Unpaired> {
        let call = self.open.iter_mut().find(|call| call.result.is_none());
        let call = call.ok_or(Unpaired::NoCall)?;
        if name.is_some_and(|name| *call.name != *name) {
            return Err(Unpaired::OutOfOrder(Arc::clone(&call.name)));
        }
        call.result = Some(outcome);
        Ok(())
    }

    /// Ends the results of a message's calls. The error is the ids of those that have none.
    pub(crate) fn settle(&mut self) -> Result<(), Vec<Arc<str>>> {
        let unanswered = self.open.iter().filter(|call| call.result.is_none());
        let unanswered: Vec<_> = unanswered.map(|call| Arc::clone(&call.id)).collect();
        if !unanswered.is_empty() {
            return Err(unanswered);
        }
        for OpenCall { id, name, result } in self.open.drain(..) {
            let Outcome { text, blocks, is_error } = result.unwrap_or_default();
            self.messages.push(Message::Tool {
                call_id: id,
                name,
                text: text.into(),
                blocks: blocks.into(),
                is_error,
                untrusted: false,
            });
        }
        Ok(())
    }

    pub(crate) fn into_messages(self) -> Arc<Vec<Message>> {
        Arc::new(self.messages)
    }
}

/// A tool as a request declares it; it is offered to the model and never run.
pub(crate) fn tool(
    declared: &Node<'_>,
    name: &str,
    description: Option<&str>,
    schema: Value,
) -> Result<Tool, Fault> {
    let description = description.filter(|text| !text.trim().is_empty());
    Tool::builder(name)
        .description(description.unwrap_or("(no description)"))
        .input_schema(schema)
        .handler(|_: Value, _: ToolContext| async { "never run" })
        .map_err(|error| declared.wrong(error.to_string()))
}

/// The tool block of a request.
pub(crate) fn menu(declared: Option<&Node<'_>>, tools: Vec<Tool>) -> Result<Arc<Menu>, Fault> {
    let menu = Menu::new(tools).map_err(|collision| {
        let sentence = format!("two tools are called `{}`", collision.name);
        declared.map_or_else(|| Node::root(&Value::Null).wrong(&sentence), |at| at.wrong(&sentence))
    })?;
    Ok(Arc::new(menu))
}

/// Bytes that a request carries as base64.
pub(crate) fn base64(node: &Node<'_>) -> Result<Vec<u8>, Fault> {
    let text = node.text()?;
    BASE64_STANDARD.decode(text).map_err(|error| node.wrong(format!("not base64: {error}")))
}

/// An image or sound of that media type, or other bytes.
pub(crate) fn media(media_type: &str, data: Vec<u8>) -> ContentBlock {
    match media_type.split('/').next() {
        Some("image") => ContentBlock::image(media_type, data),
        Some("audio") => ContentBlock::audio(media_type, data),
        _ => ContentBlock::binary("attachment", data).media_type(media_type),
    }
}
