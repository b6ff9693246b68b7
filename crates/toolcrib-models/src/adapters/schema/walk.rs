//! The schemas within a schema.

use serde_json::Value;

use super::Keywords;

/// How a keyword contains schemas.
pub(super) enum Holds {
    One,
    List,
    /// By names, which have no meaning here.
    Named,
}

/// How a keyword contains schemas, if it does. Other values are data, even if they look like a
/// schema.
pub(super) fn holds(keyword: &str) -> Option<Holds> {
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
        | "unevaluatedProperties" => Holds::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
        | "properties" => Holds::Named,
        _ => return None,
    })
}

/// Changes a schema and then all schemas within it. Booleans are schemas too, and are unchanged.
pub(in super::super) fn change_each(schema: &mut Value, change: fn(&mut Keywords)) {
    let Value::Object(keywords) = schema else { return };
    change(keywords);
    for (keyword, value) in keywords {
        match (holds(keyword), value) {
            (Some(Holds::One), schema) => change_each(schema, change),
            (Some(Holds::List), Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| change_each(schema, change));
            }
            (Some(Holds::Named), Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| change_each(schema, change));
            }
            _ => {}
        }
    }
}
