//! Deeply nested JSON. It comes only from code, because parsers limit depth; walking it by
//! recursion could exhaust the stack.

use serde_json::Value;

/// Maximum nesting of schemas, arguments and structured output, in levels: the limit of
/// `serde_json`'s parser.
pub const DEEPEST_JSON: usize = 128;

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
