//! Data whose texts change.

use serde_json::{Map, Value};

/// The same data with other leaves and other keys. Keys that would become one are numbered, so that
/// nothing is lost. Recursive: what nests too deep is turned away before it comes here.
pub(crate) fn map_texts(
    data: Value,
    leaf: &mut impl FnMut(Value) -> Value,
    key: &mut impl FnMut(String) -> String,
) -> Value {
    match data {
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, leaf, key)).collect(),
        Value::Object(entries) => {
            let mut changed = Map::with_capacity(entries.len());
            for (name, value) in entries {
                let name = key(name);
                let mut free = name.clone();
                let mut number = 1;
                while changed.contains_key(&free) {
                    number += 1;
                    free = format!("{name} {number}");
                }
                changed.insert(free, map_texts(value, leaf, key));
            }
            Value::Object(changed)
        }
        other => leaf(other),
    }
}
