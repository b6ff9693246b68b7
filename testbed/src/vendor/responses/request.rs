//! What Responses take as a request.

use serde_json::Value;
use toolcrib_core::{ContentBlock, ModelRequest, Tool, ToolCall, ToolChoice};

use super::{PAIRED, SEAL};
use crate::{
    cache::Prompt,
    conversation::{Asked, Conversation, Form, Outcome, Unpaired, base64, media, menu, tool},
    reading::{Fault, Node, Object},
    server::Settings,
    vendor::openai::{check_schema, function_name, not_empty, only},
};

/// All that may stand at the top. What is not read below changes nothing here.
const FIELDS: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// The longest id and the longest cache key.
const LONGEST_ID: usize = 64;
/// The least that an answer may be limited to.
const LEAST_TOKENS: u64 = 16;

pub(crate) fn read(body: &Value, settings: &Settings) -> Result<Asked, Fault> {
    let root = Node::root(body);
    let top = root.object(FIELDS)?;
    let model = top.text("model")?.to_owned();
    let tools = top.get("tools").map_or_else(
        || Ok(Vec::new()),
        |tools| tools.list()?.iter().map(function).collect::<Result<Vec<_>, _>>(),
    )?;
    let tool_choice = tool_choice(&top, &tools)?;
    let instructions = top.get("instructions").map(|node| node.text()).transpose()?;
    if let Some(key) = top.get("prompt_cache_key") {
        short(&key)?;
    }
    for wanted in top.list("include")? {
        only(&wanted, "reasoning.encrypted_content")?;
    }
    // Nothing is stored here, so there is nothing to refer to.
    for key in ["conversation", "previous_response_id"] {
        if let Some(node) = top.get(key) {
            return Err(node.wrong("nothing of that name was stored"));
        }
    }
    let (system, conversation) = Input::read(&top, settings)?;
    let blocks = ["tools", "input"].iter().filter_map(|key| top.get(key)?.value.as_array());
    let blocks = blocks.flatten().map(Value::to_string);
    let prompt: Vec<_> = blocks.chain(instructions.map(str::to_owned)).collect();
    let system: Vec<_> = instructions.into_iter().map(str::to_owned).chain(system).collect();
    Ok(Asked {
        model,
        prompt: Prompt::cached_by_itself(prompt),
        most_tokens: most_tokens(&top)?,
        form: Form {
            stream: top.flag("stream")?.unwrap_or(false),
            usage: true,
            thoughts: wants_summary(&top)?,
        },
        request: ModelRequest {
            system: system.join("\n\n").into(),
            messages: conversation.into_messages(),
            menu: menu(top.get("tools").as_ref(), tools)?,
            tool_choice,
        },
    })
}

fn wants_summary(top: &Object<'_>) -> Result<bool, Fault> {
    let Some(reasoning) = top.get("reasoning") else { return Ok(false) };
    let fields = reasoning.object(&["context", "effort", "mode", "summary"])?;
    if let Some(effort) = fields.get("effort") {
        let known = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        if !known.contains(&effort.text()?) {
            return Err(
                effort.wrong_as("invalid_value", format!("expected one of {}", known.join(", ")))
            );
        }
    }
    Ok(fields.get("summary").is_some())
}

fn most_tokens(top: &Object<'_>) -> Result<Option<u64>, Fault> {
    let Some(node) = top.get("max_output_tokens") else { return Ok(None) };
    match node.count()? {
        most if most >= LEAST_TOKENS => Ok(Some(most)),
        few => {
            let sentence = format!("expected {LEAST_TOKENS} or more, got {few}");
            Err(node.wrong_as("integer_below_min_value", sentence))
        }
    }
}

fn function(declared: &Node<'_>) -> Result<Tool, Fault> {
    let fields = declared.object(&["description", "name", "parameters", "strict", "type"])?;
    only(&fields.need("type")?, "function")?;
    let name = function_name(&fields.need("name")?)?;
    let description = fields.get("description").map(|node| node.text()).transpose()?;
    let parameters = fields.need("parameters")?;
    // Unless it says otherwise, it is strict.
    check_schema(&parameters, name, fields.flag("strict")?.unwrap_or(true))?;
    tool(declared, name, description, parameters.value.clone())
}

