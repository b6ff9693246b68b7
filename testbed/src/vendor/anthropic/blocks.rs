//! The messages of a request to Anthropic, block by block.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{ContentBlock, ToolCall};

use super::{reply::signature, request::Thinking};
use crate::{
    cache::Block,
    conversation::{Conversation, Outcome, Unpaired, base64, media},
    reading::{Fault, Node},
};

/// A text block.
pub(super) struct Text;

impl Text {
    pub(super) fn read<'a>(block: &Node<'a>) -> Result<&'a str, Fault> {
        let fields = block.object(&["cache_control", "citations", "text", "type"])?;
        visible(&fields.need("text")?)
    }
}

/// A text that a model can read something in.
fn visible<'a>(node: &Node<'a>) -> Result<&'a str, Fault> {
    match node.text()? {
        "" => Err(node.wrong("text content blocks must be non-empty")),
        text if text.trim().is_empty() => {
            Err(node.wrong("text content blocks must contain non-whitespace text"))
        }
        text => Ok(text),
    }
}

/// A block as it is cached: its breakpoint is no part of what is compared.
pub(super) fn cacheable(part: &Node<'_>) -> Result<Block, Fault> {
    if let Some(text) = part.value.as_str() {
        return Ok(Block { text: Text::block(text).to_string(), breakpoint: false });
    }
    let mut value = part.value.clone();
    let control = value.as_object_mut().and_then(|map| map.shift_remove("cache_control"));
    let control = control.filter(|control| !control.is_null());
    if let Some(control) = &control {
        let node = Node { value: control, place: part.place.clone() };
        let kind = node.object(&["ttl", "type"])?.need("type")?;
        if kind.value != "ephemeral" {
            return Err(kind.wrong("Input should be 'ephemeral'"));
        }
    }
    Ok(Block { text: value.to_string(), breakpoint: control.is_some() })
}

/// Messages of one role in a row, which count as one.
struct Turn<'a> {
    of_user: bool,
    first: Node<'a>,
    blocks: Vec<Node<'a>>,
}

/// Reads the messages. With `thinking`, blocks of thinking are wanted back where the vendor does.
pub(super) fn conversation(
    messages: &Node<'_>,
    without_tools: bool,
    thinking: Option<&Thinking>,
) -> Result<Conversation, Fault> {
    let turns = turns(messages)?;
    let mut conversation = Conversation::default();
    let last_said = turns.iter().rposition(|turn| !turn.of_user);
    for (position, turn) in turns.iter().enumerate() {
        if turn.of_user {
            user(turn, &mut conversation)?;
            continue;
        }
        let is_last = last_said == Some(position);
        let must_think = is_last && thinking == Some(&Thinking::Always);
        assistant(turn, &mut conversation, must_think)?;
        if conversation.waits() && without_tools {
            return Err(turn.first.wrong(
                "Requests which include `tool_use` or `tool_result` blocks must define tools",
            ));
        }
    }
    match turns.last() {
        Some(turn) if turn.of_user => Ok(conversation),
        Some(_) => Err(messages.wrong(
            "this model does not support prefill: the conversation must end with a user message",
        )),
        None => Err(messages.wrong("at least one message is required")),
    }
}

fn turns<'a>(messages: &Node<'a>) -> Result<Vec<Turn<'a>>, Fault> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages.list()? {
        let fields = message.object(&["content", "role"])?;
        let role = fields.need("role")?;
        let of_user = match role.text()? {
            "user" => true,
            "assistant" => false,
            _ => return Err(role.wrong("Input should be one of assistant, user")),
        };
        let content = fields.need("content")?;
        let blocks = match content.value {
            Value::String(_) => vec![content],
            _ => content.list()?,
        };
        if blocks.is_empty() {
            return Err(message.wrong("all messages must have non-empty content"));
        }
        if turns.is_empty() && !of_user {
            return Err(message.wrong("the first message must use the `user` role"));
        }
        match turns.last_mut().filter(|turn| turn.of_user == of_user) {
            Some(turn) => turn.blocks.extend(blocks),
            None => turns.push(Turn { of_user, first: message, blocks }),
        }
    }
    Ok(turns)
}

fn user(turn: &Turn<'_>, conversation: &mut Conversation) -> Result<(), Fault> {
    let mut texts = Vec::new();
    for block in &turn.blocks {
        if block.value.is_string() {
            texts.push(visible(block)?.to_owned());
            continue;
        }
        let kind = block.open_object()?.need("type")?;
        match kind.text()? {
            "tool_result" if texts.is_empty() => result(block, conversation)?,
            "tool_result" => {
                return Err(block.wrong("`tool_result` blocks must come before all others"));
            }
            "text" => texts.push(Text::read(block)?.to_owned()),
            "image" | "document" => texts.push(attachment(block)?.reference()),
            other => return Err(kind.wrong(format!("a user has no block of type `{other}`"))),
        }
    }
    conversation.settle().map_err(|unanswered| {
        turn.first.wrong(format!(
            "`tool_use` ids were found without `tool_result` blocks immediately after: {}",
            unanswered.join(", ")
        ))
    })?;
    if !texts.is_empty() {
        conversation.user(&texts.join("\n"));
    }
    Ok(())
}

