//! Sanitizing of tool definitions from external sources, as for results.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{harmless, padding::without_padding};
use crate::{
    subschemas::{Subschemas, subschemas},
    tool::Tool,
};

/// Schema keywords with descriptive text only; no call depends on them.
const TEXTS: [&str; 8] = [
    "description",
    "title",
    "$comment",
    "examples",
    "example",
    "markdownDescription",
    "enumDescriptions",
    "markdownEnumDescriptions",
];

impl Tool {
    /// The same tool with [`harmless`](super::harmless()) descriptions, titles and examples, in its
    /// schemas too, without long runs of blanks. For definitions from external sources.
    ///
    /// # Errors
    /// The reason why the tool may not be offered: a text that calls depend on, such as the name of
    /// a property or a value of `enum`, is not harmless, and cannot be changed without breaking
    /// calls.
    pub fn sanitized(&self) -> Result<Self, String> {
        let description = clean_text(self.description());
        let input = clean_schema("input_schema", self.input_schema())?;
        let output = self.output_schema();
        let output = output.map(|schema| clean_schema("output_schema", schema)).transpose()?;
        let title = self.title().map(clean_text);
        let is_same = *description == *self.description()
            && input == *self.input_schema()
            && output.as_ref() == self.output_schema()
            && title.as_deref() == self.title();
        if is_same {
            return Ok(self.clone());
        }
        let description = match description.trim() {
            "" => self.name().as_str(),
            description => description,
        };
        self.described_as(description, &input, output.as_ref(), title.as_deref())
            .map_err(|invalid| invalid.to_string())
    }
}

fn clean_schema(path: &str, schema: &Value) -> Result<Value, String> {
    match schema {
        Value::Object(keywords) => {
            let mut clean = Map::with_capacity(keywords.len());
            for (keyword, value) in keywords {
                let path = format!("{path}/{keyword}");
                let value = match keyword.as_str() {
                    word if TEXTS.contains(&word) => clean_texts(value),
                    // OpenAPI's keyword for the schema of a parameter.
                    "schema" => clean_schema(&path, value)?,
                    word => match subschemas(word) {
                        Some(Subschemas::Named) => clean_named(&path, value)?,
                        Some(_) => clean_schema(&path, value)?,
                        None => as_it_is(&path, value)?,
                    },
                };
                clean.insert(known(&path, keyword)?, value);
            }
            Ok(Value::Object(clean))
        }
        Value::Array(schemas) => {
            let clean = schemas.iter().enumerate();
            clean.map(|(at, schema)| clean_schema(&format!("{path}/{at}"), schema)).collect()
        }
        other => as_it_is(path, other),
    }
}

fn clean_named(path: &str, schemas: &Value) -> Result<Value, String> {
    let Value::Object(schemas) = schemas else { return as_it_is(path, schemas) };
    let mut clean = Map::with_capacity(schemas.len());
    for (name, schema) in schemas {
        let path = format!("{path}/{name}");
        clean.insert(known(&path, name)?, clean_schema(&path, schema)?);
    }
    Ok(Value::Object(clean))
}

fn clean_text(text: &str) -> Cow<'_, str> {
    without_padding(harmless(text))
}

/// Descriptive data.
fn clean_texts(data: &Value) -> Value {
    match data {
        Value::String(text) => Value::String(clean_text(text).into_owned()),
        Value::Array(items) => items.iter().map(clean_texts).collect(),
        Value::Object(entries) => {
            let clean =
                |(key, value): (&String, &Value)| (harmless(key).into_owned(), clean_texts(value));
            Value::Object(entries.iter().map(clean).collect())
        }
        other => other.clone(),
    }
}

/// Data that calls depend on.
fn as_it_is(path: &str, data: &Value) -> Result<Value, String> {
    match data {
        Value::String(text) => known(path, text).map(Value::String),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| as_it_is(&format!("{path}/{at}"), item)).collect()
        }
        Value::Object(entries) => {
            for (key, value) in entries {
                let path = format!("{path}/{key}");
                known(&path, key)?;
                as_it_is(&path, value)?;
            }
            Ok(data.clone())
        }
        other => Ok(other.clone()),
    }
}

/// Accepts a text that calls depend on if it is harmless. A carriage return is accepted: it is
/// escaped in JSON, and tools treat it as a line break.
fn known(path: &str, text: &str) -> Result<String, String> {
    if harmless(&text.replace('\r', "\n")) == text.replace('\r', "\n") {
        return Ok(text.to_owned());
    }
    const LONGEST: usize = 200;
    let path: String = harmless(path).chars().take(LONGEST).collect();
    Err(format!(
        "its `{path}` has hidden characters or tokens of chat templates, which calls depend on, so \
         they cannot be taken out"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::clean_schema;

    #[test]
    fn descriptions_within_dependencies_are_cleaned() {
        let schema = |text| json!({ "dependencies": { "a": ["b"], "c": { "title": text } } });
        let cleaned = clean_schema("", &schema("<|im_start|>"));
        assert_eq!(cleaned, Ok(schema("‹|im_start|›")));
    }
}
