//! Arguments that a schema allows.

use std::ops::RangeInclusive;

use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    string::string_regex,
    test_runner::TestRunner,
};
use serde_json::{Map, Value, json};

/// The levels of properties that are filled in although they are not required.
const LEVELS: usize = 3;

/// How samples of one schema differ, in the order in which they are tried.
pub(crate) const VARIANTS: [Variant; 5] = [
    Variant { choice: 0, levels: LEVELS },
    Variant { choice: 0, levels: 1 },
    Variant { choice: 0, levels: 0 },
    Variant { choice: 1, levels: LEVELS },
    Variant { choice: 1, levels: 1 },
];

/// A kind of sample.
#[derive(Clone, Copy)]
pub(crate) struct Variant {
    /// The alternative that is taken.
    choice: usize,
    levels: usize,
}

/// A schema's own keywords, with those of all that applies to the same value.
#[derive(Default)]
struct Merged<'s> {
    keywords: Map<String, Value>,
    properties: Vec<(&'s str, &'s Value)>,
    required: Vec<&'s str>,
}

impl Variant {
    /// A value of a schema; `root` has its definitions.
    pub(crate) fn sample(self, schema: &Value, root: &Value, level: usize) -> Value {
        let mut merged = Merged::default();
        self.merge(schema, root, &mut merged, 0);
        let Merged { keywords, properties, required } = merged;
        if let Some(constant) = keywords.get("const") {
            return constant.clone();
        }
        if let Some(all) = keywords.get("enum").and_then(Value::as_array) {
            return all[self.choice.min(all.len() - 1)].clone();
        }
        let keywords = Value::Object(keywords);
        let kind = match &keywords["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null"),
            Value::Null => None,
            kind => Some(kind),
        };
        let kind = kind.and_then(Value::as_str);
        let is_object = kind == Some("object") || kind.is_none() && !properties.is_empty();
        if let Some(default) = keywords.get("default").filter(|default| !default.is_null())
            && !is_object
        {
            return default.clone();
        }
        let number = |key: &str| keywords[key].as_f64();
        match kind {
            _ if is_object || kind.is_none() => {
                let is_wanted = |name: &str| level < self.levels || required.contains(&name);
                let wanted = properties.iter().filter(|(name, _)| is_wanted(name));
                let below = level + 1;
                let mut object: Map<_, _> = wanted
                    .filter(|_| below < 12)
                    .map(|(name, of)| ((*name).to_owned(), self.sample(of, root, below)))
                    .collect();
                for name in required {
                    object.entry(name).or_insert_with(|| "example".into());
                }
                object.into()
            }
            Some("array") => {
                let least = keywords["minItems"].as_u64().unwrap_or(0);
                let count = if level > 6 { least } else { least.max(1) };
                let items = (0..count).map(|_| self.sample(&keywords["items"], root, level + 1));
                items.collect::<Vec<_>>().into()
            }
            Some("string") => text(&keywords).into(),
            Some("boolean") => true.into(),
            Some("integer" | "number") => {
                let least = number("minimum");
                let least = least.or(number("exclusiveMinimum").map(|least| least + 1.0));
                let most = number("maximum").or(number("exclusiveMaximum").map(|most| most - 1.0));
                let value = least.unwrap_or_else(|| most.map_or(1.0, |most| most.min(1.0)));
                let value = number("multipleOf").map_or(value, |of| (value / of).ceil() * of);
                if kind == Some("integer") { json!(value as i64) } else { json!(value) }
            }
            _ => Value::Null,
        }
    }

    /// Adds what applies to a value of the schema: itself, its parts and one of its alternatives.
    fn merge<'s>(self, schema: &'s Value, root: &'s Value, into: &mut Merged<'s>, depth: usize) {
        if depth > 12 {
            return;
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let target = root.pointer(reference.trim_start_matches('#')).unwrap();
            self.merge(target, root, into, depth + 1);
        }
        for (key, value) in schema.as_object().into_iter().flatten() {
            match key.as_str() {
                "properties" => {
                    let all = value.as_object().into_iter().flatten();
                    into.properties.extend(all.map(|(name, of)| (name.as_str(), of)));
                }
                "required" => {
                    into.required
                        .extend(value.as_array().unwrap().iter().filter_map(Value::as_str));
                }
                "allOf" => {
                    for part in value.as_array().unwrap() {
                        self.merge(part, root, into, depth + 1);
                    }
                }
                "anyOf" => {
                    let all = value.as_array().unwrap();
                    let chosen = &all[self.choice.min(all.len() - 1)];
                    self.merge(chosen, root, into, depth + 1);
                }
                "$ref" => {}
                _ => drop(into.keywords.insert(key.clone(), value.clone())),
            }
        }
    }
}

fn text(schema: &Value) -> String {
    let mut text = match schema["format"].as_str().unwrap_or_default() {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "time" => "03:04:05Z",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        "email" => "a@example.com",
        "uri" | "url" | "uri-reference" => "https://example.com/a",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "hostname" => "a.example.com",
        "byte" => "YQ==",
        _ => "example",
    }
    .to_owned();
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    let most = schema["maxLength"].as_u64().map_or(usize::MAX, |most| most as usize);
    if let Some(pattern) = schema["pattern"].as_str() {
        return of_pattern(pattern, &text, least..=most).unwrap_or(text);
    }
    while text.len() < least {
        text.push('a');
    }
    text.truncate(most);
    text
}

/// A text of these lengths that matches a pattern: a plain one if it does.
fn of_pattern(pattern: &str, plain: &str, lengths: RangeInclusive<usize>) -> Option<String> {
    let regex = regex_lite::Regex::new(pattern).ok()?;
    let fits = |one: &str| regex.is_match(one) && lengths.contains(&one.len());
    let mut candidates = [plain, "1", "a", "abc", "ABC", "US", "2026-01-02"].into_iter();
    if let Some(one) = candidates.find(|one| fits(one)) {
        return Some(one.to_owned());
    }
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    // The generator's classes are those of Unicode.
    let inner = inner.replace("\\d", "[0-9]").replace("\\w", "[0-9A-Za-z_]");
    let strategy = string_regex(&inner).ok()?;
    let mut runner = TestRunner::deterministic();
    let mut made = (0..500).filter_map(|_| Some(strategy.new_tree(&mut runner).ok()?.current()));
    made.find(|one| fits(one))
}
