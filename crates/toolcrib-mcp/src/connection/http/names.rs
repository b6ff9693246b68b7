//! What of a call stands in headers too, for those on the way who route by it (SEP-2243): the name
//! of the tool, and the arguments that the tool's schema marks for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use toolcrib_scope::http::{HeaderName, HeaderValue};

use super::super::RemoteTool;

/// How a property of a schema names the header that its value goes into.
const ANNOTATION: &str = "x-mcp-header";
/// What such a header begins with.
const PARAMETER: &str = "mcp-param-";

/// The marked arguments of a server's tools.
#[derive(Default)]
pub(super) struct Annotated(Mutex<HashMap<String, Arc<[Parameter]>>>);

/// Where an argument stands, by the names of properties, and its header.
struct Parameter {
    path: Vec<String>,
    header: HeaderName,
}

impl Annotated {
    /// Takes note of the schemas of tools. The protocol library has left out those that are wrong.
    pub(super) fn learn(&self, tools: &[RemoteTool]) {
        let mut annotated = self.annotated();
        for tool in tools {
            let mut found = Vec::new();
            collect(&tool.input_schema, &mut Vec::new(), &mut found);
            if found.is_empty() {
                annotated.remove(&tool.name);
            } else {
                annotated.insert(tool.name.clone(), found.into());
            }
        }
    }

    /// The headers of one call.
    pub(super) fn headers(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let Some(parameters) = self.annotated().get(tool).cloned() else { return Vec::new() };
        let header = |parameter: &Parameter| {
            let (first, others) = parameter.path.split_first()?;
            let argument = others
                .iter()
                .try_fold(arguments.get(first)?, |value, name| value.get(name.as_str()))?;
            let text = match argument {
                Value::String(text) => encoded(text),
                Value::Bool(_) | Value::Number(_) => argument.to_string(),
                _ => return None,
            };
            Some((parameter.header.clone(), HeaderValue::from_str(&text).ok()?))
        };
        parameters.iter().filter_map(header).collect()
    }

    fn annotated(&self) -> MutexGuard<'_, HashMap<String, Arc<[Parameter]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Parameter>) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, schema) in properties {
        path.push(name.clone());
        let header = schema.get(ANNOTATION).and_then(Value::as_str).filter(|name| !name.is_empty());
        if let Some(header) = header.and_then(|name| format!("{PARAMETER}{name}").parse().ok()) {
            found.push(Parameter { path: path.clone(), header });
        }
        collect(schema, path, found);
        path.pop();
    }
}

/// A text as the value of a header: as it is, or as Base64 where a header could not hold it or it
/// looks like that.
pub(super) fn encoded(text: &str) -> String {
    const MARK: (&str, &str) = ("=?base64?", "?=");
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = text.as_bytes();
    let is_ascii = bytes.iter().all(|byte| (0x20..=0x7e).contains(byte));
    let is_marked = text.starts_with(MARK.0) && text.ends_with(MARK.1);
    if is_ascii && !is_blank(bytes.first()) && !is_blank(bytes.last()) && !is_marked {
        text.to_owned()
    } else {
        format!("{}{}{}", MARK.0, STANDARD.encode(text), MARK.1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::connection::Hints;

    #[test]
    fn marked_arguments_go_into_headers() {
        let annotated = Annotated::default();
        let tool = |input_schema| RemoteTool {
            name: "query".into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            hints: Hints::default(),
        };
        annotated.learn(&[tool(json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {
                "limit": {"type": "integer", "x-mcp-header": "Limit"},
            }},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
            "plain": {"type": "string"},
        }}))]);
        let arguments = json!({"region": "Zürich", "deep": {"limit": 5}, "plain": "x"});
        let arguments = arguments.as_object().unwrap();
        let mut headers: Vec<_> = annotated
            .headers("query", arguments)
            .into_iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        assert_eq!(headers, ["mcp-param-limit: 5", "mcp-param-region: =?base64?WsO8cmljaA==?="]);
        assert!(annotated.headers("other", arguments).is_empty());
        annotated.learn(&[tool(json!({"type": "object"}))]);
        assert!(annotated.headers("query", arguments).is_empty());
    }

    #[test]
    fn only_what_a_header_cannot_hold_is_encoded() {
        for plain in ["", "echo", "a b", "=?base64?x", "x?="] {
            assert_eq!(encoded(plain), plain);
        }
        for odd in [" a", "a\t", "é", "a\nb", "=?base64?x?="] {
            assert!(encoded(odd).starts_with("=?base64?"), "{odd:?}");
        }
    }
}
