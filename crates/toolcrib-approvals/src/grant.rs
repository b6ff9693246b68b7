//! The arguments that a grant permits.

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use toolcrib_core::{ArgumentMatch, Effect};

/// The calls of one tool that a grant permits. Arguments that no condition names must equal those
/// of the approved call, unless they or any may differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantScope {
    /// Whether arguments without a condition may have any value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) any: bool,
    /// The values of the arguments without a condition.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) same: Map<String, Value>,
    /// The arguments that may have any value, or be absent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) free: BTreeSet<String>,
    /// The conditions, as written.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<String>,
}

/// A condition that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{condition}` is not a condition on an argument: write NAME=VALUE, NAME<NUMBER, NAME<=NUMBER, \
     NAME>NUMBER, NAME>=NUMBER or NAME^=START, such as amount<=100; NAME may be a JSON pointer"
)]
pub struct InvalidConditionError {
    /// The condition as written.
    pub condition: String,
}

/// A condition on one argument.
#[derive(Debug, Clone)]
struct Condition {
    /// The first name of the pointer: the argument that may differ from the approved call.
    argument: String,
    /// Of these one must match.
    any_of: Vec<ArgumentMatch>,
}

impl FromStr for Condition {
    type Err = InvalidConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidConditionError { condition: text.to_owned() };
        let at = text.find(['=', '<', '>', '^']).ok_or_else(invalid)?;
        let (name, rest) = text.split_at(at);
        let name = name.trim();
        if name.is_empty() {
            return Err(invalid());
        }
        let pointer = match name.starts_with('/') {
            true => name.to_owned(),
            false => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        };
        let first = pointer.split('/').nth(1).unwrap_or_default();
        let argument = first.replace("~1", "/").replace("~0", "~");
        let on = || ArgumentMatch::at(pointer.as_str()).map_err(|_| invalid());
        let number = |text: &str| text.trim().parse::<Number>().map_err(|_| invalid());
        let any_of = if let Some(bound) = rest.strip_prefix("<=") {
            let bound = number(bound)?;
            vec![on()?.less_than(bound.clone()), on()?.equals(bound)]
        } else if let Some(bound) = rest.strip_prefix(">=") {
            let bound = number(bound)?;
            vec![on()?.greater_than(bound.clone()), on()?.equals(bound)]
        } else if let Some(bound) = rest.strip_prefix('<') {
            vec![on()?.less_than(number(bound)?)]
        } else if let Some(bound) = rest.strip_prefix('>') {
            vec![on()?.greater_than(number(bound)?)]
        } else if let Some(start) = rest.strip_prefix("^=") {
            vec![on()?.starts_with(start)]
        } else if let Some(value) = rest.strip_prefix('=') {
            // `5` is the number or the text, as the call has it.
            let mut any_of = vec![on()?.equals(value)];
            if let Ok(value) = serde_json::from_str::<Value>(value) {
                any_of.push(on()?.equals(value));
            }
            any_of
        } else {
            return Err(invalid());
        };
        Ok(Self { argument, any_of })
    }
}

impl Condition {
    fn is_met(&self, arguments: &Value) -> bool {
        // A condition that fails is not met.
        self.any_of.iter().any(|one| one.evaluate(arguments, Effect::Allow) == Ok(true))
    }
}

impl GrantScope {
    /// A scope made from a call: conditions, and the call's other arguments as they are, or any.
    ///
    /// # Errors
    /// [`InvalidConditionError`].
    pub fn new(
        arguments: &Value,
        conditions: Vec<String>,
        any: bool,
    ) -> Result<Self, InvalidConditionError> {
        let parsed: Vec<Condition> =
            conditions.iter().map(|condition| condition.parse()).collect::<Result<_, _>>()?;
        let mut same = match arguments {
            Value::Object(entries) if !any => entries.clone(),
            _ => Map::new(),
        };
        same.retain(|name, _| parsed.iter().all(|condition| condition.argument != *name));
        Ok(Self { any, same, free: BTreeSet::new(), conditions })
    }

    /// The same, where arguments may have any value, or be absent.
    ///
    /// # Errors
    /// [`InvalidConditionError`].
    pub(crate) fn freeing(
        arguments: &Value,
        free: BTreeSet<String>,
        conditions: Vec<String>,
        any: bool,
    ) -> Result<Self, InvalidConditionError> {
        let mut scope = Self::new(arguments, conditions, any)?;
        scope.same.retain(|name, _| !free.contains(name));
        Ok(Self { free, ..scope })
    }

