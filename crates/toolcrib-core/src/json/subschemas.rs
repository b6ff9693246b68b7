//! The keywords of a JSON Schema whose values contain schemas.

use serde_json::{Map, Value};

/// How the value of a keyword contains schemas.
pub enum Subschemas {
    /// It is a schema. Of older drafts, `items` may be a list of them.
    One,
    /// It is a list of schemas.
    List,
    /// It maps names to schemas.
    Named,
}

/// How the value of a keyword contains schemas, if it does. Other values are data, even if they look
/// like a schema.
pub fn subschemas(keyword: &str) -> Option<Subschemas> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Subschemas::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Subschemas::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
        | "properties" => Subschemas::Named,
        _ => return None,
    })
}

/// Whether a schema may describe a property elsewhere than in `properties`.
pub fn may_describe_elsewhere(schema: &Map<String, Value>) -> bool {
    const ELSEWHERE: [&str; 8] =
        ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "not"];
    ELSEWHERE.iter().any(|key| schema.contains_key(*key))
}
