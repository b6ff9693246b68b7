//! Data whose texts change.

use std::collections::HashMap;

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
            // The last number of each key, so that many of one take no more time than many of several.
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    #[test]
    fn many_keys_that_become_one_are_numbered_in_a_time_that_grows_with_their_number() {
        let entries: Map<_, _> = (0..30_000).map(|at| (format!("k{at}"), json!(at))).collect();
        let began = Instant::now();
        let one = map_texts(entries.into(), &mut |leaf| leaf, &mut |_| "k".to_owned());
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert_eq!(
            (&one["k"], &one["k 2"], &one["k 30000"]),
            (&json!(0), &json!(1), &json!(29_999))
        );
    }
}
