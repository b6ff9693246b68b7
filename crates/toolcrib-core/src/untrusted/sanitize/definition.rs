//! Cleaning of tool definitions: texts from external sources are sanitized as in results, and known
//! secrets are redacted in all of them.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value, json};

use super::{harmless, padding::without_padding, without_invisible};
use crate::{
    json::subschemas::{Subschemas, subschemas},
    secrets::secret::Redact,
    tool::{Redaction, Tool},
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

/// The name of a tool whose own name cannot be shown.
const NAMELESS: &str = "redacted";

/// One way to clean a definition.
struct Cleaning<'a> {
    /// Cleans a text.
    clean: &'a dyn Fn(&str) -> String,
    /// Cleans a text that is for readers alone.
    clean_text: &'a dyn Fn(&str) -> String,
    /// The flaw of a text that calls depend on and that cleaning would change.
    flaw: &'static str,
}

impl Tool {
    /// Redacts known secrets in everything that a model, a client or an operator reads of the
    /// definition: descriptions, titles and examples, in its schemas too, and metadata. Its source
    /// may have another name for it. It may not be offered if calls depend on the part with the
    /// secret: its name, the name of a property, a value of `enum`, `const` or `default`.
    pub(crate) fn redaction(&self, redact: &dyn Redact, remote_name: Option<&str>) -> Redaction {
        let clean = |text: &str| redacted(redact, text);
        let cleaning = Cleaning {
            clean: &clean,
            clean_text: &clean,
            flaw: "contains a known secret, and calls depend on it, so it cannot be redacted",
        };
        match self.without_secrets(&cleaning, remote_name) {
            Ok(tool) if tool.same(self) => Redaction::Clean,
            Ok(tool) => Redaction::Redacted(tool),
            Err((place, reason)) => Redaction::Withheld(self.named_only(place, &cleaning), reason),
        }
    }

    fn without_secrets(
        &self,
        cleaning: &Cleaning<'_>,
        remote_name: Option<&str>,
    ) -> Result<Self, (Place, Arc<str>)> {
        let name = "its name contains a known secret";
        for known in [Some(self.name().as_str()), remote_name].into_iter().flatten() {
            cleaning.known("", known).map_err(|_| (Place::Name, name.into()))?;
        }
        for (key, value) in self.meta() {
            // A text by itself is a name, such as that on its server.
            let kept = cleaning.known("", key).is_ok()
                && value.as_str().is_none_or(|text| cleaning.known("", text).is_ok());
            if !kept {
                return Err((Place::Name, name.into()));
            }
        }
        let schema = |path: &str, schema: &Value| cleaning.schema(path, schema);
        let in_schema = |reason: String| (Place::Schema, reason.into());
        let input = schema("input_schema", self.input_schema()).map_err(in_schema)?;
        let output = self.output_schema().map(|output| schema("output_schema", output));
        let output = output.transpose().map_err(in_schema)?;
        let title = self.title().map(|title| (cleaning.clean)(title));
        let description = (cleaning.clean)(self.description());
        let meta = self.meta().iter().map(|(key, value)| (key.clone(), cleaning.texts(value)));
        let meta: Map<_, _> = meta.collect();
        let is_same = description == self.description()
            && input == *self.input_schema()
            && output.as_ref() == self.output_schema()
            && title.as_deref() == self.title()
            && meta == *self.meta();
        if is_same {
            return Ok(self.clone());
        }
        self.described_as(&description, &input, output.as_ref(), title.as_deref())
            .map(|tool| tool.with_meta(meta))
            .map_err(|invalid| (Place::Schema, (cleaning.clean)(&invalid.to_string()).into()))
    }

    /// The tool to name in place of one that is withheld.
    fn named_only(&self, flaw: Place, cleaning: &Cleaning<'_>) -> Self {
        let name = match flaw {
            Place::Schema => self.name().as_str(),
            Place::Name => NAMELESS,
        };
        let description = (cleaning.clean)(self.description());
        let shown = self
            .shown_as(name, &description, &json!({}))
            .or_else(|_| self.shown_as(NAMELESS, "A tool.", &json!({})));
        // Other texts of the definition may contain the secret too.
        shown.map_or_else(|_| self.clone(), |tool| tool.without_more_texts())
    }

