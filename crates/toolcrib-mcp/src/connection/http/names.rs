//! Values of a call that are copied to headers, for intermediaries that route by them (SEP-2243):
//! the name of the tool, and the arguments that the tool's schema marks.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use toolcrib_capabilities::http::{HeaderName, HeaderValue};

use crate::connection::types::RemoteTool;

/// The keyword by which a property of a schema names its header.
const ANNOTATION: &str = "x-mcp-header";
/// The prefix of such headers.
const PARAMETER: &str = "mcp-param-";

/// The arguments of a tool that its schema marks. They belong to the listed tool, so a call has them
/// in any connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MarkedArguments(Arc<[Parameter]>);

/// The path of an argument, as names of properties, and its header.
#[derive(Debug, PartialEq)]
struct Parameter {
    path: Vec<String>,
    header: HeaderName,
}

impl MarkedArguments {
    /// Finds those of a tool, or marks it if its schema declares invalid headers: the protocol
    /// forbids to call it.
    pub(super) fn find(tool: &mut RemoteTool) {
        match Parameters::of(&tool.input_schema) {
            Ok(found) => tool.marked = Self(found.into()),
            Err(flaw) => drop(tool.flaw.get_or_insert(flaw)),
        }
    }

    /// The headers of one call.
    pub(super) fn headers(
        &self,
        arguments: &Map<String, Value>,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.0.iter().filter_map(|parameter| {
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
        })
    }
}

/// Collects the parameters of a schema.
#[derive(Default)]
struct Parameters {
    found: Vec<Parameter>,
    /// The names of the properties from the root to the present schema.
    path: Vec<String>,
}

impl Parameters {
    /// The parameters of a tool, or why they are invalid.
    fn of(schema: &Value) -> Result<Vec<Parameter>, String> {
        let mut parameters = Self::default();
        parameters.collect(schema, true)?;
        Ok(parameters.found)
    }

    /// `is_property`: whether only `properties` lead from the root to this schema.
    fn collect(&mut self, schema: &Value, is_property: bool) -> Result<(), String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(schemas) => {
                return schemas.iter().try_for_each(|schema| self.collect(schema, false));
            }
            _ => return Ok(()),
        };
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                (ANNOTATION, _) if is_property && !self.path.is_empty() => {
                    let kind = members.get("type").and_then(Value::as_str);
                    self.add(value, kind)?;
                }
                (ANNOTATION, _) => {
                    return Err(format!("`{ANNOTATION}` in its schema is not on a property"));
                }
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        self.path.push(name.clone());
                        self.collect(schema, is_property)?;
                        self.path.pop();
                    }
                }
                (
                    "$defs" | "definitions" | "dependentSchemas" | "patternProperties",
                    Value::Object(schemas),
                ) => {
                    schemas.values().try_for_each(|schema| self.collect(schema, false))?;
                }
                // Data, in which the word has no meaning.
                ("const" | "default" | "enum" | "examples", _) => {}
                _ => self.collect(value, false)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, header: &Value, kind: Option<&str>) -> Result<(), String> {
        let property = self.path.join(".");
        let invalid = |problem: &str| Err(format!("`{ANNOTATION}` of `{property}` {problem}"));
        let named = header.as_str().filter(|name| !name.is_empty());
        let header = named.and_then(|name| format!("{PARAMETER}{name}").parse().ok());
        let Some(header) = header else { return invalid("is not the name of a header") };
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return invalid("needs a property of the type string, integer or boolean");
        }
        if self.found.iter().any(|other| other.header == header) {
            return invalid("names a header twice");
        }
        self.found.push(Parameter { path: self.path.clone(), header });
        Ok(())
    }
}

/// A text as the value of a header: unchanged, or as Base64 if it is not a valid header value or
/// looks like Base64.
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

    fn found(input_schema: Value) -> RemoteTool {
        let mut tool = RemoteTool { input_schema, ..RemoteTool::default() };
        MarkedArguments::find(&mut tool);
        tool
    }

    #[test]
    fn marked_arguments_go_into_headers() {
        let tool = found(json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {
                "limit": {"type": "integer", "x-mcp-header": "Limit"},
            }},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
            "plain": {"type": "string"},
        }}));
        let arguments = json!({"region": "Zürich", "deep": {"limit": 5}, "plain": "x"});
        let mut headers: Vec<_> = tool
            .marked
            .headers(arguments.as_object().unwrap())
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        assert_eq!(headers, ["mcp-param-limit: 5", "mcp-param-region: =?base64?WsO8cmljaA==?="]);
    }

    #[test]
    fn a_tool_with_an_invalid_header_is_marked() {
        let property = |property: Value| json!({"type": "object", "properties": {"a": property}});
        let marked = |schema: Value| found(schema).flaw;
        assert_eq!(marked(json!({"type": "object"})), None);
        for annotation in [json!(""), json!("a b"), json!("é"), json!(5)] {
            let flaw = marked(property(json!({"type": "string", "x-mcp-header": annotation})));
            assert_eq!(flaw.as_deref(), Some("`x-mcp-header` of `a` is not the name of a header"));
        }
        for kind in [json!("number"), json!("object"), json!(null)] {
            let flaw = marked(property(json!({"type": kind, "x-mcp-header": "A"}))).unwrap();
            assert!(flaw.contains("type string, integer or boolean"), "{flaw}");
        }
        let twice = json!({"type": "object", "properties": {
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "same"},
        }});
        assert!(marked(twice).unwrap().ends_with("of `b` names a header twice"));
        let string = json!({"type": "string", "x-mcp-header": "A"});
        for elsewhere in [
            string.clone(),
            json!({"$defs": {"a": string}}),
            property(json!({"type": "array", "items": string})),
            json!({"anyOf": [property(string.clone())]}),
        ] {
            assert!(marked(elsewhere).unwrap().ends_with("is not on a property"));
        }
        assert_eq!(marked(property(json!({"default": string}))), None);
        assert_eq!(marked(property(property(string))), None);
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