    /// The first condition that arguments do not meet, if there is one.
    pub(crate) fn unmet(&self, arguments: &Value) -> Option<Arc<str>> {
        let unmet = |text: &&String| {
            text.parse::<Condition>().is_ok_and(|condition| condition.is_met(arguments)).eq(&false)
        };
        self.conditions.iter().find(unmet).map(|text| text.as_str().into())
    }

    /// Whether a call with these arguments is permitted.
    pub fn permits(&self, arguments: &Value) -> bool {
        let Value::Object(entries) = arguments else { return false };
        let conditions = self.conditions.iter().map(|text| text.parse::<Condition>());
        let Ok(conditions) = conditions.collect::<Result<Vec<_>, _>>() else { return false };
        let is_free = |name: &str| {
            self.free.contains(name)
                || conditions.iter().any(|condition| condition.argument == name)
        };
        let others = || entries.iter().filter(|(name, _)| !is_free(name));
        let is_same = self.any
            || others().count() == self.same.len()
                && others().all(|(name, value)| self.same.get(name) == Some(value));
        is_same && conditions.iter().all(|condition| condition.is_met(arguments))
    }
}

/// The scope in words, such as `amount<=100, order_id=1042`.
impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = self.same.iter().map(|(name, value)| format!("{name}={value}"));
        let free = self.free.iter().map(|name| format!("any {name}"));
        let mut parts: Vec<_> = self.conditions.iter().cloned().chain(free).chain(same).collect();
        if self.any {
            parts.push("any other arguments".to_owned());
        }
        match parts.as_slice() {
            [] => f.write_str("without arguments"),
            parts => f.write_str(&parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope(conditions: &[&str], any: bool) -> GrantScope {
        let call = json!({ "to": "ann", "amount": 50, "tags": ["a"] });
        let conditions = conditions.iter().map(|&condition| condition.to_owned()).collect();
        GrantScope::new(&call, conditions, any).unwrap()
    }

    #[test]
    fn arguments_without_a_condition_must_be_the_same() {
        let small = scope(&["amount<=100"], false);
        assert_eq!(small.to_string(), r#"amount<=100, to="ann", tags=["a"]"#);
        for (call, permitted) in [
            (json!({ "to": "ann", "amount": 100, "tags": ["a"] }), true),
            (json!({ "amount": 1, "tags": ["a"], "to": "ann" }), true),
            (json!({ "to": "ann", "amount": 100.01, "tags": ["a"] }), false),
            (json!({ "to": "ann", "amount": "5", "tags": ["a"] }), false),
            (json!({ "to": "bob", "amount": 5, "tags": ["a"] }), false),
            (json!({ "to": "ann", "amount": 5, "tags": ["a", "b"] }), false),
            (json!({ "to": "ann", "amount": 5 }), false),
            (json!({ "to": "ann", "tags": ["a"] }), false),
            (json!({ "to": "ann", "amount": 5, "tags": ["a"], "more": 1 }), false),
            (json!([1]), false),
        ] {
            assert_eq!(small.permits(&call), permitted, "{call}");
        }
    }

    #[test]
    fn freed_arguments_may_differ_or_be_absent() {
        let call = json!({ "to": "ann", "amount": 50 });
        let scope = GrantScope::freeing(&call, ["amount".to_owned()].into(), Vec::new(), false);
        let scope = scope.unwrap();
        assert_eq!(scope.to_string(), r#"any amount, to="ann""#);
        assert!(scope.permits(&json!({ "to": "ann", "amount": 1 })));
        assert!(scope.permits(&json!({ "to": "ann" })));
        assert!(!scope.permits(&json!({ "to": "bob", "amount": 1 })));
        assert!(!scope.permits(&json!({ "to": "ann", "amount": 1, "more": 1 })));
    }

    #[test]
    fn any_other_arguments_are_permitted_only_on_request() {
        let any = scope(&["to^=a", "/tags/*=a"], true);
        assert!(any.permits(&json!({ "to": "abe", "amount": 1e9, "tags": ["a"], "x": 1 })));
        assert!(!any.permits(&json!({ "to": "abe", "tags": ["a", "b"] })));
        assert!(!any.permits(&json!({ "to": "bob", "tags": ["a"] })));
        assert!(scope(&[], true).permits(&json!({})));
        assert!(!scope(&[], false).permits(&json!({})));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["amount", "=5", "amount<x", "a<=", "/~2=1", "amount^5"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
        let text = scope(&["amount=50"], false);
        assert_eq!(text.unmet(&json!({ "amount": 51 })).as_deref(), Some("amount=50"));
        assert_eq!(text.unmet(&json!({ "amount": "50" })), None);
    }
}
