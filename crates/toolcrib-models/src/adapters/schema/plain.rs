//! Schemas with few keywords.
//!
//! Gemini's `parametersJsonSchema` accepts JSON Schema, but [not all of it][gemini]: some keywords
//! make Gemini refuse the whole request, and some it does not pass on. Ollama reads a tool into
//! fixed fields ([`ToolProperty`][ollama]): a value of another shape is refused, and of an argument
//! it keeps type, description, `enum`, `anyOf`, `items`, `properties` and `required`.
//!
//! | part | becomes | because |
//! |---|---|---|
//! | `$ref` into the schema | its target | Gemini refuses it beside all but `description` and `default`, and looks only into `$defs`; Ollama drops it |
//! | `$ref` back into itself | type, title and description of its target | Gemini refuses a cycle in required properties |
//! | `$ref` to elsewhere | nothing | Gemini refuses a reference to an undefined schema |
//! | `$defs`, `definitions`, other keys with `$` | nothing | no reference to them is left |
//! | `true`, `false` as a schema | `{}` | both refuse what is not an object |
//! | `const` | `enum` of one | neither passes it on |
//! | other values in `enum` | omitted | Gemini accepts strings and numbers |
//! | `oneOf` | `anyOf` | Gemini reads it like that; Ollama drops it |
//! | `allOf` | merged into its parent | neither passes it on |
//! | keywords of drafts before 2020-12 | the [same](super::modern()) in 2020-12 | Gemini refuses `items` that are not an object |
//! | `not`, `if`, `patternProperties`, … | nothing | schemas within keywords that neither passes on |
//!
//! Other keywords are unchanged: those that are not passed on, such as `pattern`, do no harm.
//!
//! [gemini]: https://ai.google.dev/api/generate-content#FIELDS.response_json_schema
//! [ollama]: https://pkg.go.dev/github.com/ollama/ollama/api#ToolProperty

use serde_json::{Map, Value};
use toolcrib_core::__internal::subschemas;

use super::{
    Keywords, MAX_LEVELS,
    modern::modern,
    references::{ReferenceTarget, References},
};

/// The schema with few keywords. `in_enum` selects the values that are allowed in an `enum`.
pub(in super::super) fn plain(schema: &Value, in_enum: fn(&Value) -> bool) -> Value {
    let schema = modern(schema);
    let references = References::new(&schema);
    Value::Object(SchemaRewriter { references, in_enum, levels: 0 }.schema(&schema))
}

struct SchemaRewriter<'a> {
    references: References<'a>,
    in_enum: fn(&Value) -> bool,
    levels: usize,
}

