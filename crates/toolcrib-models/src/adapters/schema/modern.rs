//! Converts drafts before 2020-12.

use serde_json::Value;

use super::{Keywords, walk::change_each};

/// Converts a schema to draft 2020-12. Keywords that are unknown to that draft and had the same
/// meaning in older ones (`definitions`, `dependencies`) are unchanged.
///
/// | older | 2020-12 |
/// |---|---|
/// | `items` as a list, `additionalItems` | `prefixItems`, `items` |
/// | `exclusiveMinimum` and `exclusiveMaximum` as flags | as limits |
/// | `required` as a flag | nothing |
pub(in super::super) fn modern(schema: &Value) -> Value {
    let mut schema = schema.clone();
    change_each(&mut schema, modernize);
    schema
}

fn modernize(schema: &mut Keywords) {
    if schema.get("items").is_some_and(Value::is_array) {
        rename(schema, "items", "prefixItems");
        rename(schema, "additionalItems", "items");
    }
    exclude(schema, "minimum", "exclusiveMinimum");
    exclude(schema, "maximum", "exclusiveMaximum");
    if schema.get("required").is_some_and(Value::is_boolean) {
        schema.shift_remove("required");
    }
}

/// Renames a keyword, keeping its place.
fn rename(schema: &mut Keywords, from: &str, to: &str) {
    let renamed = |key: String| if key == from { to.to_owned() } else { key };
    *schema =
        std::mem::take(schema).into_iter().map(|(key, value)| (renamed(key), value)).collect();
}

/// Converts a limit with an exclusive flag to an exclusive limit.
fn exclude(schema: &mut Keywords, limit: &str, exclusive: &str) {
    let Some(flag) = schema.get(exclusive).and_then(Value::as_bool) else { return };
    schema.shift_remove(exclusive);
    if flag {
        rename(schema, limit, exclusive);
    }
}
