//! Treats `null` for an optional argument as absent, as models mean it.

use std::collections::HashSet;

use serde_json::Value;
use toolcrib_core::__internal::{AcceptedTypes, JsonType};

/// Maximum length of a chain of references.
const MOST_REFERENCES: usize = 64;

/// Removes each property that is null, is not required, and whose schema does not accept null.
/// Follows `properties`, `items` and local `$ref`; properties that only a branch of an alternative
/// declares are unchanged.
pub(super) fn remove_nulls(args: &mut Value, root: &Value) {
    within(args, root, root, &AcceptedTypes::of(root));
}

/// Recursive up to the limited depth of the arguments.
fn within<'s>(value: &mut Value, schema: &'s Value, root: &'s Value, types: &AcceptedTypes<'s>) {
    let Some(schema) = resolved(schema, root) else { return };
    match value {
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| within(item, schema, root, types));
            }
        }
        Value::Object(entries) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            let required = schema.get("required").and_then(Value::as_array);
            let required: HashSet<&str> =
                required.into_iter().flatten().filter_map(Value::as_str).collect();
            entries.retain(|key, value| {
                let Some(schema) = properties.get(key) else { return true };
                if value.is_null() {
                    return required.contains(&**key)
                        || types.may_be_within(schema, &[], JsonType::Null);
                }
                within(value, schema, root, types);
                true
            });
        }
        _ => {}
    }
}

/// The target of a schema that is only a chain of local references.
fn resolved<'s>(mut schema: &'s Value, root: &'s Value) -> Option<&'s Value> {
    for _ in 0..MOST_REFERENCES {
        let Some(target) = schema.get("$ref") else { return Some(schema) };
        schema = root.pointer(target.as_str()?.strip_prefix('#')?)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_goes_where_it_can_only_mean_that_nothing_is_given() {
        let schema = json!({
            "$defs": {
                "Mode": { "enum": ["fast", "slow"] },
                "Loop": { "$ref": "#/$defs/Loop" },
            },
            "properties": {
                "needed": { "type": "string" },
                "plain": { "type": "string" },
                "mode": { "$ref": "#/$defs/Mode" },
                "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "both": { "allOf": [{ "$ref": "#/$defs/Mode" }], "description": "How." },
                "nullable": { "type": ["string", "null"] },
                "maybe": { "anyOf": [{ "$ref": "#/$defs/Mode" }, { "type": "null" }] },
                "free": {},
                "endless": { "$ref": "#/$defs/Loop" },
                "inner": { "properties": { "plain": { "type": "integer" } }, "required": ["plain2"] },
                "list": { "items": { "properties": { "plain": { "type": "integer" } } } },
            },
            "required": ["needed"],
        });
        let mut args = json!({
            "needed": null, "plain": null, "mode": null, "either": null, "both": null,
            "nullable": null, "maybe": null, "free": null, "endless": null, "unknown": null,
            "inner": { "plain": null, "other": null },
            "list": [{ "plain": null }, null],
        });
        remove_nulls(&mut args, &schema);
        let left = json!({
            "needed": null,
            "nullable": null, "maybe": null, "free": null, "endless": null, "unknown": null,
            "inner": { "other": null },
            "list": [{}, null],
        });
        assert_eq!(args, left);
    }

    #[test]
    fn looking_for_null_has_an_end() {
        let wide = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }], "properties": { "a": { "$ref": "#" } } });
        let mut args = json!({ "a": null });
        remove_nulls(&mut args, &wide);
        assert_eq!(args, json!({ "a": null }));
    }
}
