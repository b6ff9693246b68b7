//! JSON as editors write it, with comments and trailing commas, and with positions.

use std::{borrow::Cow, cell::RefCell, collections::HashMap, sync::Arc};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{self, ObjectProp},
    common::Ranged,
    errors::ParseErrorKind,
    parse_to_ast,
};
use toolcrib_config::{Diagnostic, Help, Located, Problems, Spot, suggest};

use super::file::FORMATS;

/// A text, and the list of its problems.
pub(super) struct Source<'a> {
    text: &'a str,
    problems: &'a Problems,
    /// The last position, with its byte: most lookups are in the order of the text, and counting
    /// from the start for each takes minutes in a long one.
    last: RefCell<(usize, Spot)>,
}

/// A value in it, and its name in messages.
#[derive(Clone)]
pub(super) struct Value<'a> {
    source: &'a Source<'a>,
    what: String,
    value: &'a ast::Value<'a>,
}

/// An object without duplicate keys.
pub(super) struct Object<'a> {
    source: &'a Source<'a>,
    properties: Vec<&'a ObjectProp<'a>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &str, text: &'a str, problems: &'a Problems) -> Self {
        Self { text, problems, last: RefCell::new((0, Spot::start_of(file))) }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Parses the text. `None` if it is not valid JSON, which is recorded.
    pub(super) fn parse(&self) -> Option<ast::Value<'a>> {
        let strict = ParseOptions {
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
            ..ParseOptions::default()
        };
        match parse_to_ast(self.text, &CollectOptions::default(), &strict) {
            Ok(parsed) => {
                if parsed.value.is_none() {
                    self.refuse(0, "this file is empty", EXAMPLE);
                }
                parsed.value
            }
            Err(error) => {
                let problem = format!("this is not JSON: {}", error.kind());
                let help = match error.kind() {
                    ParseErrorKind::UnterminatedObject => Some("add the `}` for this `{`"),
                    ParseErrorKind::UnterminatedArray => Some("add the `]` for this `[`"),
                    ParseErrorKind::UnexpectedWord
                    | ParseErrorKind::UnexpectedToken
                    | ParseErrorKind::MultipleRootJsonValues => Some(FORMATS),
                    _ => None,
                };
                self.refuse(error.range().start, problem, help.map(str::to_owned));
                None
            }
        }
    }

    pub(super) fn spot(&self, offset: usize) -> Spot {
        let mut last = self.last.borrow_mut();
        if last.0 > offset {
            *last = (0, Spot::start_of(Arc::clone(&last.1.file)));
        }
        if let Some(between) = self.text.get(last.0..offset) {
            *last = (offset, last.1.after(between));
        }
        last.1.clone()
    }

    pub(super) fn refuse(&self, offset: usize, message: impl Into<String>, help: impl Into<Help>) {
        self.problems.push(Diagnostic::error(&self.spot(offset), message).help(help));
    }
}

/// An example of a file.
pub(super) const EXAMPLE: &str =
    r#"write { "mcpServers": { "git": { "command": "uvx", "args": ["mcp-server-git"] } } }"#;

impl<'a> Value<'a> {
    /// The whole of a text.
    pub(super) fn root(source: &'a Source<'a>, value: &'a ast::Value<'a>) -> Self {
        Self { source, what: "this file".to_owned(), value }
    }