    /// The same tool with [`harmless`](super::harmless()) descriptions, titles and examples, in its
    /// schemas too, without long runs of blanks. For definitions from external sources.
    ///
    /// # Errors
    /// The reason why the tool may not be offered: a text that calls depend on, such as the name of
    /// a property or a value of `enum`, is not harmless, and cannot be changed without breaking
    /// calls.
    pub fn sanitized(&self) -> Result<Self, String> {
        let description = clean_text(self.description());
        let input = HARMLESS.schema("input_schema", self.input_schema())?;
        let output = self.output_schema();
        let output = output.map(|schema| HARMLESS.schema("output_schema", schema)).transpose()?;
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

/// The part of a definition with a flaw.
#[derive(Clone, Copy)]
enum Place {
    Name,
    Schema,
}

/// Redacts a text, also where invisible characters split a secret.
fn redacted(redact: &dyn Redact, text: &str) -> String {
    let clean = redact.redact(text);
    let visible = without_invisible(&clean).text;
    match visible {
        Cow::Borrowed(_) => clean,
        Cow::Owned(visible) => {
            let redacted = redact.redact(&visible);
            if redacted == visible { clean } else { redacted }
        }
    }
}

const HARMLESS: Cleaning<'static> = Cleaning {
    clean: &as_result,
    clean_text: &|text| clean_text(text).into_owned(),
    flaw: "has hidden characters or tokens of chat templates, which calls depend on, so they \
           cannot be taken out",
};

fn clean_text(text: &str) -> Cow<'_, str> {
    without_padding(harmless(text))
}

fn as_result(text: &str) -> String {
    harmless(text).into_owned()
}

impl Cleaning<'_> {
    fn schema(&self, path: &str, schema: &Value) -> Result<Value, String> {
        match schema {
            Value::Object(keywords) => {
                let mut clean = Map::with_capacity(keywords.len());
                for (keyword, value) in keywords {
                    let path = format!("{path}/{keyword}");
                    let value = match keyword.as_str() {
                        word if TEXTS.contains(&word) => self.texts(value),
                        // OpenAPI's keyword for the schema of a parameter.
                        "schema" => self.schema(&path, value)?,
                        word => match subschemas(word) {
                            Some(Subschemas::Named) => self.named(&path, value)?,
                            Some(_) => self.schema(&path, value)?,
                            None => self.as_it_is(&path, value)?,
                        },
                    };
                    clean.insert(self.known(&path, keyword)?, value);
                }
                Ok(Value::Object(clean))
            }
            Value::Array(schemas) => {
                let clean = schemas.iter().enumerate();
                clean.map(|(at, schema)| self.schema(&format!("{path}/{at}"), schema)).collect()
            }
            other => self.as_it_is(path, other),
        }
    }

    fn named(&self, path: &str, schemas: &Value) -> Result<Value, String> {
        let Value::Object(schemas) = schemas else { return self.as_it_is(path, schemas) };
        let mut clean = Map::with_capacity(schemas.len());
        for (name, schema) in schemas {
            let path = format!("{path}/{name}");
            clean.insert(self.known(&path, name)?, self.schema(&path, schema)?);
        }
        Ok(Value::Object(clean))
    }

    /// Descriptive data.
    fn texts(&self, data: &Value) -> Value {
        match data {
            Value::String(text) => Value::String((self.clean_text)(text)),
            Value::Array(items) => items.iter().map(|item| self.texts(item)).collect(),
            Value::Object(entries) => {
                let clean =
                    |(key, value): (&String, &Value)| ((self.clean)(key), self.texts(value));
                Value::Object(entries.iter().map(clean).collect())
            }
            Value::Number(number) => {
                let text = number.to_string();
                let clean = (self.clean)(&text);
                if clean == text { data.clone() } else { Value::String(clean) }
            }
            other => other.clone(),
        }
    }

    /// Data that calls depend on.
    fn as_it_is(&self, path: &str, data: &Value) -> Result<Value, String> {
        match data {
            Value::String(text) => self.known(path, text).map(Value::String),
            Value::Number(number) => self.known(path, &number.to_string()).map(|_| data.clone()),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, item)| self.as_it_is(&format!("{path}/{at}"), item)).collect()
            }
            Value::Object(entries) => {
                for (key, value) in entries {
                    let path = format!("{path}/{key}");
                    self.known(&path, key)?;
                    self.as_it_is(&path, value)?;
                }
                Ok(data.clone())
            }
            other => Ok(other.clone()),
        }
    }

    /// Accepts a text that calls depend on if cleaning leaves it as it is. A carriage return is
    /// accepted: it is escaped in JSON, and tools treat it as a line break.
    fn known(&self, path: &str, text: &str) -> Result<String, String> {
        let lines = text.replace('\r', "\n");
        if (self.clean)(&lines) == lines {
            return Ok(text.to_owned());
        }
        const LONGEST: usize = 200;
        let path: String = harmless(&(self.clean)(path)).chars().take(LONGEST).collect();
        Err(format!("its `{path}` {}", self.flaw))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::HARMLESS;

    #[test]
    fn descriptions_within_dependencies_are_cleaned() {
        let schema = |text| json!({ "dependencies": { "a": ["b"], "c": { "title": text } } });
        let cleaned = HARMLESS.schema("", &schema("<|im_start|>"));
        assert_eq!(cleaned, Ok(schema("‹|im_start|›")));
    }
}
