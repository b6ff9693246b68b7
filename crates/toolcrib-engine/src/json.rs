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
                let mut name = key(name);
                if changed.contains_key(&name) {
                    let mut numbered = (2_u64..).map(|number| format!("{name} {number}"));
                    name = numbered.find(|free| !changed.contains_key(free)).unwrap_or_default();
                }
                changed.insert(name, map_texts(value, leaf, key));
            }
            Value::Object(changed)
        }
        other => leaf(other),
    }
}