fn tool_choice(top: &Object<'_>, tools: &[Tool]) -> Result<ToolChoice, Fault> {
    let Some(choice) = top.get("tool_choice") else { return Ok(ToolChoice::Auto) };
    match choice.value.as_str() {
        Some("auto") => return Ok(ToolChoice::Auto),
        Some("none") => return Ok(ToolChoice::None),
        Some("required") if !tools.is_empty() => return Ok(ToolChoice::Required),
        Some("required") => return Err(choice.wrong("there are no 'tools'")),
        Some(other) => return Err(choice.wrong_as("invalid_value", format!("got '{other}'"))),
        None => {}
    }
    let fields = choice.object(&["name", "type"])?;
    only(&fields.need("type")?, "function")?;
    let name = fields.text("name")?;
    match tools.iter().find(|tool| **tool.name() == *name) {
        Some(tool) => Ok(ToolChoice::Tool(tool.name().clone())),
        None => Err(choice.wrong("the named function is not in the 'tools' parameter")),
    }
}

/// The input so far.
struct Input<'s> {
    settings: &'s Settings,
    system: Vec<String>,
    conversation: Conversation,
    /// What the model said since somebody else did.
    said: Option<(String, Vec<ToolCall>)>,
    /// The digits of what was thought, if nothing has followed it yet.
    thought: Option<String>,
}

impl<'s> Input<'s> {
    fn read(
        top: &Object<'_>,
        settings: &'s Settings,
    ) -> Result<(Vec<String>, Conversation), Fault> {
        let mut reading = Self {
            settings,
            system: Vec::new(),
            conversation: Conversation::default(),
            said: None,
            thought: None,
        };
        let all = top.need("input")?;
        match all.value.as_str() {
            Some(text) => reading.conversation.user(text),
            None => not_empty(&all)?.iter().try_for_each(|item| reading.item(item))?,
        }
        reading.end_said(&all)?;
        reading.settle(&all)?;
        Ok((reading.system, reading.conversation))
    }

    fn item(&mut self, item: &Node<'_>) -> Result<(), Fault> {
        let fields = item.open_object()?;
        let kind = fields.get("type").map(|node| node.text()).transpose()?.unwrap_or("message");
        match kind {
            "message" => self.message(item),
            "reasoning" => self.reasoning(item),
            "function_call" => self.call(item),
            "function_call_output" => self.result(item),
            other => {
                Err(item.wrong_as("invalid_value", format!("this server takes no item '{other}'")))
            }
        }
    }

    fn message(&mut self, item: &Node<'_>) -> Result<(), Fault> {
        let fields = item.object(&["content", "id", "phase", "role", "status", "type"])?;
        let (role, content) = (fields.need("role")?, fields.need("content")?);
        if role.text()? == "assistant" {
            self.follows(&fields, item)?;
            let text = texts(&content, &["output_text", "refusal"])?;
            self.said.get_or_insert_default().0.push_str(&text);
            return Ok(());
        }
        self.end_said(item)?;
        self.settle(item)?;
        let text = texts(&content, &["input_text", "input_image", "input_file"])?;
        match role.text()? {
            "user" => self.conversation.user(&text),
            "system" | "developer" => self.system.push(text),
            other => return Err(role.wrong_as("invalid_value", format!("got '{other}'"))),
        }
        Ok(())
    }

    /// What was thought can only be read if it is sealed, since nothing is stored.
    fn reasoning(&mut self, item: &Node<'_>) -> Result<(), Fault> {
        self.settled_thought(item)?;
        let known = ["content", "encrypted_content", "id", "summary", "type"];
        let fields = item.object(&known)?;
        let id = fields.text("id")?;
        fields.need("summary")?.list()?;
        let Some(sealed) = fields.get("encrypted_content") else {
            return Err(item.wrong(format!(
                "item with id '{id}' not found: items are not persisted when 'store' is false"
            )));
        };
        let digits =
            sealed.text()?.strip_prefix(SEAL).filter(|digits| id == format!("rs_{digits}"));
        let Some(digits) = digits else {
            let sentence = "the encrypted content could not be verified";
            return Err(sealed.wrong_as("invalid_encrypted_content", sentence));
        };
        self.thought = Some(digits.to_owned());
        Ok(())
    }

    /// What was thought is followed by the item that was made behind it, and neither comes without
    /// the other.
    fn follows(&mut self, fields: &Object<'_>, item: &Node<'_>) -> Result<(), Fault> {
        let id = fields.get("id").map(|id| short(&id)).transpose()?.unwrap_or_default();
        let digits = id.split_once('_').and_then(|(_, rest)| rest.strip_prefix(PAIRED));
        if digits.is_some() && digits == self.thought.as_deref() {
            self.thought = None;
            return Ok(());
        }
        self.settled_thought(item)?;
        match digits {
            Some(digits) => Err(item.wrong(format!(
                "item '{id}' was provided without its required 'reasoning' item: 'rs_{digits}'"
            ))),
            None => Ok(()),
        }
    }

