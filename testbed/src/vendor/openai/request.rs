//! What OpenAI takes as a request.

use serde_json::Value;
use toolcrib_core::{ModelRequest, Tool, ToolCall, ToolChoice, ToolName};

use super::schema;
use crate::{
    cache::Prompt,
    conversation::{Asked, Conversation, Form, Outcome, Unpaired, menu, tool},
    reading::{Fault, Node, Object},
    server::Settings,
};

/// All that may stand at the top. What is not read below changes nothing here.
const FIELDS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

const ASSISTANT_FIELDS: [&str; 6] = ["audio", "content", "name", "refusal", "role", "tool_calls"];

/// The longest name of a function.
const LONGEST_NAME: usize = 64;

pub(crate) fn read(body: &Value, settings: &Settings) -> Result<Asked, Fault> {
    let root = Node::root(body);
    let top = root.object(FIELDS)?;
    let model = top.text("model")?.to_owned();
    let stream = top.flag("stream")?.unwrap_or(false);
    let tools = tools(&top)?;
    let tool_choice = tool_choice(&top, &tools)?;
    let (system, conversation) = messages(&top, settings)?;
    let prompt = ["tools", "messages"].iter().filter_map(|key| top.get(key));
    let prompt = prompt.filter_map(|node| node.value.as_array()).flatten().map(Value::to_string);
    Ok(Asked {
        model,
        prompt: Prompt::cached_by_itself(prompt),
        most_tokens: most_tokens(&top)?,
        form: Form { stream, usage: wants_usage(&top, stream)?, thoughts: true },
        request: ModelRequest {
            system: system.into(),
            messages: conversation.into_messages(),
            menu: menu(top.get("tools").as_ref(), tools)?,
            tool_choice,
        },
    })
}

fn wants_usage(top: &Object<'_>, stream: bool) -> Result<bool, Fault> {
    let Some(options) = top.get("stream_options") else { return Ok(false) };
    if !stream {
        return Err(options.wrong("only allowed when 'stream' is true"));
    }
    let fields = options.object(&["include_obfuscation", "include_usage"])?;
    Ok(fields.flag("include_usage")?.unwrap_or(false))
}

fn most_tokens(top: &Object<'_>) -> Result<Option<u64>, Fault> {
    let (old, new) = (top.get("max_tokens"), top.get("max_completion_tokens"));
    if let (Some(old), Some(_)) = (&old, &new) {
        return Err(old.wrong("'max_completion_tokens' is set as well; use one of them"));
    }
    let Some(node) = new.or(old) else { return Ok(None) };
    match node.count()? {
        0 => Err(node.wrong_as("integer_below_min_value", "expected 1 or more, got 0")),
        most => Ok(Some(most)),
    }
}

fn tools(top: &Object<'_>) -> Result<Vec<Tool>, Fault> {
    let Some(declared) = top.get("tools") else { return Ok(Vec::new()) };
    let declared = not_empty(&declared)?;
    declared.iter().map(function).collect()
}

pub(crate) fn not_empty<'a>(node: &Node<'a>) -> Result<Vec<Node<'a>>, Fault> {
    let items = node.list()?;
    if items.is_empty() {
        return Err(node.wrong_as("empty_array", "expected an array of one item or more"));
    }
    Ok(items)
}

fn function(declared: &Node<'_>) -> Result<Tool, Fault> {
    let fields = declared.object(&["function", "type"])?;
    only(&fields.need("type")?, "function")?;
    let function = fields.need("function")?;
    let fields = function.object(&["description", "name", "parameters", "strict"])?;
    let name = function_name(&fields.need("name")?)?;
    let description = fields.get("description").map(|node| node.text()).transpose()?;
    let parameters = fields.get("parameters");
    if let Some(parameters) = &parameters {
        schema::check(parameters, name, fields.flag("strict")?.unwrap_or(false))?;
    }
    let parameters = parameters.map(|node| node.value.clone());
    let nothing = || serde_json::json!({ "type": "object", "properties": {} });
    tool(declared, name, description, parameters.unwrap_or_else(nothing))
}

pub(crate) fn function_name<'a>(node: &Node<'a>) -> Result<&'a str, Fault> {
    let name = node.text()?;
    if name.chars().count() > LONGEST_NAME {
        let sentence = format!("string too long, expected at most {LONGEST_NAME} characters");
        return Err(node.wrong_as("string_above_max_length", sentence));
    }
    ToolName::new(name).map_err(|_| {
        let sentence = "string does not match the pattern '^[a-zA-Z0-9_-]+$'";
        node.wrong_as("invalid_value", sentence)
    })?;
    Ok(name)
}

pub(crate) fn only(node: &Node<'_>, wanted: &str) -> Result<(), Fault> {
    match node.text()? {
        text if text == wanted => Ok(()),
        other => {
            Err(node
                .wrong_as("invalid_value", format!("got '{other}', this server takes '{wanted}'")))
        }
    }
}

