//! Decides from a schema alone which JSON types it may accept at a place.

use std::cell::{Cell, OnceCell};

use serde_json::Value;

use super::references::{References, Target};

/// Maximum number of subschemas visited for one answer, and for all. Beyond either, every type may be
/// accepted.
const MOST_VISITS: u32 = 4_096;
const MOST_VISITS_OF_ALL: u32 = 100_000;

/// Maximum nesting of visited subschemas, likewise.
const DEEPEST_VISIT: usize = 200;

/// A type of JSON values. An integer is a number too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any other number.
    Number,
    /// A text.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonType {
    /// The type of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) if float.fract() != 0.0 => Self::Number,
                _ => Self::Integer,
            },
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    /// The name in a sentence, with its article.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    fn is_named(self, name: &Value) -> bool {
        matches!(
            (self, name.as_str().unwrap_or_default()),
            (Self::Null, "null")
                | (Self::Boolean, "boolean")
                | (Self::Integer, "integer" | "number")
                | (Self::Number, "number")
                | (Self::String, "string")
                | (Self::Array, "array")
                | (Self::Object, "object")
        )
    }
}

/// A step from a value to one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueStep<'a> {
    /// To the member of an object.
    Key(&'a str),
    /// To the element of an array.
    Index(usize),
}

/// The types that a schema accepts. Values are not considered, so the answer is "may": a type that is not
/// accepted makes every value of that type invalid, but one that may be accepted does not make it valid.
pub struct AcceptedTypes<'s> {
    root: &'s Value,
    references: OnceCell<Option<References<'s>>>,
    /// The visits that are left for the current answer, and for all later ones.
    left: Cell<u32>,
    left_of_all: Cell<u32>,
}

impl<'s> AcceptedTypes<'s> {
    /// The types of a schema of at most [`DEEPEST_JSON`](crate::__internal::DEEPEST_JSON) levels.
    pub fn of(root: &'s Value) -> Self {
        let (left, left_of_all) = (Cell::new(0), Cell::new(MOST_VISITS_OF_ALL));
        Self { root, references: OnceCell::new(), left, left_of_all }
    }

