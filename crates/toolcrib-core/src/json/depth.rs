//! Deeply nested JSON. It comes only from code, because parsers limit depth; walking it by
//! recursion could exhaust the stack.

use serde_json::Value;

/// Maximum nesting of schemas, arguments and structured output, in levels: the limit of
/// `serde_json`'s parser.
pub const DEEPEST_JSON: usize = 128;

/// Maximum nesting of the arguments of calls, in levels of objects and arrays. A model's arguments go back
/// to it in each later request, and Google's parser accepts a hundred levels for the whole request.
pub const DEEPEST_ARGUMENTS: usize = 64;

/// Whether a value nests deeper than [`DEEPEST_JSON`].
pub fn nests_too_deep(value: &Value) -> bool {
    let mut ahead = vec![(value, 0)];
    while let Some((value, level)) = ahead.pop() {
        if level > DEEPEST_JSON {
            return true;
        }
        match value {
            Value::Array(items) => ahead.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => ahead.extend(map.values().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    false
}

/// Whether a value has more than this number of levels of objects and arrays.
pub fn nests_deeper_than(levels: usize, value: &Value) -> bool {
    let mut ahead = vec![(value, 1)];
    while let Some((value, level)) = ahead.pop() {
        match value {
            Value::Array(_) | Value::Object(_) if level > levels => return true,
            Value::Array(items) => ahead.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => ahead.extend(map.values().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    false
}

/// Drops a deeply nested value without recursion.
pub fn dismantle(value: Value) {
    let mut parts = vec![value];
    while let Some(part) = parts.pop() {
        match part {
            Value::Array(items) => parts.extend(items),
            Value::Object(map) => parts.extend(map.into_values()),
            _ => {}
        }
    }
}
