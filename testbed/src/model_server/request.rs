//! Parses a request to Chat Completions into a [`ModelRequest`].

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::{
    Menu, Message, ModelRequest, Tool, ToolCall, ToolChoice, ToolContext, ToolName,
};

/// Prefix of a failed call's result: the protocol has no field for it.
const FAILED: &str = "Error: ";

/// The fields that Toolcrib sends; others are refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    model: String,
    messages: Vec<Turn>,
    #[serde(default)]
    tools: Vec<Declared>,
    tool_choice: Option<Value>,
    #[serde(rename = "stream")]
    _stream: bool,
    #[serde(rename = "stream_options")]
    _stream_options: Value,
    #[serde(rename = "max_completion_tokens")]
    _max_completion_tokens: Option<u64>,
    #[serde(rename = "max_tokens")]
    _max_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", deny_unknown_fields)]
enum Turn {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        content: Option<String>,
        #[serde(default)]
        tool_calls: Vec<Function<Called>>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    #[serde(rename = "type")]
    _type: String,
    function: Definition,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function<T> {
    id: String,
    #[serde(rename = "type")]
    _type: String,
    function: T,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    name: String,
    arguments: String,
}

/// The requested model, and the request. The error describes the problem.
pub(super) fn read(body: &[u8]) -> Result<(String, ModelRequest), String> {
    let asked: Asked = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let tools = asked.tools.into_iter().map(tool).collect::<Result<Vec<_>, _>>()?;
    let menu = Menu::new(tools).map_err(|collision| format!("two tools `{}`", collision.name))?;
    let (system, messages) = conversation(asked.messages)?;
    let request = ModelRequest {
        system: system.into(),
        messages: Arc::new(messages),
        menu: Arc::new(menu),
        tool_choice: tool_choice(asked.tool_choice.as_ref())?,
        sent_parts: None,
    };
    Ok((asked.model, request))
}

/// A declared tool; it is offered to the model and never run.
fn tool(Declared { function, .. }: Declared) -> Result<Tool, String> {
    let schema = function.parameters.unwrap_or_else(|| json!({ "type": "object" }));
    Tool::builder(function.name)
        .description(function.description)
        .input_schema(schema)
        .handler(|_: Value, _: ToolContext| async { "never run" })
        .map_err(|error| error.to_string())
}

fn tool_choice(choice: Option<&Value>) -> Result<ToolChoice, String> {
    let Some(choice) = choice else { return Ok(ToolChoice::Auto) };
    match choice.as_str() {
        Some("auto") => Ok(ToolChoice::Auto),
        Some("none") => Ok(ToolChoice::None),
        Some("required") => Ok(ToolChoice::Required),
        _ => {
            let name = choice.pointer("/function/name").and_then(Value::as_str);
            let name = name.and_then(|name| ToolName::new(name).ok());
            name.map(ToolChoice::Tool).ok_or_else(|| format!("invalid tool choice: {choice}"))
        }
    }
}

/// The system text and the messages. Each call has its result before the next message.
fn conversation(turns: Vec<Turn>) -> Result<(String, Vec<Message>), String> {
    let (mut system, mut messages) = (String::new(), Vec::new());
    let mut open: Vec<(String, String)> = Vec::new();
    for turn in turns {
        if let (false, [(id, _), ..]) = (matches!(turn, Turn::Tool { .. }), open.as_slice()) {
            return Err(format!("no result for call {id}"));
        }
        match turn {
            Turn::System { content } => system.push_str(&content),
            Turn::User { content } => messages.push(Message::user(content)),
            Turn::Assistant { content, tool_calls } => {
                let calls = tool_calls.into_iter().map(|Function { id, function, .. }| {
                    open.push((id.clone(), function.name.clone()));
                    ToolCall::unparsed(id, function.name, &function.arguments)
                });
                let calls: Vec<_> = calls.collect();
                messages.push(Message::assistant(content.unwrap_or_default(), calls));
            }
            Turn::Tool { tool_call_id, content } => {
                let call = open.iter().position(|(id, _)| *id == tool_call_id);
                let call = call.ok_or_else(|| format!("no call for result {tool_call_id}"))?;
                let (id, name) = open.remove(call);
                let failed = content.strip_prefix(FAILED);
                messages.push(Message::Tool {
                    call_id: id.into(),
                    name: name.into(),
                    text: failed.unwrap_or(&content).into(),
                    blocks: Arc::new([]),
                    is_error: failed.is_some(),
                    untrusted: false,
                });
            }
        }
    }
    match open.first() {
        None => Ok((system, messages)),
        Some((id, _)) => Err(format!("no result for call {id}")),
    }
}
