//! What Gemini takes as a request.

use serde_json::{Value, json};
use toolcrib_core::{ModelRequest, Tool, ToolChoice};

use super::{contents, names::in_camel_case, schema};
use crate::{
    cache::Prompt,
    conversation::{Asked, Form, menu, tool},
    reading::{Fault, Node, Object},
    server::Settings,
};

/// All that may stand at the top. What is not read below changes nothing here.
const FIELDS: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "model",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];

const CONFIG_FIELDS: &[&str] = &[
    "audioTranscriptionConfig",
    "candidateCount",
    "enableEnhancedCivicAnswers",
    "frequencyPenalty",
    "imageConfig",
    "logprobs",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "seed",
    "speechConfig",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];

const LONGEST_NAME: usize = 64;

/// Reads a request; model and form of the answer stand in the path.
pub(crate) fn read(
    body: &Value,
    settings: &Settings,
    model: &str,
    stream: bool,
) -> Result<Asked, Fault> {
    let body = in_camel_case(body);
    let root = Node::root(&body);
    let top = root.object(FIELDS)?;
    let tools = tools(&top)?;
    let tool_choice = tool_choice(&top, &tools)?;
    let config = match top.get("generationConfig") {
        Some(config) => Some(config.object(CONFIG_FIELDS)?),
        None => None,
    };
    let system = match top.get("systemInstruction") {
        Some(system) => contents::system(&system)?,
        None => String::new(),
    };
    let conversation = contents::conversation(&top.need("contents")?, settings.thoughts)?;
    let prompt = ["tools", "systemInstruction", "contents"].iter().filter_map(|key| top.get(key));
    let prompt = prompt.flat_map(|node| match node.value {
        Value::Array(items) => items.iter().map(Value::to_string).collect(),
        other => vec![other.to_string()],
    });
    let thinking = config.as_ref().and_then(|config| config.get("thinkingConfig"));
    Ok(Asked {
        model: model.to_owned(),
        prompt: Prompt::cached_by_itself(prompt.collect::<Vec<_>>()),
        most_tokens: config.as_ref().map_or(Ok(None), |config| config.count("maxOutputTokens"))?,
        form: Form {
            stream,
            usage: true,
            thoughts: thinking.map_or(Ok(None), |node| includes_thoughts(&node))? == Some(true),
        },
        request: ModelRequest {
            system: system.into(),
            messages: conversation.into_messages(),
            menu: menu(top.get("tools").as_ref(), tools)?,
            tool_choice,
        },
    })
}

fn includes_thoughts(config: &Node<'_>) -> Result<Option<bool>, Fault> {
    let fields = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
    config.object(&fields)?.flag("includeThoughts")
}

fn tools(top: &Object<'_>) -> Result<Vec<Tool>, Fault> {
    let mut tools = Vec::new();
    for group in top.list("tools")? {
        let functions = group.object(&["functionDeclarations"])?;
        for declared in functions.list("functionDeclarations")? {
            tools.push(function(&declared)?);
        }
    }
    Ok(tools)
}

fn function(declared: &Node<'_>) -> Result<Tool, Fault> {
    let fields = declared.object(&[
        "behavior",
        "description",
        "name",
        "parameters",
        "parametersJsonSchema",
        "response",
        "responseJsonSchema",
    ])?;
    let name = fields.need("name")?;
    let text = name.text()?;
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_well =
        text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'));
    if !begins_well || !is_well || text.len() > LONGEST_NAME {
        return Err(name.wrong(format!(
            "Invalid function name. It must start with a letter or an underscore, be of \
             a-z, A-Z, 0-9, `_`, `.`, `:` and `-`, and have at most {LONGEST_NAME} characters."
        )));
    }
    let schema = match (fields.get("parameters"), fields.get("parametersJsonSchema")) {
        (Some(parameters), Some(_)) => {
            return Err(parameters.wrong("only one of it and parametersJsonSchema may be set"));
        }
        (Some(parameters), None) => schema::check(&parameters)?,
        (None, Some(schema)) => {
            let kind = schema.open_object()?.need("type")?;
            if kind.value != "object" {
                return Err(kind.wrong("the schema must be of an object"));
            }
            schema.value.clone()
        }
        (None, None) => json!({ "type": "object" }),
    };
    let description = fields.get("description").map(|node| node.text()).transpose()?;
    tool(declared, text, description, schema)
}

fn tool_choice(top: &Object<'_>, tools: &[Tool]) -> Result<ToolChoice, Fault> {
    let Some(config) = top.get("toolConfig") else { return Ok(ToolChoice::Auto) };
    let fields = ["functionCallingConfig", "includeServerSideToolInvocations", "retrievalConfig"];
    let Some(calling) = config.object(&fields)?.get("functionCallingConfig") else {
        return Ok(ToolChoice::Auto);
    };
    if tools.is_empty() {
        return Err(calling.wrong("it is set without functionDeclarations"));
    }
    let fields = calling.object(&["allowedFunctionNames", "mode"])?;
    let allowed = fields.list("allowedFunctionNames")?;
    let mut named = Vec::new();
    for name in &allowed {
        let text = name.text()?;
        let tool = tools.iter().find(|tool| *tool.name() == *text);
        let tool = tool.ok_or_else(|| name.wrong(format!("there is no function `{text}`")))?;
        named.push(tool.name().clone());
    }
    let mode = fields.get("mode");
    let mode_text = mode.as_ref().map_or(Ok("AUTO"), Node::text)?.to_ascii_uppercase();
    match (mode_text.as_str(), named.as_slice()) {
        ("ANY", [only]) => Ok(ToolChoice::Tool(only.clone())),
        ("ANY", _) => Ok(ToolChoice::Required),
        ("VALIDATED", _) | ("AUTO" | "MODE_UNSPECIFIED", []) => Ok(ToolChoice::Auto),
        ("NONE", []) => Ok(ToolChoice::None),
        ("AUTO" | "MODE_UNSPECIFIED" | "NONE", _) => {
            Err(calling.wrong("allowedFunctionNames may only be set when mode is ANY"))
        }
        (other, _) => Err(calling.wrong(format!("`{other}` is not a mode"))),
    }
}
