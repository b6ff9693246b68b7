//! What Anthropic takes as a request.

use serde_json::{Value, json};
use toolcrib_core::{ModelRequest, Tool, ToolChoice, ToolName};

use super::{
    Version,
    blocks::{self, Text},
};
use crate::{
    cache::{Block, Prompt},
    conversation::{Asked, Form, menu, tool},
    reading::{Fault, Node, Object},
    server::Settings,
};

/// All that may stand at the top. What is not read below changes nothing here.
const FIELDS: &[&str] = &[
    "cache_control",
    "container",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// Of these, what the second version has no more.
const SAMPLING: [&str; 3] = ["temperature", "top_k", "top_p"];

const TOOL_FIELDS: &[&str] = &[
    "allowed_callers",
    "cache_control",
    "defer_loading",
    "description",
    "eager_input_streaming",
    "input_examples",
    "input_schema",
    "name",
    "strict",
    "type",
];

/// How many blocks before a breakpoint are looked at.
const LOOKBACK: usize = 20;

const MOST_BREAKPOINTS: usize = 4;

const LONGEST_KEY: usize = 64;

const LEAST_BUDGET: u64 = 1024;

pub(crate) fn read(body: &Value, settings: &Settings, version: Version) -> Result<Asked, Fault> {
    let root = Node::root(body);
    let top = root.object(FIELDS)?;
    if version == Version::Second {
        let sampling = SAMPLING.iter().find_map(|key| top.get(key));
        if let Some(node) = sampling {
            return Err(node.unknown());
        }
    }
    let model = top.text("model")?.to_owned();
    let most_tokens = top.need("max_tokens")?.count()?;
    let thinking = thinking(&top, most_tokens)?;
    let tools = tools(&top)?;
    let tool_choice = tool_choice(&top, &tools)?;
    if let (Thinking::Always, ToolChoice::Required | ToolChoice::Tool(_)) =
        (&thinking, &tool_choice)
    {
        return Err(root.wrong("Thinking may not be enabled when tool_choice forces tool use."));
    }
    let system = system(&top)?;
    let conversation = blocks::conversation(
        &top.need("messages")?,
        tools.is_empty(),
        settings.thoughts.then_some(&thinking),
    )?;
    Ok(Asked {
        model,
        prompt: prompt(&root, &top)?,
        most_tokens: Some(most_tokens),
        form: Form {
            stream: top.flag("stream")?.unwrap_or(false),
            usage: true,
            thoughts: !matches!(thinking, Thinking::Never),
        },
        request: ModelRequest {
            system: system.into(),
            messages: conversation.into_messages(),
            menu: menu(top.get("tools").as_ref(), tools)?,
            tool_choice,
        },
    })
}

/// Whether the model is to think aloud.
#[derive(Debug, PartialEq)]
pub(super) enum Thinking {
    Never,
    AsItLikes,
    Always,
}

fn thinking(top: &Object<'_>, most_tokens: u64) -> Result<Thinking, Fault> {
    let Some(config) = top.get("thinking") else { return Ok(Thinking::Never) };
    let kind = config.open_object()?.need("type")?;
    match kind.text()? {
        "disabled" => config.object(&["type"]).map(|_| Thinking::Never),
        "adaptive" => config.object(&["display", "type"]).map(|_| Thinking::AsItLikes),
        "between_tools" => config.object(&["type"]).map(|_| Thinking::AsItLikes),
        "enabled" => {
            let budget =
                config.object(&["budget_tokens", "display", "type"])?.need("budget_tokens")?;
            let tokens = budget.count()?;
            if tokens < LEAST_BUDGET {
                let sentence = format!("Input should be greater than or equal to {LEAST_BUDGET}");
                return Err(budget.wrong(sentence));
            }
            if tokens >= most_tokens {
                return Err(budget.wrong("`max_tokens` must be greater than it"));
            }
            Ok(Thinking::Always)
        }
        _ => Err(kind.wrong("Input should be one of adaptive, between_tools, disabled, enabled")),
    }
}

fn tools(top: &Object<'_>) -> Result<Vec<Tool>, Fault> {
    top.list("tools")?.iter().map(declared).collect()
}

fn declared(node: &Node<'_>) -> Result<Tool, Fault> {
    let fields = node.object(TOOL_FIELDS)?;
    if let Some(kind) = fields.get("type").filter(|kind| kind.value != "custom") {
        return Err(kind.wrong("this server takes only tools of type `custom`"));
    }
    let name = fields.need("name")?;
    ToolName::new(name.text()?)
        .map_err(|_| name.wrong("String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"))?;
    let schema = fields.need("input_schema")?;
    let keys = schema.open_object()?;
    if keys.need("type")?.value != "object" {
        return Err(keys.need("type")?.wrong("Input should be 'object'"));
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|key| keys.get(key).is_some()) {
        return Err(
            schema.wrong("input_schema does not support oneOf, allOf, or anyOf at the top level")
        );
    }
    check_keys(&schema)?;
    let description = fields.get("description").map(|node| node.text()).transpose()?;
    tool(node, name.text()?, description, schema.value.clone())
}

/// The names of parameters, at every depth.
fn check_keys(schema: &Node<'_>) -> Result<(), Fault> {
    let Ok(fields) = schema.open_object() else { return Ok(()) };
    if let Some(properties) = fields.get("properties") {
        for (name, property) in properties.open_object()?.entries() {
            let is_well = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            if name.is_empty() || name.len() > LONGEST_KEY || !name.chars().all(is_well) {
                return Err(properties.wrong(format!(
                    "Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,{LONGEST_KEY}}}$'"
                )));
            }
            check_keys(&property)?;
        }
    }
    fields.get("items").map_or(Ok(()), |items| check_keys(&items))
}

fn tool_choice(top: &Object<'_>, tools: &[Tool]) -> Result<ToolChoice, Fault> {
    let Some(choice) = top.get("tool_choice") else { return Ok(ToolChoice::Auto) };
    if tools.is_empty() {
        return Err(choice.wrong("may only be specified while providing tools"));
    }
    let kind = choice.open_object()?.need("type")?;
    let parallel = ["disable_parallel_tool_use", "type"];
    match kind.text()? {
        "auto" => choice.object(&parallel).map(|_| ToolChoice::Auto),
        "any" => choice.object(&parallel).map(|_| ToolChoice::Required),
        "none" => choice.object(&["type"]).map(|_| ToolChoice::None),
        "tool" => {
            let fields = choice.object(&["disable_parallel_tool_use", "name", "type"])?;
            let name = fields.text("name")?;
            let tool = tools.iter().find(|tool| *tool.name() == *name);
            let tool = tool.ok_or_else(|| {
                choice.wrong(format!("Tool '{name}' not found in provided tools"))
            })?;
            Ok(ToolChoice::Tool(tool.name().clone()))
        }
        _ => Err(kind.wrong("Input should be one of any, auto, none, tool")),
    }
}

fn system(top: &Object<'_>) -> Result<String, Fault> {
    let Some(system) = top.get("system") else { return Ok(String::new()) };
    if let Some(text) = system.value.as_str() {
        return Ok(text.to_owned());
    }
    let texts = system.list()?;
    let texts = texts.iter().map(|block| match block.open_object()?.text("type")? {
        "text" => Text::read(block),
        _ => Err(block.wrong("Input should be of type `text`")),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// The request in the order in which it is cached: tools, system text, messages. The tool choice
/// counts with the messages.
fn prompt(root: &Node<'_>, top: &Object<'_>) -> Result<Prompt, Fault> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut add = |part: &Node<'_>| blocks::cacheable(part).map(|block| blocks.push(block));
    top.list("tools")?.iter().try_for_each(&mut add)?;
    if let Some(system) = top.get("system") {
        each_block(&system).try_for_each(|block| add(&block))?;
    }
    blocks.push(Block {
        text: top.get("tool_choice").map(|node| node.value.to_string()).unwrap_or_default(),
        breakpoint: false,
    });
    for message in top.list("messages")? {
        let fields = message.open_object()?;
        let role = fields.text("role")?;
        let content = fields.need("content")?;
        for part in each_block(&content) {
            let mut block = blocks::cacheable(&part)?;
            block.text = format!("{role}: {}", block.text);
            blocks.push(block);
        }
    }
    if top.get("cache_control").is_some()
        && let Some(last) = blocks.last_mut()
    {
        last.breakpoint = true;
    }
    let breakpoints = blocks.iter().filter(|block| block.breakpoint).count();
    if breakpoints > MOST_BREAKPOINTS {
        return Err(root.wrong(format!(
            "A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. \
             Found {breakpoints}."
        )));
    }
    Ok(Prompt { blocks, lookback: LOOKBACK })
}

/// The blocks of a content, which a text may stand for.
fn each_block<'a>(content: &Node<'a>) -> impl Iterator<Item = Node<'a>> + use<'a> {
    let blocks = content.list().ok();
    let alone = blocks.is_none().then(|| content.clone());
    blocks.into_iter().flatten().chain(alone)
}

impl Text {
    /// A text as the block that it is short for.
    pub(super) fn block(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }
}
