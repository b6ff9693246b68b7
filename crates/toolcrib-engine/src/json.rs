//! Schemas of built-in tools, and the strings of JSON data.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// A schema with only these properties, of which `required` must be present.
pub(crate) fn closed(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Maps the leaves and keys of data. Keys that become equal are numbered, which keeps all entries.
/// Recursive: data that nests too deep is rejected earlier.
pub(crate) fn map_texts(
    data: Value,
    leaf: &mut impl FnMut(Value) -> Value,
    key: &mut impl FnMut(String) -> String,
) -> Value {
    match data {
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, leaf, key)).collect(),
        Value::Object(entries) => {
            let mut changed = Map::with_capacity(entries.len());
            // The last number of each key keeps this linear when many keys become one.
            let mut numbers: HashMap<String, u64> = HashMap::new();
            for (name, value) in entries {
                let mut name = key(name);
                if changed.contains_key(&name) {
                    let last = numbers.entry(name.clone()).or_insert(1);
                    let mut numbered =
                        (*last + 1..).map(|number| (number, format!("{name} {number}")));
                    let free = numbered.find(|(_, free)| !changed.contains_key(free));
                    (*last, name) = free.unwrap_or_default();
                }
                changed.insert(name, map_texts(value, leaf, key));
            }
            Value::Object(changed)
        }
        other => leaf(other),
    }
}

/// Approximate size of data as text, in bytes. Data that nests too deep is rejected earlier.
pub(crate) fn text_bytes(data: &Value) -> usize {
    match data {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 2 + text_bytes(item)).sum(),
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| 4 + key.len() + text_bytes(value)).sum()
        }
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolcrib_clock::processor_time;

    use super::*;

    #[test]
    fn many_keys_that_become_one_are_numbered_in_a_time_that_grows_with_their_number() {
        let entries: Map<_, _> = (0..30_000).map(|at| (format!("k{at}"), json!(at))).collect();
        let began = processor_time();
        let one = map_texts(entries.into(), &mut |leaf| leaf, &mut |_| "k".to_owned());
        let took = processor_time().saturating_sub(began);
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert_eq!(
            (&one["k"], &one["k 2"], &one["k 30000"]),
            (&json!(0), &json!(1), &json!(29_999))
        );
    }
}
