//! Patterns of other dialects. JSON Schema recommends those of ECMA-262, which have look-around and back
//! references; others come from Python or .NET.
//!
//! There is one rule. A schema of this side is matched in linear time, or else by the bounded engine (see
//! [`BACKTRACKS`]). In a schema of another side that validates again, such as an MCP server, a pattern that is not
//! linear is left to that side: [`leave_foreign_patterns`] removes it, and says so in the description.

use std::borrow::Cow;

use jsonschema::{PatternOptions, ValidationOptions};
use serde_json::{Map, Value, json};

use super::{patterns::Size, plan::MOST_STATES};

/// The largest compiled pattern, and the maximum memory of one during matching, in bytes.
const LARGEST_PATTERN: usize = 2 * 1024 * 1024;
const LARGEST_PATTERN_CACHE: usize = 256 * 1024;

/// How often the bounded engine goes back in one text. A text that takes more is not valid.
const BACKTRACKS: usize = 4_096;

/// Patterns of this estimated size are certain to compile, if they can be parsed.
const SMALL: u64 = 1_000;

/// The options with the linear engine. A schema may come from a server: its remote references are not fetched.
pub(super) fn linear() -> ValidationOptions<'static> {
    jsonschema::options().offline().with_pattern_options(
        PatternOptions::regex().size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN_CACHE),
    )
}

/// The options with the bounded engine.
pub(super) fn bounded() -> ValidationOptions<'static> {
    jsonschema::options().offline().with_pattern_options(
        PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS)
            .size_limit(LARGEST_PATTERN)
            .dfa_size_limit(LARGEST_PATTERN_CACHE),
    )
}

/// A back reference to a named group as one to its number, which the translation to the engine's dialect knows.
fn numbered(pattern: &str) -> String {
    let mut read = pattern.to_owned();
    while let Some((before, rest)) = read.split_once("\\k<") {
        let Some((name, after)) = rest.split_once('>') else { break };
        let Some(start) = pattern.find(&format!("(?<{name}>")) else { break };
        let outside = pattern.get(..start).unwrap_or_default().replace("\\(", "");
        let of_names = outside.matches("(?<").count()
            - outside.matches("(?<=").count()
            - outside.matches("(?<!").count();
        let number = outside.matches('(').count() - outside.matches("(?").count() + of_names + 1;
        read = format!("{before}\\{number}{after}");
    }
    read
}

/// The schema with `\d` and `\w` of ASCII, as in ECMA-262: the bounded engine reads those of Unicode.
pub(super) fn with_ascii_classes(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| match (key.as_str(), value) {
                ("pattern", Value::String(pattern)) => (key.clone(), ascii_classes(pattern).into()),
                ("patternProperties", Value::Object(all)) => {
                    let renamed = |(pattern, schema): (&String, &Value)| {
                        (ascii_classes(pattern).into_owned(), with_ascii_classes(schema))
                    };
                    (key.clone(), all.iter().map(renamed).collect::<Map<_, _>>().into())
                }
                _ => (key.clone(), with_ascii_classes(value)),
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(with_ascii_classes).collect(),
        other => other.clone(),
    }
}

fn ascii_classes(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains('\\') {
        return pattern.into();
    }
    let pattern = numbered(pattern);
    let (mut read, mut in_class) = (String::with_capacity(pattern.len()), false);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '[' => in_class = true,
            ']' => in_class = false,
            '\\' => {
                let Some(escaped) = chars.next() else { break };
                match (escaped, in_class) {
                    ('d', true) => read.push_str("0-9"),
                    ('d', false) => read.push_str("[0-9]"),
                    ('D', _) => read.push_str("[^0-9]"),
                    ('w', true) => read.push_str("A-Za-z0-9_"),
                    ('w', false) => read.push_str("[A-Za-z0-9_]"),
                    ('W', _) => read.push_str("[^A-Za-z0-9_]"),
                    _ => read.extend(['\\', escaped]),
                }
                continue;
            }
            _ => {}
        }
        read.push(c);
    }
    read.into()
}

/// Removes the patterns that the linear engine cannot read, and whatever would refuse more values without them,
/// such as a `not` around one. A description says what the other side checks. Returns the removed patterns.
pub fn leave_foreign_patterns(schema: &mut Value) -> Vec<String> {
    let mut reader =
        ForeignPatterns { dialect: schema.get("$schema").cloned(), states: 0, left: Vec::new() };
    if reader.has_any(schema) {
        reader.states = 0;
        reader.leave(schema);
    }
    reader.left
}

