//! Which items a filter keeps.

use std::cmp::Ordering;

use serde::Deserialize;
use serde_json::Value;

/// How an item's field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Contains,
    Exists,
}

/// All of them, as they stand in a schema.
pub(super) const OPS: [&str; 8] = ["eq", "ne", "lt", "le", "gt", "ge", "contains", "exists"];

/// A field of an item: by its name, or by a JSON Pointer from the item on. Empty is the item itself.
pub(super) fn field<'v>(item: &'v Value, field: &str) -> Option<&'v Value> {
    if field.is_empty() || field.starts_with('/') { item.pointer(field) } else { item.get(field) }
}

/// Whether an item's field is so.
pub(super) fn holds(item: &Value, name: &str, op: Op, with: &Value) -> bool {
    let found = field(item, name);
    match op {
        Op::Exists => found.is_some() != (with == &Value::Bool(false)),
        Op::Eq => found.is_some_and(|value| order(value, with) == Some(Ordering::Equal)),
        Op::Ne => found.is_none_or(|value| order(value, with) != Some(Ordering::Equal)),
        Op::Lt => found.is_some_and(|value| order(value, with).is_some_and(Ordering::is_lt)),
        Op::Le => compares(found, with, Ordering::is_le),
        Op::Gt => found.is_some_and(|value| order(value, with).is_some_and(Ordering::is_gt)),
        Op::Ge => compares(found, with, Ordering::is_ge),
        Op::Contains => found.is_some_and(|value| match (value, with) {
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            (Value::Array(items), with) => items.contains(with),
            (Value::Object(map), Value::String(key)) => map.contains_key(key),
            _ => false,
        }),
    }
}

/// Only numbers and texts are in an order.
fn compares(found: Option<&Value>, with: &Value, holds: fn(Ordering) -> bool) -> bool {
    found.is_some_and(|value| {
        (value.is_number() || value.is_string()) && order(value, with).is_some_and(holds)
    })
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (a, b) => (a == b).then_some(Ordering::Equal),
    }
}