fn result(block: &Node<'_>, conversation: &mut Conversation) -> Result<(), Fault> {
    let known = ["cache_control", "content", "is_error", "tool_use_id", "toolset_name", "type"];
    let fields = block.object(&known)?;
    let id = fields.text("tool_use_id")?;
    let mut outcome =
        Outcome { is_error: fields.flag("is_error")?.unwrap_or(false), ..Outcome::default() };
    match fields.get("content") {
        Some(content) if content.value.is_string() => content.text()?.clone_into(&mut outcome.text),
        Some(content) => {
            let mut texts = Vec::new();
            for part in content.list()? {
                let kind = part.open_object()?.need("type")?;
                match kind.text()? {
                    "text" => texts.push(Text::read(&part)?),
                    "image" | "document" => outcome.blocks.push(attachment(&part)?),
                    _ => return Err(kind.wrong("Input should be one of document, image, text")),
                }
            }
            outcome.text = texts.join("\n");
        }
        None => {}
    }
    conversation.result(id, outcome).map_err(|why| {
        block.wrong(match why {
            Unpaired::Twice => format!("each tool_use must have a single result; two are for {id}"),
            _ => format!(
                "unexpected `tool_use_id` found in `tool_result` blocks: {id}; there is no such \
                 `tool_use` block in the previous message"
            ),
        })
    })
}

fn attachment(block: &Node<'_>) -> Result<ContentBlock, Fault> {
    let fields =
        block.object(&["cache_control", "citations", "context", "source", "title", "type"])?;
    let source = fields.need("source")?;
    let kind = source.open_object()?.need("type")?;
    match kind.text()? {
        "base64" => {
            let fields = source.object(&["data", "media_type", "type"])?;
            Ok(media(fields.text("media_type")?, base64(&fields.need("data")?)?))
        }
        "text" => {
            let fields = source.object(&["data", "media_type", "type"])?;
            Ok(ContentBlock::text("document", fields.text("data")?))
        }
        "url" => {
            Ok(ContentBlock::link(source.object(&["type", "url"])?.text("url")?, "attachment"))
        }
        _ => Err(kind.wrong("Input should be one of base64, text, url")),
    }
}

fn assistant(
    turn: &Turn<'_>,
    conversation: &mut Conversation,
    must_think: bool,
) -> Result<(), Fault> {
    let (mut texts, mut calls, mut thought) = (Vec::new(), Vec::new(), false);
    for block in &turn.blocks {
        if block.value.is_string() {
            texts.push(visible(block)?);
            continue;
        }
        let kind = block.open_object()?.need("type")?;
        match kind.text()? {
            "text" => texts.push(Text::read(block)?),
            "thinking" => thought = thinking(block)?,
            "redacted_thinking" => thought = block.object(&["data", "type"])?.text("data").is_ok(),
            "tool_use" if must_think && !thought => {
                return Err(block.wrong(
                    "Expected `thinking` or `redacted_thinking`, but found `tool_use`: with \
                     `thinking` enabled, what was thought before the last calls must be sent back",
                ));
            }
            "tool_use" => calls.push(call(block)?),
            other => return Err(kind.wrong(format!("an assistant has no block of type `{other}`"))),
        }
    }
    conversation.assistant(&texts.concat(), calls).map_err(|id| {
        turn.first.wrong(format!("`tool_use` ids must be unique; {id} is there twice"))
    })
}

fn thinking(block: &Node<'_>) -> Result<bool, Fault> {
    let fields = block.object(&["signature", "thinking", "type"])?;
    let signed = fields.need("signature")?;
    if signed.text()? != signature(fields.text("thinking")?) {
        return Err(block.wrong("Invalid `signature` in `thinking` block"));
    }
    Ok(true)
}

fn call(block: &Node<'_>) -> Result<ToolCall, Fault> {
    let fields = block.object(&[
        "cache_control",
        "caller",
        "id",
        "input",
        "name",
        "toolset_name",
        "type",
    ])?;
    let id = fields.need("id")?;
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.text()?.is_empty() || !id.text()?.chars().all(is_id) {
        return Err(id.wrong("String should match pattern '^[a-zA-Z0-9_-]+$'"));
    }
    let input = fields.need("input")?;
    if !input.value.is_object() {
        return Err(input.not_a("dictionary"));
    }
    let name: Arc<str> = fields.text("name")?.into();
    Ok(ToolCall::new(id.text()?, name, input.value.clone()))
}