    fn settled_thought(&self, at: &Node<'_>) -> Result<(), Fault> {
        match &self.thought {
            Some(digits) => Err(at.wrong(format!(
                "item 'rs_{digits}' of type 'reasoning' was provided without its required following \
                 item"
            ))),
            None => Ok(()),
        }
    }

    fn call(&mut self, item: &Node<'_>) -> Result<(), Fault> {
        let fields = item.object(&["arguments", "call_id", "id", "name", "status", "type"])?;
        self.follows(&fields, item)?;
        let name = function_name(&fields.need("name")?)?;
        let call =
            ToolCall::unparsed(short(&fields.need("call_id")?)?, name, fields.text("arguments")?);
        self.said.get_or_insert_default().1.push(call);
        Ok(())
    }

    fn result(&mut self, item: &Node<'_>) -> Result<(), Fault> {
        self.end_said(item)?;
        let fields = item.object(&["call_id", "id", "output", "status", "type"])?;
        let id = short(&fields.need("call_id")?)?;
        let output = fields.need("output")?;
        let text = texts(&output, &["input_text", "input_image", "input_file"])?;
        let mut outcome = Outcome::marked(&text, &self.settings.failure_mark);
        outcome.blocks = blocks(&output)?;
        self.conversation.result(id, outcome).map_err(|why| {
            item.wrong(match why {
                Unpaired::Twice => format!("duplicate function call output with call_id {id}"),
                _ => format!("no tool call found for function call output with call_id {id}"),
            })
        })
    }

    /// What the model said becomes one message, before somebody else speaks.
    fn end_said(&mut self, at: &Node<'_>) -> Result<(), Fault> {
        self.settled_thought(at)?;
        let Some((text, calls)) = self.said.take() else { return Ok(()) };
        self.settle(at)?;
        self.conversation
            .assistant(&text, calls)
            .map_err(|id| at.wrong(format!("duplicate function call with call_id {id}")))
    }

    fn settle(&mut self, at: &Node<'_>) -> Result<(), Fault> {
        self.conversation.settle().map_err(|unanswered| {
            let ids = unanswered.join(", ");
            at.wrong(format!("no tool output found for function call {ids}"))
        })
    }
}

fn short<'a>(node: &Node<'a>) -> Result<&'a str, Fault> {
    let text = node.text()?;
    if text.is_empty() || text.len() > LONGEST_ID {
        let sentence = format!("expected a string of 1 to {LONGEST_ID} characters");
        return Err(node.wrong_as("string_above_max_length", sentence));
    }
    Ok(text)
}

/// A text, or the texts of parts of these types.
fn texts(content: &Node<'_>, types: &[&'static str]) -> Result<String, Fault> {
    if let Some(text) = content.value.as_str() {
        return Ok(text.to_owned());
    }
    let mut all = Vec::new();
    for part in content.list()? {
        let kind = part.open_object()?.need("type")?;
        if !types.contains(&kind.text()?) {
            let sentence = format!("expected one of {}", types.join(", "));
            return Err(kind.wrong_as("invalid_value", sentence));
        }
        match kind.text()? {
            "input_text" | "output_text" => {
                let known = ["annotations", "logprobs", "prompt_cache_breakpoint", "text", "type"];
                all.push(part.object(&known)?.text("text")?);
            }
            "refusal" => all.push(part.object(&["refusal", "type"])?.text("refusal")?),
            _ => {}
        }
    }
    Ok(all.join("\n"))
}

/// What is not text in a result.
fn blocks(output: &Node<'_>) -> Result<Vec<ContentBlock>, Fault> {
    if output.value.is_string() {
        return Ok(Vec::new());
    }
    let block = |part: &Node<'_>| {
        let fields = part.object(&[
            "detail",
            "file_data",
            "filename",
            "image_url",
            "prompt_cache_breakpoint",
            "text",
            "type",
        ])?;
        let url = match fields.text("type")? {
            "input_image" => fields.need("image_url")?,
            "input_file" => fields.need("file_data")?,
            _ => return Ok(None),
        };
        let found = url.text()?.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let Some((media_type, data)) = found else {
            return Err(url.wrong_as("invalid_image_url", "expected a base64-encoded data URL"));
        };
        let data = Value::from(data);
        let data = base64(&Node { value: &data, place: url.place.clone() })?;
        Ok(Some(media(media_type, data)))
    };
    output.list()?.iter().filter_map(|part| block(part).transpose()).collect()
}
