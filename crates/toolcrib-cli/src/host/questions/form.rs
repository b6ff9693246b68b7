//! The form of an elicitation: flat fields with text, numbers, yes or no, and choices.

use std::fmt::Write as _;

use serde_json::Value;

use crate::output::asked_text;

/// The limit of fields, and of choices of one.
const MOST_FIELDS: usize = 20;
const MOST_CHOICES: usize = 100;

pub(crate) struct Form(Vec<Field>);

/// One field.
pub(crate) struct Field {
    name: String,
    title: String,
    description: String,
    kind: Kind,
    is_required: bool,
    default: Option<Value>,
}

enum Kind {
    Text,
    Number,
    Integer,
    YesOrNo,
    One(Vec<Choice>),
    Several(Vec<Choice>),
}

struct Choice {
    value: String,
    title: String,
}

impl Form {
    /// Reads the requested schema, else says what cannot be asked.
    pub(crate) fn read(schema: &Value) -> Result<Self, &'static str> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(Self(Vec::new()));
        };
        if properties.len() > MOST_FIELDS {
            return Err("it has too many fields");
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
        };
        let fields = properties
            .iter()
            .map(|(name, field)| Field::read(name, field, is_required(name)))
            .collect::<Result<_, _>>()?;
        Ok(Self(fields))
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.0
    }
}

impl Field {
    fn read(name: &str, schema: &Value, is_required: bool) -> Result<Self, &'static str> {
        let text = |key: &str| asked_text(schema.get(key).and_then(Value::as_str).unwrap_or(""));
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("number") => Kind::Number,
            Some("integer") => Kind::Integer,
            Some("boolean") => Kind::YesOrNo,
            Some("array") => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                Kind::Several(choices(items)?.ok_or("a list has no choices")?)
            }
            Some("string") => choices(schema)?.map_or(Kind::Text, Kind::One),
            _ => return Err("a field is neither text, a number, yes or no, nor a choice"),
        };
        Ok(Self {
            name: name.to_owned(),
            title: text("title"),
            description: text("description"),
            kind,
            is_required,
            default: schema.get("default").cloned(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn label(&self) -> String {
        if self.title.is_empty() { asked_text(&self.name) } else { self.title.clone() }
    }

    /// The field before the person agrees to answer.
    pub(crate) fn described(&self) -> String {
        let kind = match &self.kind {
            Kind::Text => "text",
            Kind::Number => "number",
            Kind::Integer => "whole number",
            Kind::YesOrNo => "yes or no",
            Kind::One(_) => "one choice",
            Kind::Several(_) => "choices",
        };
        let optional = if self.is_required { "" } else { ", optional" };
        let description = match self.description.as_str() {
            "" => String::new(),
            description => format!(": {description}"),
        };
        format!("{} ({kind}{optional}){description}", self.label())
    }

    /// The prompt for its value, with the choices and the default.
    pub(crate) fn prompt(&self) -> String {
        let mut text = String::new();
        if let Kind::One(choices) | Kind::Several(choices) = &self.kind {
            for (index, choice) in choices.iter().enumerate() {
                let _ = writeln!(text, "    {}  {}", index + 1, choice.title);
            }
        }
        let how = match &self.kind {
            Kind::YesOrNo => " (y/n)",
            Kind::One(_) => " (number)",
            Kind::Several(_) => " (numbers, with commas)",
            Kind::Text | Kind::Number | Kind::Integer => "",
        };
        let default = match &self.default {
            Some(Value::String(default)) => format!(" [{}]", asked_text(default)),
            Some(default) => format!(" [{}]", asked_text(&default.to_string())),
            None => String::new(),
        };
        format!("{text}  {}{how}{default}: ", self.label())
    }

    /// The value of a line; `None` if an optional field is left out. The error is for the person.
    pub(crate) fn parse(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("a value is required; Ctrl-D cancels".to_owned()),
            };
        }
        let value = match &self.kind {
            Kind::Text => Some(Value::from(line)),
            Kind::Number => line.parse::<f64>().ok().filter(|n| n.is_finite()).map(Value::from),
            Kind::Integer => line.parse::<i64>().ok().map(Value::from),
            Kind::YesOrNo => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            Kind::One(choices) => chosen(choices, line),
            Kind::Several(choices) => {
                let all: Option<Vec<_>> =
                    line.split(',').map(|one| chosen(choices, one.trim())).collect();
                all.map(Value::from)
            }
        };
        value.map(Some).ok_or_else(|| {
            let expected = match &self.kind {
                Kind::Number => "a number",
                Kind::Integer => "a whole number",
                Kind::YesOrNo => "y or n",
                Kind::One(_) => "the number of a choice",
                Kind::Several(_) => "numbers of choices, such as 1,2",
                Kind::Text => "text",
            };
            format!("this must be {expected}")
        })
    }
}