    /// Whether a value may have a part of this type at the end of this path; true if undecidable.
    pub fn may_be(&self, path: &[ValueStep<'_>], json_type: JsonType) -> bool {
        self.may_be_within(self.root, path, json_type)
    }

    /// As [`may_be`](Self::may_be), of a value for a subschema of the schema.
    pub fn may_be_within(
        &self,
        schema: &'s Value,
        path: &[ValueStep<'_>],
        json_type: JsonType,
    ) -> bool {
        let most = MOST_VISITS.min(self.left_of_all.get());
        self.left.set(most);
        let accepted = self.accepts(schema, path, json_type, 0);
        let visited = most - self.left.get();
        self.left_of_all.set(self.left_of_all.get() - visited);
        accepted
    }

    fn accepts(
        &self,
        schema: &'s Value,
        path: &[ValueStep<'_>],
        json_type: JsonType,
        depth: usize,
    ) -> bool {
        let left = self.left.get().checked_sub(1).filter(|_| depth < DEEPEST_VISIT);
        self.left.set(left.unwrap_or_default());
        if left.is_none() {
            return true;
        }
        let Value::Object(keywords) = schema else { return schema != &Value::Bool(false) };
        let applies = |schema| self.accepts(schema, path, json_type, depth + 1);
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            if !self.targets(reference).is_none_or(|targets| targets.into_iter().any(applies)) {
                return false;
            }
            if self.ignores_siblings() {
                return true;
            }
        }
        let own = match path {
            [] => accepts_type(keywords, json_type),
            [step, rest @ ..] => part(keywords, *step)
                .is_none_or(|schema| self.accepts(schema, rest, json_type, depth + 1)),
        };
        let branches = |key: &str| keywords.get(key).and_then(Value::as_array);
        own && ["anyOf", "oneOf"]
            .into_iter()
            .all(|key| branches(key).is_none_or(|all| all.iter().any(applies)))
            && branches("allOf").is_none_or(|all| all.iter().all(applies))
    }

    /// All possible targets of a reference; `None` if they are not known.
    fn targets(&self, reference: &str) -> Option<Vec<&'s Value>> {
        let references = self.references.get_or_init(|| References::of(self.root)).as_ref()?;
        match references.target(reference) {
            Target::Within(found) if !found.is_empty() => Some(found),
            _ => None,
        }
    }

    /// Whether the dialect ignores the keywords beside a reference.
    fn ignores_siblings(&self) -> bool {
        let dialect = self.root.get("$schema").and_then(Value::as_str);
        dialect.is_some_and(|uri| uri.contains("/draft-0"))
    }
}

/// Whether the keywords for the value itself accept a type.
fn accepts_type(keywords: &serde_json::Map<String, Value>, json_type: JsonType) -> bool {
    let by_type = match keywords.get("type") {
        None => true,
        Some(Value::Array(names)) => names.iter().any(|name| json_type.is_named(name)),
        Some(name) => json_type.is_named(name),
    };
    let has_type = |value: &Value| JsonType::of(value) == json_type;
    by_type
        && keywords.get("const").is_none_or(has_type)
        && keywords.get("enum").and_then(Value::as_array).is_none_or(|all| all.iter().any(has_type))
}

/// The subschema for a part, if there is one that is certain to apply.
fn part<'s>(
    keywords: &'s serde_json::Map<String, Value>,
    step: ValueStep<'_>,
) -> Option<&'s Value> {
    match step {
        ValueStep::Key(key) => {
            let property = keywords.get("properties").and_then(|all| all.get(key));
            // A pattern may match, and then its schema applies instead.
            let others = || {
                let has_patterns = keywords.contains_key("patternProperties");
                keywords.get("additionalProperties").filter(|_| !has_patterns)
            };
            property.or_else(others)
        }
        ValueStep::Index(at) => {
            let items = keywords.get("items");
            let (prefix, rest) = match keywords.get("prefixItems").or(items) {
                Some(Value::Array(prefix)) => {
                    let is_items = items.is_some_and(Value::is_array);
                    (Some(prefix), keywords.get(if is_items { "additionalItems" } else { "items" }))
                }
                _ => (None, items),
            };
            prefix.and_then(|prefix| prefix.get(at)).or(rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn accepted(schema: &Value, path: &[ValueStep<'_>]) -> Vec<JsonType> {
        use JsonType::{Array, Boolean, Integer, Null, Number, Object, String};
        let types = AcceptedTypes::of(schema);
        let all = [Null, Boolean, Integer, Number, String, Array, Object];
        all.into_iter().filter(|json_type| types.may_be(path, *json_type)).collect()
    }

    #[test]
    fn types_are_found_through_every_keyword_that_decides_them() {
        use JsonType::{Boolean, Integer, Null, Number, String};
        let schema = json!({
            "$defs": {
                "Count": { "type": "integer" },
                "Chain": { "$ref": "#/$defs/Count" },
                "Positive": { "minimum": 0 },
                "Named": { "$anchor": "named", "type": "boolean" },
            },
            "properties": {
                "plain": { "type": "number" },
                "values": { "enum": [1, null] },
                "only": { "const": 2.5 },
                "chain": { "$ref": "#/$defs/Chain" },
                "anchor": { "$ref": "#named" },
                "beside": { "type": "integer", "$ref": "#/$defs/Positive" },
                "either": { "anyOf": [{ "type": "boolean" }, { "oneOf": [{ "type": "null" }] }] },
                "both": { "allOf": [{ "type": ["integer", "string"] }, { "type": "integer" }] },
                "open": { "anyOf": [{ "type": "boolean" }, {}] },
                "unknown": { "$ref": "https://example.com/other" },
                "list": { "prefixItems": [{ "type": "null" }], "items": { "type": "boolean" } },
                "tuple": { "items": [{ "type": "null" }], "additionalItems": { "type": "boolean" } },
                "map": { "additionalProperties": { "type": "boolean" } },
                "patterns": { "patternProperties": { "^x": {} }, "additionalProperties": { "type": "null" } },
            },
            "anyOf": [
                { "properties": { "kind": { "const": 1 }, "n": { "type": "integer" } } },
                { "properties": { "kind": { "const": 2 }, "n": { "type": "null" } } },
            ],
        });
        let key = |name: &'static str| ValueStep::Key(name);
        let paths: [(&[ValueStep<'_>], &[JsonType]); 14] = [
            (&[key("plain")], &[Integer, Number]),
            (&[key("values")], &[Null, Integer]),
            (&[key("only")], &[Number]),
            (&[key("chain")], &[Integer]),
            (&[key("anchor")], &[Boolean]),
            (&[key("beside")], &[Integer]),
            (&[key("either")], &[Null, Boolean]),
            (&[key("both")], &[Integer]),
            (&[key("n")], &[Null, Integer]),
            (&[key("list"), ValueStep::Index(0)], &[Null]),
            (&[key("list"), ValueStep::Index(1)], &[Boolean]),
            (&[key("tuple"), ValueStep::Index(0)], &[Null]),
            (&[key("tuple"), ValueStep::Index(5)], &[Boolean]),
            (&[key("map"), key("any")], &[Boolean]),
        ];
        for (path, expected) in paths {
            assert_eq!(accepted(&schema, path), expected, "{path:?}");
        }
        for path in ["open", "unknown", "undeclared"] {
            assert!(accepted(&schema, &[key(path)]).contains(&String), "{path}");
        }
        assert!(accepted(&schema, &[key("patterns"), key("a")]).contains(&String));
        let old = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": { "Any": {} },
            "properties": { "a": { "type": "integer", "$ref": "#/definitions/Any" } },
        });
        assert!(accepted(&old, &[key("a")]).contains(&String));
    }

    #[test]
    fn endless_references_end() {
        let schema = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }], "type": "integer" });
        let types = AcceptedTypes::of(&schema);
        assert!(!types.may_be(&[], JsonType::String));
        let branches =
            json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }], "allOf": [{ "$ref": "#" }] });
        assert!(AcceptedTypes::of(&branches).may_be(&[], JsonType::String));
    }
}