fn tool_choice(top: &Object<'_>, tools: &[Tool]) -> Result<ToolChoice, Fault> {
    for key in ["tool_choice", "parallel_tool_calls"] {
        if let Some(node) = top.get(key).filter(|_| tools.is_empty()) {
            return Err(node.wrong("only allowed when 'tools' are specified"));
        }
    }
    let Some(choice) = top.get("tool_choice") else { return Ok(ToolChoice::Auto) };
    match choice.value.as_str() {
        Some("auto") => return Ok(ToolChoice::Auto),
        Some("none") => return Ok(ToolChoice::None),
        Some("required") => return Ok(ToolChoice::Required),
        Some(other) => return Err(choice.wrong_as("invalid_value", format!("got '{other}'"))),
        None => {}
    }
    let fields = choice.object(&["function", "type"])?;
    only(&fields.need("type")?, "function")?;
    let name = fields.need("function")?.object(&["name"])?.need("name")?;
    let tool = tools.iter().find(|tool| *tool.name() == *name.value.as_str().unwrap_or_default());
    match tool {
        Some(tool) => Ok(ToolChoice::Tool(tool.name().clone())),
        None => Err(choice.wrong("the named function is not in the 'tools' parameter")),
    }
}

fn messages(top: &Object<'_>, settings: &Settings) -> Result<(String, Conversation), Fault> {
    let (mut system, mut conversation) = (Vec::new(), Conversation::default());
    let all = top.need("messages")?;
    for message in not_empty(&all)? {
        let role = message.open_object()?.need("role")?;
        let speaks = role.text()?;
        if speaks != "tool" {
            settle(&mut conversation, &message)?;
        }
        match speaks {
            "system" | "developer" => {
                let fields = message.object(&["content", "name", "role"])?;
                system.push(texts(&fields.need("content")?)?);
            }
            "user" => {
                let fields = message.object(&["content", "name", "role"])?;
                conversation.user(&parts(&fields.need("content")?)?);
            }
            "assistant" => assistant(&message, &mut conversation, settings)?,
            "tool" => result(&message, &mut conversation, settings)?,
            other => return Err(role.wrong_as("invalid_value", format!("got '{other}'"))),
        }
    }
    settle(&mut conversation, &all)?;
    Ok((system.join("\n\n"), conversation))
}

fn settle(conversation: &mut Conversation, at: &Node<'_>) -> Result<(), Fault> {
    conversation.settle().map_err(|unanswered| {
        at.wrong(format!(
            "an assistant message with 'tool_calls' must be followed by a tool message for each \
             'tool_call_id'; there is none for {}",
            unanswered.join(", ")
        ))
    })
}

fn assistant(
    message: &Node<'_>,
    conversation: &mut Conversation,
    settings: &Settings,
) -> Result<(), Fault> {
    let mut known = ASSISTANT_FIELDS.to_vec();
    if settings.thoughts {
        known.push("reasoning_content");
    }
    let fields = message.object(&known)?;
    let calls = match fields.get("tool_calls") {
        Some(calls) => not_empty(&calls)?.iter().map(call).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    let text = match (fields.get("content"), fields.get("refusal")) {
        (Some(content), _) => texts(&content)?,
        (None, Some(refusal)) => refusal.text()?.to_owned(),
        (None, None) if calls.is_empty() => {
            return Err(message.wrong("'content' is null and there are no 'tool_calls'"));
        }
        (None, None) => String::new(),
    };
    conversation
        .assistant(&text, calls)
        .map_err(|id| message.wrong(format!("duplicate value '{id}' for the id of a tool call")))
}

fn call(node: &Node<'_>) -> Result<ToolCall, Fault> {
    let fields = node.object(&["function", "id", "type"])?;
    only(&fields.need("type")?, "function")?;
    let function = fields.need("function")?.object(&["arguments", "name"])?;
    let name = function_name(&function.need("name")?)?;
    Ok(ToolCall::unparsed(fields.text("id")?, name, function.text("arguments")?))
}

fn result(
    message: &Node<'_>,
    conversation: &mut Conversation,
    settings: &Settings,
) -> Result<(), Fault> {
    let fields = message.object(&["content", "role", "tool_call_id"])?;
    let id = fields.text("tool_call_id")?;
    let text = texts(&fields.need("content")?)?;
    let outcome = Outcome::marked(&text, &settings.failure_mark);
    conversation.result(id, outcome).map_err(|why| {
        message.wrong(match why {
            Unpaired::Twice => format!("duplicate value for 'tool_call_id' of '{id}'"),
            _ => format!(
                "a message with role 'tool' must respond to a preceding message with \
                 'tool_calls'; there is no call '{id}'"
            ),
        })
    })
}

/// Content that can only be text.
fn texts(content: &Node<'_>) -> Result<String, Fault> {
    read_parts(content, &["text", "refusal"])
}

/// Content of a user: what is not text leaves its type's name.
fn parts(content: &Node<'_>) -> Result<String, Fault> {
    read_parts(content, &["text", "image_url", "input_audio", "file"])
}

fn read_parts(content: &Node<'_>, types: &[&'static str]) -> Result<String, Fault> {
    if let Some(text) = content.value.as_str() {
        return Ok(text.to_owned());
    }
    let mut all = Vec::new();
    for part in not_empty(content)? {
        let kind = part.open_object()?.need("type")?;
        let Some(key) = types.iter().find(|known| **known == kind.text().unwrap_or_default())
        else {
            let sentence = format!("expected one of {}", types.join(", "));
            return Err(kind.wrong_as("invalid_value", sentence));
        };
        let fields = part.object(&["prompt_cache_breakpoint", "type", key])?;
        all.push(match *key {
            "text" | "refusal" => fields.text(key)?.to_owned(),
            _ => fields.need(key)?.open_object().map(|_| format!("[{key}]"))?,
        });
    }
    Ok(all.join("\n"))
}
