//! `Mcp-Param-*`: headers that repeat arguments, as the schema of a tool declares with
//! `x-mcp-header`.

use http::{HeaderMap, HeaderName};
use rmcp::ErrorData;
use serde_json::Value;

use super::headers::{decoded, mismatch, single};

/// The prefix of these headers.
const PREFIX: &str = "mcp-param-";

/// The headers of a request that repeat arguments.
pub(crate) struct ParamHeaders(HeaderMap);

impl ParamHeaders {
    /// The headers of a request that repeat arguments.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let named = headers.iter().filter(|(name, _)| name.as_str().starts_with(PREFIX));
        Self(named.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Compares them with the arguments of a call of a tool with this schema. Headers that the
    /// schema does not declare are ignored.
    ///
    /// # Errors
    /// If a declared header is missing, differs from its argument, or repeats none.
    pub(crate) fn check(&self, schema: &Value, arguments: &Value) -> Result<(), ErrorData> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        for (name, schema) in properties {
            let argument = arguments.get(name).unwrap_or(&Value::Null);
            let header = schema.get("x-mcp-header").and_then(Value::as_str);
            if let Some(Ok(header)) = header.map(|name| format!("{PREFIX}{name}").parse()) {
                self.compare(&header, argument)?;
            }
            self.check(schema, argument)?;
        }
        Ok(())
    }

    fn compare(&self, header: &HeaderName, argument: &Value) -> Result<(), ErrorData> {
        let argument = match argument {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(argument.to_string()),
            // Absent, or of a type that headers do not repeat.
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        match (single(&self.0, header)?, argument) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(mismatch(header, "is missing")),
            (Some(_), None) => Err(mismatch(header, "repeats an argument that is absent")),
            (Some(sent), Some(argument)) if decoded(sent).is_some_and(|sent| sent == argument) => {
                Ok(())
            }
            _ => Err(mismatch(header, "does not match its argument")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn declared_headers_repeat_their_arguments() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "page": { "properties": { "size": { "type": "integer", "x-mcp-header": "Size" } } },
            "note": { "type": "string", "x-mcp-header": "not a name" },
        } });
        let arguments = json!({ "region": "zürich", "page": { "size": 7 }, "note": "x" });
        let check = |sent: &[(&'static str, &'static str)], arguments: &Value| {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(*name, value.parse().unwrap());
            }
            ParamHeaders::of(&headers).check(&schema, arguments).is_ok()
        };
        let region = ("mcp-param-region", "=?base64?esO8cmljaA==?=");
        let size = ("mcp-param-size", "7");
        assert!(check(&[region, size, ("mcp-param-other", "x")], &arguments));
        assert!(check(&[], &json!({ "region": null })));
        for sent in [
            &[region][..],
            &[region, size, size],
            &[region, ("mcp-param-size", "8")],
            &[("mcp-param-region", "=?base64?%?="), size],
        ] {
            assert!(!check(sent, &arguments), "{sent:?}");
        }
        assert!(!check(&[region], &json!({})));
    }
}