impl<'a> SchemaRewriter<'a> {
    fn schema(&mut self, schema: &'a Value) -> Keywords {
        let Value::Object(keywords) = schema else { return Map::new() };
        if self.levels >= MAX_LEVELS {
            return summary(keywords);
        }
        self.levels += 1;
        let mut written = Map::new();
        for (keyword, value) in keywords {
            self.keyword(keyword, value, &mut written);
        }
        // Further constraints on the same value. The schema's own keywords win.
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            let referred = self.referred(reference);
            merge(&mut written, referred);
        }
        if let Some(Value::Array(all)) = keywords.get("allOf") {
            for part in all {
                let part = self.schema(part);
                merge(&mut written, part);
            }
        }
        self.levels -= 1;
        written
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value, written: &mut Keywords) {
        let value = match (keyword, value) {
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), Value::Object(self.schema(schema))))
                .collect(),
            ("oneOf", Value::Array(schemas)) => {
                let any = self.schemas(schemas);
                written.entry("anyOf").or_insert(any);
                return;
            }
            ("prefixItems" | "anyOf", Value::Array(schemas)) => self.schemas(schemas),
            ("additionalProperties", Value::Bool(_)) => value.clone(),
            ("items" | "additionalProperties", schema) => Value::Object(self.schema(schema)),
            ("enum", Value::Array(values)) => match self.values(values) {
                Some(values) => values,
                None => return,
            },
            ("const", constant) => {
                if let Some(values) = self.values(std::slice::from_ref(constant)) {
                    written.entry("enum").or_insert(values);
                }
                return;
            }
            (keyword, _) if keyword.starts_with('$') || subschemas(keyword).is_some() => return,
            (_, value) => value.clone(),
        };
        written.insert(keyword.to_owned(), value);
    }

    fn schemas(&mut self, schemas: &'a [Value]) -> Value {
        schemas.iter().map(|schema| Value::Object(self.schema(schema))).collect()
    }

    /// The values that are allowed in an `enum`, if any.
    fn values(&self, values: &[Value]) -> Option<Value> {
        let taken: Vec<_> = values.iter().filter(|value| (self.in_enum)(value)).cloned().collect();
        (!taken.is_empty()).then_some(Value::Array(taken))
    }

    /// The target of a reference; a cycle becomes a summary.
    fn referred(&mut self, reference: &'a str) -> Keywords {
        match self.references.enter(reference) {
            ReferenceTarget::New(target) => {
                let written = self.schema(target);
                self.references.leave();
                written
            }
            ReferenceTarget::Again(target) => target.as_object().map(summary).unwrap_or_default(),
            ReferenceTarget::Nothing => Map::new(),
        }
    }
}

/// The summary of a schema, without its parts.
fn summary(keywords: &Keywords) -> Keywords {
    let told = ["type", "title", "description"];
    let of = |keyword: &str| Some((keyword.to_owned(), keywords.get(keyword)?.clone()));
    told.into_iter().filter_map(of).collect()
}

