//! Comparisons in queries.

use std::cmp::Ordering;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolcrib_core::ToolError;

/// A comparison operator.
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

/// All operators, as in a schema.
pub(super) const OPS: [&str; 8] = ["eq", "ne", "lt", "le", "gt", "ge", "contains", "exists"];

impl Op {
    /// Validates the operand, called `name`: all operators but `exists` require one, and ordering
    /// operators one with an order.
    pub(super) fn operand(self, name: &str, value: Option<Value>) -> Result<Value, ToolError> {
        let problem = match (self, &value) {
            (Self::Exists, _) | (Self::Eq | Self::Ne | Self::Contains, Some(_)) => None,
            (_, None) => Some("is required, with every `op` but `exists`"),
            (_, Some(value)) if is_ordered(value) => None,
            _ => Some("must be a number or a string for this `op`"),
        };
        match problem {
            Some(problem) => Err(ToolError::input_invalid(format!("`{name}` {problem}"))),
            None => Ok(value.unwrap_or(Value::Null)),
        }
    }

    /// Evaluates the comparison. Only numbers and strings are ordered, each among themselves.
    pub(super) fn matches(self, found: Option<&Value>, with: &Value) -> bool {
        let order = found.and_then(|found| order(found, with));
        match self {
            Self::Exists => found.is_some() != (with == &Value::Bool(false)),
            Self::Eq => order == Some(Ordering::Equal),
            Self::Ne => order != Some(Ordering::Equal),
            Self::Lt => order.is_some_and(Ordering::is_lt),
            Self::Le => order.is_some_and(Ordering::is_le),
            Self::Gt => order.is_some_and(Ordering::is_gt),
            Self::Ge => order.is_some_and(Ordering::is_ge),
            Self::Contains => match (found, with) {
                (Some(Value::String(text)), Value::String(part)) => text.contains(part.as_str()),
                (Some(Value::Array(items)), with) => items.contains(with),
                (Some(Value::Object(map)), Value::String(key)) => map.contains_key(key),
                _ => false,
            },
        }
    }
}

/// A present value, which may be `null`: by default serde treats it as missing.
pub(super) fn there<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

fn is_ordered(value: &Value) -> bool {
    value.is_number() || value.is_string()
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