/// A choice by its number, or as the server writes it.
fn chosen(choices: &[Choice], line: &str) -> Option<Value> {
    let by_number =
        line.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let choice = by_number.or_else(|| choices.iter().find(|choice| choice.value == line))?;
    Some(choice.value.as_str().into())
}

/// The choices of a schema, with or without titles; `None` if it has none.
fn choices(schema: &Value) -> Result<Option<Vec<Choice>>, &'static str> {
    let choice = |value: &Value, title: Option<&str>| {
        let value = value.as_str()?;
        Some(Choice { title: asked_text(title.unwrap_or(value)), value: value.to_owned() })
    };
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
    let all: Option<Vec<_>> = if let Some(titled) = titled {
        let title =
            |one: &Value| choice(one.get("const")?, one.get("title").and_then(Value::as_str));
        titled.iter().map(title).collect()
    } else if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let title = |index: usize| titles.and_then(|titles| titles.get(index)?.as_str());
        values.iter().enumerate().map(|(index, value)| choice(value, title(index))).collect()
    } else {
        return Ok(None);
    };
    let all = all.ok_or("a choice is not a text")?;
    if all.len() > MOST_CHOICES {
        return Err("a field has too many choices");
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: &Value, is_required: bool) -> Field {
        Field::read("f", schema, is_required).unwrap_or_else(|problem| panic!("{problem}"))
    }

    #[test]
    fn lines_become_values_of_the_kind_of_the_field() {
        let integer = field(&json!({ "type": "integer" }), true);
        assert_eq!(integer.parse("-7"), Ok(Some(json!(-7))));
        assert!(integer.parse("7.5").is_err() && integer.parse("").is_err());
        let number = field(&json!({ "type": "number", "default": 0.5 }), true);
        assert_eq!(number.parse(""), Ok(Some(json!(0.5))));
        assert!(number.parse("inf").is_err() && number.prompt().contains("[0.5]"));
        let yes = field(&json!({ "type": "boolean" }), false);
        assert_eq!((yes.parse("Yes"), yes.parse("")), (Ok(Some(json!(true))), Ok(None)));
        let one = field(
            &json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red\u{1b}[31m" }] }),
            true,
        );
        assert_eq!((one.parse("1"), one.parse("r")), (Ok(Some(json!("r"))), Ok(Some(json!("r")))));
        assert!(one.parse("2").is_err() && one.parse("0").is_err());
        assert!(one.prompt().contains("\\u{1b}[31m"), "{}", one.prompt());
        let several = json!({ "type": "array", "items": { "enum": ["a", "b", "c"] } });
        assert_eq!(field(&several, true).parse("3, a"), Ok(Some(json!(["c", "a"]))));
    }

    #[test]
    fn a_form_that_cannot_be_asked_is_declined_as_a_whole() {
        let with = |field: Value| json!({ "type": "object", "properties": { "f": field } });
        for field in [
            json!({ "type": "object" }),
            json!({}),
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "string", "enum": [1] }),
        ] {
            assert!(Form::read(&with(field.clone())).is_err(), "{field}");
        }
        let many: serde_json::Map<_, _> =
            (0..21).map(|n| (n.to_string(), json!({ "type": "string" }))).collect();
        assert!(Form::read(&json!({ "properties": many })).is_err());
    }
}