struct ForeignPatterns {
    dialect: Option<Value>,
    /// The states of the patterns that were read.
    states: u64,
    left: Vec<String>,
}

impl ForeignPatterns {
    /// Whether some pattern in a value cannot be read; recursive, as deep as the value.
    fn has_any(&mut self, value: &Value) -> bool {
        match value {
            Value::Object(map) => map.iter().any(|(key, value)| match (key.as_str(), value) {
                ("pattern", Value::String(pattern)) => !self.reads(pattern),
                ("patternProperties", Value::Object(all)) => {
                    all.iter().any(|(pattern, schema)| !self.reads(pattern) || self.has_any(schema))
                }
                _ => self.has_any(value),
            }),
            Value::Array(items) => items.iter().any(|item| self.has_any(item)),
            _ => false,
        }
    }

    fn reads(&mut self, pattern: &str) -> bool {
        let size = Size::of(pattern);
        self.states = self.states.saturating_add(size.states);
        if self.states > MOST_STATES {
            return false;
        }
        let is_certain = !size.backtracks && size.states <= SMALL;
        is_certain || {
            let mut alone = json!({ "pattern": pattern });
            if let (Some(dialect), Some(alone)) = (&self.dialect, alone.as_object_mut()) {
                alone.insert("$schema".to_owned(), dialect.clone());
            }
            linear().build(&alone).is_ok()
        }
    }

    /// Whether the schema became weaker. One that refers to others may have.
    fn leave(&mut self, schema: &mut Value) -> bool {
        let Value::Object(map) = schema else { return false };
        let mut is_weaker = map.contains_key("$ref") || map.contains_key("$dynamicRef");
        let mut notes = Vec::new();
        if let Some(Value::String(pattern)) = map.get("pattern")
            && !self.reads(pattern)
        {
            notes.push(format!("Must match the pattern {pattern}, which the server checks."));
            self.left.push(pattern.clone());
            map.shift_remove("pattern");
        }
        if let Some(Value::Object(all)) = map.get_mut("patternProperties") {
            let before = all.len();
            all.retain(|pattern, _| {
                let is_read = self.reads(pattern);
                if !is_read {
                    notes.push(format!("The server checks the members that match {pattern}."));
                    self.left.push(pattern.clone());
                }
                is_read
            });
            if all.len() < before {
                // The members would count as additional ones.
                map.shift_remove("additionalProperties");
                map.shift_remove("unevaluatedProperties");
            }
        }
        is_weaker |= !notes.is_empty();
        self.leave_in_parts(map, &mut is_weaker);
        if !notes.is_empty() {
            let said = map.get("description").and_then(Value::as_str).unwrap_or_default();
            let text = [said].into_iter().chain(notes.iter().map(String::as_str));
            let text: Vec<_> = text.filter(|text| !text.is_empty()).collect();
            map.insert("description".to_owned(), text.join(" ").into());
        }
        is_weaker
    }

    fn leave_all<'v>(&mut self, all: impl Iterator<Item = &'v mut Value>) -> bool {
        let mut is_weaker = false;
        for one in all {
            is_weaker |= self.leave(one);
        }
        is_weaker
    }

    fn leave_in_parts(&mut self, map: &mut Map<String, Value>, is_weaker: &mut bool) {
        let mut weaker: Vec<String> = Vec::new();
        for (key, value) in map.iter_mut() {
            let is = match (key.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(all)) => {
                    self.leave_all(all.iter_mut())
                }
                (
                    "properties" | "patternProperties" | "$defs" | "definitions"
                    | "dependentSchemas" | "dependencies",
                    Value::Object(all),
                ) => self.leave_all(all.values_mut()),
                (
                    "items"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains"
                    | "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames"
                    | "not"
                    | "if"
                    | "then"
                    | "else",
                    one,
                ) => self.leave(one),
                _ => false,
            };
            if is {
                weaker.push(key.clone());
            }
        }
        for key in &weaker {
            match key.as_str() {
                "not" => drop(map.shift_remove("not")),
                "if" => ["if", "then", "else"].iter().for_each(|key| drop(map.shift_remove(*key))),
                "contains" => drop(map.shift_remove("maxContains")),
                "oneOf" => {
                    // More than one alternative may match now.
                    if let Some(all) = map.shift_remove("oneOf") {
                        let any = json!({ "anyOf": all });
                        if let Value::Array(more) = map.entry("allOf").or_insert_with(|| json!([]))
                        {
                            more.push(any);
                        }
                    }
                }
                _ => {}
            }
        }
        *is_weaker |= !weaker.is_empty();
    }
}
