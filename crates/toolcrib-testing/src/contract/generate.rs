//! Generates values for common schemas. Unsupported keywords are ignored: callers validate every
//! value against the schema before use.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// A unique text, to be detected in an error.
const CANARY: &str = "canary-51c0ffee";

const DEEPEST: usize = 6;

/// Values for the schema of a tool's arguments, from a seed. Some are generated whole, some are a
/// sample with one part generated, which is valid more often if parts depend on each other.
pub(super) struct Generator<'a> {
    root: &'a Value,
    samples: &'a [Value],
    random: Random,
}

impl<'a> Generator<'a> {
    pub(super) fn new(root: &'a Value, samples: &'a [Value], seed: u64) -> Self {
        Self { root, samples, random: Random::new(seed) }
    }

    pub(super) fn next(&mut self) -> Value {
        let sample = if self.random.coin() { self.random.pick(self.samples) } else { None };
        let made = self.value(self.root, 0);
        let (Some(Value::Object(sample)), Value::Object(made)) = (sample, &made) else {
            return made;
        };
        let fields: Vec<_> = made.iter().collect();
        let mut mixed = sample.clone();
        if let Some((name, value)) = self.random.pick(&fields) {
            mixed.insert((*name).clone(), (*value).clone());
        }
        Value::Object(mixed)
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let Value::Object(map) = schema else {
            return self.anything();
        };
        if let Some(value) = map.get("const") {
            return value.clone();
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            return self.random.pick(values).cloned().unwrap_or_default();
        }
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(Value::String(reference)) = map.get("$ref") {
            let root = self.root;
            return match reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) {
                Some(schema) => self.value(schema, depth + 1),
                None => Value::Null,
            };
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            if let Some(Value::Array(schemas)) = map.get(choice) {
                let schema = self.random.pick(schemas).cloned().unwrap_or_default();
                return self.value(&schema, depth + 1);
            }
        }
        let kind = match map.get("type") {
            Some(Value::Array(kinds)) => self.random.pick(kinds).and_then(Value::as_str),
            Some(kind) => kind.as_str(),
            None if map.contains_key("properties") => Some("object"),
            None if map.contains_key("items") => Some("array"),
            None => None,
        };
        match kind {
            Some("object") => self.object(map, depth),
            Some("array") => self.array(map, depth),
            Some("string") => self.string(map),
            Some("integer") => self.integer(map),
            Some("number") => self.number(map),
            Some("boolean") => self.random.coin().into(),
            Some(_) => Value::Null,
            None => self.anything(),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let required = |name: &str| {
            let names = schema.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut made = Map::new();
        for (name, schema) in properties.into_iter().flatten() {
            if required(name) || self.random.coin() {
                made.insert(name.clone(), self.value(schema, depth + 1));
            }
        }
        if schema.get("additionalProperties").is_none_or(|more| more == true) && self.random.coin()
        {
            made.insert("nobody_asked_for".to_owned(), self.anything());
        }
        made.into()
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let least = size(schema, "minItems").unwrap_or(0);
        let most = size(schema, "maxItems").unwrap_or(least + 3).min(least + 3);
        let length = least + self.random.below(most.saturating_sub(least) + 1);
        let items = schema.get("items").cloned().unwrap_or(Value::Bool(true));
        (0..length).map(|_| self.value(&items, depth + 1)).collect()
    }

    fn string(&mut self, schema: &Map<String, Value>) -> Value {
        let texts = [
            "",
            " ",
            "0",
            "-1",
            "null",
            "--help",
            "../../etc/passwd",
            "a\nb\r\nc",
            "\0",
            "';--",
            "$(id)",
            "{}",
            "100%",
            "ünïcödé 中文 👩‍👩‍👧",
            "\u{202e}txt",
            "2024-02-30",
            CANARY,
            CANARY,
        ];
        let text = self.random.pick(&texts).copied().unwrap_or_default();
        let least = size(schema, "minLength").unwrap_or(0);
        let most = size(schema, "maxLength").unwrap_or(2_000);
        let length = if self.random.below(8) == 0 { most.min(2_000) } else { least };
        let filled =
            text.chars().chain(std::iter::repeat('x')).take(text.chars().count().max(length));
        filled.take(most).collect::<String>().into()
    }

    fn integer(&mut self, schema: &Map<String, Value>) -> Value {
        let bound = |key| schema.get(key).and_then(Value::as_i64);
        let least =
            bound("minimum").or_else(|| bound("exclusiveMinimum").map(|n| n.saturating_add(1)));
        let most =
            bound("maximum").or_else(|| bound("exclusiveMaximum").map(|n| n.saturating_sub(1)));
        let (least, most) = (least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX));
        let numbers = [
            0,
            1,
            -1,
            2,
            7,
            1 << 31,
            1 << 53,
            least,
            least.saturating_add(1),
            most,
            most.saturating_sub(1),
        ];
        let fit: Vec<i64> = numbers.into_iter().filter(|n| (least..=most).contains(n)).collect();
        self.random.pick(&fit).copied().unwrap_or_default().into()
    }

    fn number(&mut self, schema: &Map<String, Value>) -> Value {
        let bound = |key| schema.get(key).and_then(Value::as_f64);
        let (least, most) = (bound("minimum"), bound("maximum"));
        let numbers = [0.0, -0.0, 0.5, 1.0, -1.0, 1e300, -1e300, 1e-300];
        let bounds = [least, most].into_iter().flatten();
        let fit: Vec<f64> = numbers
            .into_iter()
            .chain(bounds)
            .filter(|n| least.is_none_or(|least| *n >= least) && most.is_none_or(|most| *n <= most))
            .collect();
        self.random.pick(&fit).copied().unwrap_or_default().into()
    }

    fn anything(&mut self) -> Value {
        let values =
            [json!(null), json!(7), json!("x"), json!(CANARY), json!([1]), json!({"a": []})];
        self.random.pick(&values).cloned().unwrap_or_default()
    }
}

fn size(schema: &Map<String, Value>, key: &str) -> Option<usize> {
    schema.get(key).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok())
}

/// Texts of arguments that do not appear in the schema: an error that contains one repeats an
/// argument. Short ones are skipped, because they may appear in any sentence.
pub(super) fn telling_texts(args: &Value, schema: &str) -> Vec<String> {
    const SHORTEST: usize = 8;
    let mut texts = Vec::new();
    let mut ahead = vec![args];
    while let Some(value) = ahead.pop() {
        match value {
            Value::String(text) if text.chars().count() >= SHORTEST && !schema.contains(text) => {
                texts.push(text.clone());
            }
            Value::Array(items) => ahead.extend(items),
            Value::Object(map) => ahead.extend(map.values()),
            _ => {}
        }
    }
    texts
}
