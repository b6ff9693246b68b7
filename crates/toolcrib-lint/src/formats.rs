//! Catalogs in the formats of vendors and MCP servers.

use std::fmt;

use serde_json::{Map, Value};
use toolcrib_core::__internal::json_kind;

use crate::{
    text::{count, quoted},
    tool::LintTool,
};

/// The format of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `name`, `description` and `inputSchema`: the tools of an MCP server.
    Mcp,
    /// `name`, `description` and `input_schema`: the format of Anthropic's API, and of Toolcrib's
    /// output.
    InputSchema,
    /// `name`, `description` and `parameters`: the format of OpenAI's Responses API.
    Functions,
    /// The same inside of `{"type": "function", "function": …}`: the format of OpenAI's Chat
    /// Completions.
    ChatFunctions,
    /// Only names and descriptions, or no tools at all.
    Plain,
    /// A mixture of several formats.
    Mixed,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mcp => "MCP tools",
            Self::InputSchema => "tools with `input_schema`, in the format of Anthropic's API",
            Self::Functions => "functions, in the format of OpenAI's Responses API",
            Self::ChatFunctions => "functions, in the format of OpenAI's Chat Completions",
            Self::Plain => "tools without schemas",
            Self::Mixed => "tools in several formats",
        })
    }
}

/// A catalog that was parsed from a file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ParsedCatalog {
    /// The tools, in order.
    pub tools: Vec<LintTool>,
    /// Their format.
    pub format: Format,
    /// The number of skipped entries: tools that a vendor provides itself, without a description.
    pub skipped: usize,
    /// Whether this is one page of an MCP server's list, and there are more.
    pub has_more: bool,
}

/// A value that is not a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{problem}; expected a list of tools, or an object with such a list as `tools`, `offered` or \
     `result.tools`: each tool with a `name`, a `description` and its schema as `inputSchema` (MCP), \
     `input_schema` (Anthropic), `parameters` (OpenAI), or as {{\"type\": \"function\", \"function\": …}}"
)]
pub struct FormatError {
    problem: String,
}

/// Parses a catalog in any of the known formats: a list, a result of `tools/list` alone or in its
/// JSON-RPC response, the body of a request to a model.
///
/// # Errors
/// [`FormatError`] with the actual and the expected value.
pub fn parse(catalog: &Value) -> Result<ParsedCatalog, FormatError> {
    let (entries, has_more) = entries(catalog)?;
    let mut parsed =
        ParsedCatalog { tools: Vec::new(), format: Format::Plain, skipped: 0, has_more };
    let mut formats = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let place = format!("entry {}", at + 1);
        let Value::Object(entry) = entry else {
            return Err(FormatError { problem: format!("{place} is {}", json_kind(entry)) });
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

fn entries(catalog: &Value) -> Result<(&[Value], bool), FormatError> {
    let problem = |problem: String| Err(FormatError { problem });
    let object = match catalog {
        Value::Array(entries) => return Ok((entries, false)),
        Value::Object(object) => object,
        other => return problem(format!("this is {}", json_kind(other))),
    };
    if let Some(Value::Object(error)) = object.get("error") {
        let said = error.get("message").and_then(Value::as_str).unwrap_or_default();
        return problem(format!("this is a server's error response: {}", quoted(said)));
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
        Some(other) => problem(format!("its list of tools is {}", json_kind(other))),
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

/// The tool of an entry, and its format; `None` for a tool that a vendor provides.
fn tool(entry: &Map<String, Value>) -> Result<Option<(LintTool, Option<Format>)>, String> {
    let (entry, chat) = match entry.get("function") {
        Some(Value::Object(function)) => (function, true),
        Some(other) => return Err(format!("has a `function` that is {}", json_kind(other))),
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
        Some(other) => Err(format!("has a `{key}` that is {}", json_kind(other))),
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
        ..LintTool::default()
    };
    Ok(Some((tool, format)))
}