    /// The same text, with another list of problems.
    pub(super) fn source<'b>(&self, problems: &'b Problems) -> Source<'b>
    where
        'a: 'b,
    {
        Source { text: self.source.text, problems, last: self.source.last.clone() }
    }

    /// The same value, whose problems go to that source.
    pub(super) fn in_source<'b>(&self, source: &'b Source<'b>) -> Value<'b>
    where
        'a: 'b,
    {
        Value { source, what: self.what.clone(), value: self.value }
    }

    /// Records an error about this value.
    pub(super) fn refuse(&self, message: impl Into<String>, help: impl Into<Help>) {
        self.source.refuse(self.value.start(), message, help);
    }

    /// An error about this value, which is not recorded.
    pub(super) fn error(&self, message: impl Into<String>, help: impl Into<Help>) -> Diagnostic {
        Diagnostic::error(&self.spot(), message).help(help)
    }

    /// Records an error at a byte of this text, as precisely as possible.
    pub(super) fn refuse_at(&self, offset: usize, message: impl Into<String>) {
        let start = self.value.start();
        // A text with escapes is longer in the file than its value.
        let written = self.source.text.get(start + 1..).unwrap_or_default();
        let is_plain = self.text_silently().is_some_and(|text| written.starts_with(text));
        let offset = if is_plain { start + 1 + offset } else { start };
        self.source.refuse(offset, message, None);
    }

    pub(super) fn spot(&self) -> Spot {
        self.source.spot(self.value.start())
    }

    pub(super) fn is_object(&self) -> bool {
        self.value.as_object().is_some()
    }

    fn wrong_type(&self, expected: &str) {
        let found = match self.value {
            ast::Value::StringLit(_) => "a text",
            ast::Value::NumberLit(_) => "a number",
            ast::Value::BooleanLit(_) => "`true` or `false`",
            ast::Value::Object(_) => "an object",
            ast::Value::Array(_) => "a list",
            ast::Value::NullKeyword(_) => "`null`",
        };
        self.refuse(format!("{} must be {expected}; this is {found}", self.what), None);
    }

    /// Its entries, if it is an object; duplicates are not recorded.
    pub(super) fn object_silently(&self) -> Option<Object<'a>> {
        let object = self.value.as_object()?;
        Some(Object { source: self.source, properties: object.properties.iter().collect() })
    }

    pub(super) fn is_null(&self) -> bool {
        self.value.as_null_keyword().is_some()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.as_array().is_some()
    }

    pub(super) fn text_silently(&self) -> Option<&'a str> {
        self.value.as_string_lit().map(|text| &*text.value)
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        let text = self.text_silently();
        if text.is_none() {
            self.wrong_type("a text in quotes");
        }
        text
    }

    /// A text. A number or a boolean counts as the text that it is written as.
    pub(super) fn scalar(&self) -> Option<Cow<'a, str>> {
        match self.value {
            ast::Value::NumberLit(number) => Some(number.value.into()),
            ast::Value::BooleanLit(boolean) => Some(boolean.value.to_string().into()),
            _ => self.text().map(Cow::Borrowed),
        }
    }

    /// A number, or the text of one.
    pub(super) fn number(&self) -> Option<f64> {
        let text = match self.value {
            ast::Value::NumberLit(number) => Some(number.value),
            _ => self.text_silently(),
        };
        text?.trim().parse().ok()
    }

    /// A boolean, or the text of one.
    pub(super) fn boolean(&self) -> Option<bool> {
        let value = self.value.as_boolean_lit().map(|value| value.value);
        let value = value.or_else(|| self.text_silently()?.to_ascii_lowercase().parse().ok());
        if value.is_none() {
            self.wrong_type("`true` or `false`");
        }
        value
    }

    /// Whether it is `false` or the text `never`.
    pub(super) fn is_no(&self) -> bool {
        self.value.as_boolean_lit().is_some_and(|value| !value.value)
            || self.text_silently() == Some("never")
    }

    pub(super) fn items(&self) -> Option<Vec<Self>> {
        let Some(list) = self.value.as_array() else {
            self.wrong_type("a list");
            return None;
        };
        let item = |(position, value)| Self {
            source: self.source,
            what: format!("{}[{position}]", self.what.trim_matches('`')),
            value,
        };
        Some(list.elements.iter().enumerate().map(item).collect())
    }

    /// Its entries; a duplicate key is recorded, and its first value counts.
    pub(super) fn object(&self) -> Option<Object<'a>> {
        let Some(object) = self.value.as_object() else {
            self.wrong_type("an object in `{…}`");
            return None;
        };
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut properties = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let name = property.name.as_str();
            match places.get(name) {
                Some(first) => {
                    let first = self.source.spot(*first);
                    let message =
                        format!("{} occurs twice here; the first is at {first}", quoted(name));
                    self.source.refuse(property.start(), message, "keep one of them");
                }
                None => {
                    places.insert(name, property.start());
                    properties.push(property);
                }
            }
        }
        Some(Object { source: self.source, properties })
    }
}

impl<'a> Object<'a> {
    /// The value of a key. `null` counts as absent.
    pub(super) fn value(&self, key: &str) -> Option<Value<'a>> {
        let property = self.properties.iter().find(|property| property.name.as_str() == key)?;
        let is_null = property.value.as_null_keyword().is_some();
        (!is_null).then(|| self.of(property))
    }

    /// Every entry, in the order of the file.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Located<&'a str>, Value<'a>)> {
        self.properties.iter().map(|property| {
            let at = self.source.spot(property.start());
            (Located { value: property.name.as_str(), at }, self.of(property))
        })
    }

    fn of(&self, property: &'a ObjectProp<'a>) -> Value<'a> {
        Value { source: self.source, what: quoted(property.name.as_str()), value: &property.value }
    }
}

pub(super) fn quoted(name: &str) -> String {
    suggest::quoted([name])
}
