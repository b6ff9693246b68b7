//! Catalogues as others write them.

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    text::{count, quoted},
    tool::LintTool,
};

/// How a catalogue is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `name`, `description` and `inputSchema`: the tools of an MCP server.
    Mcp,
    /// `name`, `description` and `input_schema`: what Anthropic's API takes, and what Toolcrib
    /// prints.
    InputSchema,
    /// `name`, `description` and `parameters`: what OpenAI's Responses API takes.
    Functions,
    /// The same inside of `{"type": "function", "function": …}`: what OpenAI's Chat Completions take.
    ChatFunctions,
    /// Names and descriptions alone, or no tools at all.
    Plain,
    /// More than one of these.
    Mixed,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mcp => "MCP tools",
            Self::InputSchema => "tools with `input_schema`, as Anthropic's API takes them",
            Self::Functions => "functions, as OpenAI's Responses API takes them",
            Self::ChatFunctions => "functions, as OpenAI's Chat Completions take them",
            Self::Plain => "tools without schemas",
            Self::Mixed => "tools in several formats",
        })
    }
}

/// What was read of a catalogue.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The tools, in order.
    pub tools: Vec<LintTool>,
    /// How they are written.
    pub format: Format,
    /// How many entries were left out: tools that a vendor brings itself, of which nothing is
    /// described.
    pub skipped: usize,
    /// Whether this is one page of an MCP server's list, and there are more.
    pub has_more: bool,
}

/// A value that is no catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{problem}; expected is a list of tools, or an object with such a list as `tools`, `offered` or \
     `result.tools`: each tool with a `name`, a `description` and its schema as `inputSchema` (MCP), \
     `input_schema` (Anthropic), `parameters` (OpenAI), or as {{\"type\": \"function\", \"function\": …}}"
)]
pub struct FormatError {
    problem: String,
}

/// Reads a catalogue, whichever of the known formats it has: a list, a result of `tools/list` alone
/// or in its JSON-RPC response, the body of a request to a model.
///
/// # Errors
/// [`FormatError`] says what is there and what was expected.
pub fn parse(catalogue: &Value) -> Result<Parsed, FormatError> {
    let (entries, has_more) = entries(catalogue)?;
    let mut parsed = Parsed { tools: Vec::new(), format: Format::Plain, skipped: 0, has_more };
    let mut formats = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let place = format!("entry {}", at + 1);
        let Value::Object(entry) = entry else {
            return Err(FormatError { problem: format!("{place} is {}", kind(entry)) });
        };
        match tool(entry)
            .map_err(|problem| FormatError { problem: format!("{place} {problem}") })?
        {
            Some((tool, format)) => {
                parsed.tools.push(tool);
                formats.extend(format);
            }
            None => parsed.skipped += 1,
        }
    }
    if let Some(first) = formats.first() {
        let same = formats.iter().all(|format| format == first);
        parsed.format = if same { *first } else { Format::Mixed };
    }
    Ok(parsed)
}

fn entries(catalogue: &Value) -> Result<(&[Value], bool), FormatError> {
    let problem = |problem: String| Err(FormatError { problem });
    let object = match catalogue {
        Value::Array(entries) => return Ok((entries, false)),
        Value::Object(object) => object,
        other => return problem(format!("this is {}", kind(other))),
    };
    if let Some(Value::Object(error)) = object.get("error") {
        let said = error.get("message").and_then(Value::as_str).unwrap_or_default();
        return problem(format!("this is the answer of a server that failed: {}", quoted(said)));
    }
    let holder = match object.get("result") {
        Some(Value::Object(result)) => result,
        _ => object,
    };
    match holder.get("tools").or_else(|| holder.get("offered")) {
        Some(Value::Array(entries)) => {
            let more = holder.get("nextCursor").is_some_and(|cursor| !cursor.is_null());
            Ok((entries, more))
        }
        Some(other) => problem(format!("its list of tools is {}", kind(other))),
        None => {
            let keys: Vec<String> = holder.keys().map(|key| quoted(key)).collect();
            match keys.as_slice() {
                [] => problem("this is an empty object".to_owned()),
                keys => problem(format!(
                    "this is an object with {}, {}",
                    count(keys.len(), "key"),
                    crate::text::some_of(keys)
                )),
            }
        }
    }
}

/// The tool that an entry describes, and in which format; `None` for one that a vendor brings.
fn tool(entry: &Map<String, Value>) -> Result<Option<(LintTool, Option<Format>)>, String> {
    let (entry, chat) = match entry.get("function") {
        Some(Value::Object(function)) => (function, true),
        Some(other) => return Err(format!("has a `function` that is {}", kind(other))),
        None => (entry, false),
    };
    const SCHEMAS: [(&str, Format); 3] = [
        ("inputSchema", Format::Mcp),
        ("input_schema", Format::InputSchema),
        ("parameters", Format::Functions),
    ];
    let schema = SCHEMAS.iter().find_map(|(key, format)| Some((entry.get(*key)?, *format)));
    let kind_of_tool = entry.get("type").and_then(Value::as_str);
    let is_described = matches!(kind_of_tool, None | Some("function" | "custom"));
    if !chat && schema.is_none() && !is_described {
        return Ok(None);
    }
    let text = |key: &str| match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("has a `{key}` that is {}", kind(other))),
    };
    let Some(name) = text("name")? else { return Err("has no `name`".to_owned()) };
    let format = if chat { Some(Format::ChatFunctions) } else { schema.map(|(_, format)| format) };
    let of_annotations = || entry.get("annotations")?.get("title")?.as_str().map(str::to_owned);
    let tool = LintTool {
        name,
        description: text("description")?.unwrap_or_default(),
        input_schema: schema.map(|(schema, _)| schema.clone()),
        title: text("title")?.or_else(of_annotations),
        output_schema: entry.get("outputSchema").filter(|schema| !schema.is_null()).cloned(),
        origin: text("origin")?,
        source: None,
        framework: false,
    };
    Ok(Some((tool, format)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
