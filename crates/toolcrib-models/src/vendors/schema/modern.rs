//! What drafts before 2020-12 wrote otherwise.

use serde_json::Value;

use super::{Keywords, walk::change_each};

/// The schema as draft 2020-12 writes it. What that draft does not know and older ones meant the same
/// by (`definitions`, `dependencies`) stays.
///
/// | older | 2020-12 |
/// |---|---|
/// | `items` as a list, `additionalItems` | `prefixItems`, `items` |
/// | `exclusiveMinimum` and `exclusiveMaximum` as flags | as limits |
/// | `required` as a flag | nothing |
pub(in super::super) fn modern(schema: &Value) -> Value {
    let mut schema = schema.clone();
    change_each(&mut schema, modernise);
    schema
}

fn modernise(schema: &mut Keywords) {
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

/// Gives a keyword another name, at its place.
fn rename(schema: &mut Keywords, from: &str, to: &str) {
    let renamed = |key: String| if key == from { to.to_owned() } else { key };
    *schema =
        std::mem::take(schema).into_iter().map(|(key, value)| (renamed(key), value)).collect();
}

/// A limit that a flag makes exclusive is an exclusive limit.
fn exclude(schema: &mut Keywords, limit: &str, exclusive: &str) {
    let Some(flag) = schema.get(exclusive).and_then(Value::as_bool) else { return };
    schema.shift_remove(exclusive);
    if flag {
        rename(schema, limit, exclusive);
    }
}
