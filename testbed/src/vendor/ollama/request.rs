//! What Ollama takes as a request.
//!
//! Ollama itself passes over fields that it does not know, and does not check that calls and
//! results belong together: such a conversation misleads its model in silence. This server refuses
//! the latter, so that it is seen.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{ModelRequest, Tool, ToolCall, ToolChoice};

use crate::{
    cache::Prompt,
    conversation::{Asked, Conversation, Form, Outcome, Unpaired, base64, media, menu, tool},
    reading::{Fault, Node, Object},
    server::Settings,
};

pub(crate) fn read(body: &Value, settings: &Settings) -> Result<Asked, Fault> {
    let top = Node::root(body).open_object()?;
    let model = top.text("model")?.to_owned();
    let tools: Vec<Tool> = top.list("tools")?.iter().map(function).collect::<Result<_, _>>()?;
    let (system, conversation) = messages(&top, settings)?;
    Ok(Asked {
        model,
        prompt: Prompt::uncached(),
        most_tokens: most_tokens(&top)?,
        form: Form {
            stream: top.flag("stream")?.unwrap_or(true),
            usage: true,
            thoughts: thinks(&top)?,
        },
        request: ModelRequest {
            system: system.into(),
            messages: conversation.into_messages(),
            menu: menu(top.get("tools").as_ref(), tools)?,
            // There is no such choice.
            tool_choice: ToolChoice::Auto,
        },
    })
}

fn thinks(top: &Object<'_>) -> Result<bool, Fault> {
    let Some(think) = top.get("think") else { return Ok(false) };
    match think.value {
        Value::Bool(on) => Ok(*on),
        Value::String(level) if ["low", "medium", "high", "max"].contains(&level.as_str()) => {
            Ok(true)
        }
        _ => Err(think.wrong("must be a boolean or one of high, medium, low, max")),
    }
}

/// A limit below 0 is none.
fn most_tokens(top: &Object<'_>) -> Result<Option<u64>, Fault> {
    let Some(options) = top.get("options") else { return Ok(None) };
    let Some(limit) = options.open_object()?.get("num_predict") else { return Ok(None) };
    match limit.value.as_i64() {
        Some(limit) => Ok(u64::try_from(limit).ok()),
        None => Err(limit.not_a("int")),
    }
}

fn function(declared: &Node<'_>) -> Result<Tool, Fault> {
    let function = declared.open_object()?.need("function")?;
    let fields = function.open_object()?;
    let description = fields.get("description").map(|node| node.text()).transpose()?;
    let schema = match fields.get("parameters") {
        Some(parameters) => {
            parameters.open_object()?;
            parameters.value.clone()
        }
        None => json!({ "type": "object" }),
    };
    tool(declared, fields.text("name")?, description, schema)
}

fn messages(top: &Object<'_>, settings: &Settings) -> Result<(String, Conversation), Fault> {
    let (mut system, mut conversation) = (Vec::new(), Conversation::default());
    let all = top.need("messages")?;
    for message in all.list()? {
        let fields = message.open_object()?;
        let role = fields.need("role")?;
        let content = fields.get("content").map_or(Ok(""), |content| content.text())?;
        if role.value != "tool" {
            settle(&mut conversation, &message)?;
        }
        match role.text()? {
            "system" => system.push(content),
            "user" => conversation.user(content),
            "assistant" => {
                let mut calls = Vec::new();
                for node in fields.list("tool_calls")? {
                    let made_up = conversation.made_up_id(calls.len());
                    calls.push(call(&node, made_up)?);
                }
                conversation
                    .assistant(content, calls)
                    .map_err(|id| message.wrong(format!("two tool calls have the id {id}")))?;
            }
            "tool" => result(&message, content, &mut conversation, settings)?,
            other => return Err(role.wrong(format!("invalid role `{other}`"))),
        }
    }
    settle(&mut conversation, &all)?;
    Ok((system.join("\n\n"), conversation))
}

fn settle(conversation: &mut Conversation, at: &Node<'_>) -> Result<(), Fault> {
    conversation.settle().map_err(|ids| at.wrong(format!("no results of {}", ids.join(", "))))
}

fn call(node: &Node<'_>, made_up: String) -> Result<ToolCall, Fault> {
    let fields = node.open_object()?;
    let function = fields.need("function")?.open_object()?;
    let id = fields.get("id").map(|id| id.text()).transpose()?.map_or(made_up, str::to_owned);
    let name: Arc<str> = function.text("name")?.into();
    let arguments = function.need("arguments")?;
    arguments.open_object()?;
    Ok(ToolCall::new(id, name, arguments.value.clone()))
}

fn result(
    message: &Node<'_>,
    content: &str,
    conversation: &mut Conversation,
    settings: &Settings,
) -> Result<(), Fault> {
    let fields = message.open_object()?;
    let mut outcome = Outcome::marked(content, &settings.failure_mark);
    for image in fields.list("images")? {
        outcome.blocks.push(media("image/*", base64(&image)?));
    }
    let name = fields.get("tool_name").map(|name| name.text()).transpose()?;
    let paired = match fields.get("tool_call_id") {
        Some(id) => conversation.result(id.text()?, outcome),
        None => conversation.next_result(name, outcome),
    };
    paired.map_err(|why| match why {
        Unpaired::NoCall => message.wrong("a result without a call"),
        Unpaired::Twice => message.wrong("a second result of one call"),
        Unpaired::OutOfOrder(expected) => message
            .wrong(format!("results must be in the order of their calls; `{expected}` is next")),
    })
}