/// Adds constraints of another schema. If both have a keyword, the first wins.
fn merge(schema: &mut Keywords, other: Keywords) {
    for (keyword, value) in other {
        match (keyword.as_str(), schema.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (name, property) in more {
                    known.entry(name).or_insert(property);
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => {
                for name in more {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                schema.insert(keyword, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::references::MAX_REFERRED_BYTES, *};

    fn written(schema: &Value) -> Value {
        plain(schema, |value| value.is_string() || value.is_number())
    }

    #[test]
    fn a_schema_is_rewritten_where_it_would_be_refused_or_kept_from_the_model() {
        let address = json!({"type": "object", "properties": {"zip": {"type": "string", "pattern": "^[0-9]+$"}}});
        let cases = [
            // Unchanged keywords.
            (
                json!({"properties": {"b": {"enum": ["y", "x"], "description": "B", "default": "y"}, "a": {"type": ["integer", "null"], "minimum": 1}}, "required": ["a"], "additionalProperties": false}),
                json!({"properties": {"b": {"enum": ["y", "x"], "description": "B", "default": "y"}, "a": {"type": ["integer", "null"], "minimum": 1}}, "required": ["a"], "additionalProperties": false}),
            ),
            (
                json!({"oneOf": [{"required": ["a"]}, {"anyOf": [{"type": "string", "format": "date-time"}]}]}),
                json!({"anyOf": [{"required": ["a"]}, {"anyOf": [{"type": "string", "format": "date-time"}]}]}),
            ),
            // References.
            (
                json!({"properties": {"home": {"$ref": "#/$defs/address", "description": "Home"}, "all": {"type": "array", "items": {"$ref": "#/$defs/address"}}}, "$defs": {"address": address}}),
                json!({"properties": {"home": {"description": "Home", "type": "object", "properties": {"zip": {"type": "string", "pattern": "^[0-9]+$"}}}, "all": {"type": "array", "items": address}}}),
            ),
            (
                json!({"properties": {"a": {"$ref": "#/definitions/a~1b"}}, "definitions": {"a/b": {"$ref": "#/definitions/c"}, "c": {"type": "string"}}}),
                json!({"properties": {"a": {"type": "string"}}}),
            ),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/gone"}, "b": {"$ref": "https://example.org/x", "description": "B"}, "c": {"$ref": "#anchor"}}}),
                json!({"properties": {"a": {}, "b": {"description": "B"}, "c": {}}}),
            ),
            // A tree, and a schema that contains itself.
            (
                json!({"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"type": "object", "description": "A node", "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}}),
                json!({"properties": {"tree": {"type": "object", "description": "A node", "properties": {"of": {"type": "array", "items": {"type": "object", "description": "A node"}}}}}}),
            ),
            (
                json!({"type": "object", "properties": {"again": {"$ref": "#"}}}),
                json!({"type": "object", "properties": {"again": {"type": "object"}}}),
            ),
            // Invalid schemas, and properties with the names of keywords.
            (
                json!({"properties": {"any": true, "none": false, "$ref": {"type": "string"}, "enum": {"const": "x"}}, "additionalProperties": true}),
                json!({"properties": {"any": {}, "none": {}, "$ref": {"type": "string"}, "enum": {"enum": ["x"]}}, "additionalProperties": true}),
            ),
            (
                json!({"type": "array", "items": [{"type": "string"}, true]}),
                json!({"type": "array", "prefixItems": [{"type": "string"}, {}]}),
            ),
            // Values.
            (json!({"const": 7}), json!({"enum": [7]})),
            (json!({"const": true, "type": "boolean"}), json!({"type": "boolean"})),
            (json!({"enum": [1, "a", null, true, {}]}), json!({"enum": [1, "a"]})),
            (json!({"enum": [null]}), json!({})),
            // Further constraints.
            (
                json!({"description": "Own", "properties": {"a": {"type": "string"}}, "required": ["a"], "allOf": [{"$ref": "#/$defs/b"}, {"description": "Other", "required": ["a", "c"]}], "$defs": {"b": {"properties": {"a": {}, "b": {"type": "integer"}}, "required": ["b"]}}}),
                json!({"description": "Own", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b", "c"]}),
            ),
            // Omitted keywords.
            (
                json!({"$schema": "x", "$id": "y", "$comment": "z", "not": {"$ref": "#/$defs/a"}, "if": {}, "then": {}, "patternProperties": {"^x": {}}, "propertyNames": {"pattern": "^x"}, "uniqueItems": true}),
                json!({"uniqueItems": true}),
            ),
            (
                json!({"additionalProperties": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "string"}}}),
                json!({"additionalProperties": {"type": "string"}}),
            ),
        ];
        for (schema, expected) in cases {
            // As text, since the order of keys matters.
            assert_eq!(written(&schema).to_string(), expected.to_string(), "{schema}");
        }
    }

    #[test]
    fn references_never_make_more_than_a_bounded_schema() {
        // Each definition refers to the next one twice: written out, 2^40 schemas.
        let definitions: Map<_, _> = (0..40)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
                (n.to_string(), json!({"type": "object", "properties": {"a": next, "b": next}}))
            })
            .collect();
        let schema = json!({"$ref": "#/$defs/0", "$defs": definitions});
        let plain = written(&schema).to_string();
        assert!(plain.len() < MAX_REFERRED_BYTES, "{}", plain.len());
        assert!(!plain.contains("$ref"));

        // A long text is not repeated more than a few times either.
        let parts: Map<_, _> =
            (0..1000).map(|n| (n.to_string(), json!({"$ref": "#/$defs/long"}))).collect();
        let long = json!({"type": "string", "description": "x".repeat(10_000)});
        let schema = json!({"properties": parts, "$defs": {"long": long}});
        assert!(written(&schema).to_string().len() < MAX_REFERRED_BYTES + 100 * 1000);

        // Maximum nesting, with references to the schema's own parts.
        let mut deep = json!({"$ref": "#/properties/a"});
        for _ in 0..60 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        let plain = written(&deep).to_string();
        assert_eq!(plain.matches("properties").count(), MAX_LEVELS);
    }
}
