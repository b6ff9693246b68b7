//! The bounds within which a person permits a tool for the session.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use toolcrib_core::{Digest, StoredArguments};

use crate::grant::GrantScope;

/// The bounds that are proposed, and the largest that a person may set.
const CALLS: u32 = 20;
const MOST_CALLS: u32 = 10_000;
const TIME: Duration = Duration::from_hours(1);
const LONGEST: Duration = Duration::from_hours(24);

/// Bounds before they are accepted.
pub(super) struct Bounds {
    /// The arguments of the first call.
    arguments: Map<String, Value>,
    /// The arguments that may differ; all may if `any`.
    free: BTreeSet<String>,
    any: bool,
    conditions: Vec<String>,
    pub(super) calls: u32,
    pub(super) time: Duration,
}

impl Bounds {
    /// The bounds of like calls: arguments that differ between them are free, all others are fixed.
    pub(super) fn of(calls: &[&StoredArguments]) -> Self {
        let object = |call: &&StoredArguments| call.value.as_object().cloned().unwrap_or_default();
        let mut calls = calls.iter().map(object);
        let arguments = calls.next().unwrap_or_default();
        let mut free = BTreeSet::new();
        for call in calls {
            let names = arguments.keys().chain(call.keys());
            free.extend(names.filter(|name| arguments.get(*name) != call.get(*name)).cloned());
        }
        let conditions = Vec::new();
        Self { arguments, free, any: false, conditions, calls: CALLS, time: TIME }
    }

    /// The arguments that are fixed.
    pub(super) fn fixed(&self) -> StoredArguments {
        let fixed = self.scope().map(|scope| scope.same).unwrap_or_default();
        StoredArguments::new(Value::Object(fixed), Vec::new())
    }

    /// The arguments that may differ, in words.
    pub(super) fn differing(&self) -> String {
        let free = self.free.iter().cloned();
        let any = self.any.then(|| "all others".to_owned());
        let parts: Vec<_> = self.conditions.iter().cloned().chain(free).chain(any).collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }

    /// Changes a bound: `20 calls`, `30m`, the name of an argument, a condition on one, or `*`.
    ///
    /// # Errors
    /// A text that says how to write a bound.
    pub(super) fn change(&mut self, text: &str) -> Result<(), String> {
        for word in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty()) {
            self.change_one(word)?;
        }
        Ok(())
    }

    fn change_one(&mut self, word: &str) -> Result<(), String> {
        if word == "*" {
            self.any = true;
        } else if word == "calls" || word == "call" {
            // The unit of the number before it.
        } else if let Ok(calls) = word.parse::<u32>() {
            self.calls = calls.clamp(1, MOST_CALLS);
        } else if self.arguments.contains_key(word) {
            self.free.insert(word.to_owned());
        } else if GrantScope::new(&Value::Null, vec![word.to_owned()], false).is_ok() {
            // It bounds the argument, which then differs within it only.
            let name = word.split(['=', '<', '>', '^']).next().unwrap_or_default();
            self.free.remove(name);
            self.conditions.push(word.to_owned());
        } else if let Ok(time) = humantime::parse_duration(word) {
            self.time = time.clamp(Duration::from_secs(1), LONGEST);
        } else {
            let known: Vec<_> = self.arguments.keys().map(String::as_str).collect();
            return Err(format!(
                "`{word}` is neither an argument ({}), a condition such as amount<=100, a number of \
                 calls, nor a time such as 30m",
                if known.is_empty() { "there is none".to_owned() } else { known.join(", ") }
            ));
        }
        Ok(())
    }

    fn scope(&self) -> Option<GrantScope> {
        let arguments = Value::Object(self.arguments.clone());
        let (free, conditions) = (self.free.clone(), self.conditions.clone());
        GrantScope::freeing(&arguments, free, conditions, self.any).ok()
    }

    /// The permission, from now on; `None` if a shown call is not within its bounds.
    pub(super) fn accepted(self, of: Digest, calls: &[&StoredArguments]) -> Option<Permission> {
        let scope = self.scope()?;
        let is_within = calls.iter().all(|call| scope.permits(&call.value));
        let until = Instant::now().checked_add(self.time)?;
        is_within.then_some(Permission { of, scope, left: self.calls, until })
    }
}

/// A permission of the person for the session.
pub(super) struct Permission {
    /// Tool, identity and conversation.
    of: Digest,
    scope: GrantScope,
    left: u32,
    until: Instant,
}

impl Permission {
    /// Uses it for a call; returns what is left of it, unless it does not permit the call. A call with
    /// a secret is always shown.
    pub(super) fn used_by(
        &mut self,
        of: Digest,
        arguments: &StoredArguments,
    ) -> Option<(u32, Duration)> {
        let time = self.until.checked_duration_since(Instant::now()).filter(|_| self.left > 0)?;
        if self.of != of || !arguments.secrets.is_empty() || !self.scope.permits(&arguments.value) {
            return None;
        }
        self.left -= 1;
        Some((self.left, time))
    }

    /// Whether it can permit a further call.
    pub(super) fn is_open(&self) -> bool {
        self.left > 0 && self.until > Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: Value) -> StoredArguments {
        StoredArguments::new(arguments, Vec::new())
    }

    #[test]
    fn what_differs_between_the_calls_is_free_and_the_rest_is_fixed() {
        let calls = [call(json!({ "to": "ann", "n": 1 })), call(json!({ "to": "ann", "n": 2 }))];
        let calls: Vec<_> = calls.iter().collect();
        let bounds = Bounds::of(&calls);
        assert_eq!((bounds.differing(), bounds.fixed().value), ("n".into(), json!({"to": "ann"})));
        let of = Digest::of("tool");
        let mut permission = bounds.accepted(of, &calls).unwrap();
        for left in (0..20).rev() {
            let used = permission.used_by(of, &call(json!({ "to": "ann", "n": left })));
            assert_eq!(used.map(|(left, _)| left), Some(left));
        }
        assert!(permission.used_by(of, &call(json!({ "to": "ann", "n": 1 }))).is_none());
        assert!(!permission.is_open());
    }

    #[test]
    fn a_person_changes_arguments_count_and_time() {
        let first = call(json!({ "to": "ann", "amount": 5 }));
        let mut bounds = Bounds::of(&[&first]);
        assert_eq!(bounds.differing(), "nothing");
        bounds.change("amount, amount<=100, 3 calls 30m").unwrap();
        assert_eq!((bounds.calls, bounds.time), (3, Duration::from_mins(30)));
        assert_eq!(bounds.differing(), "amount<=100");
        assert!(bounds.change("amnt").unwrap_err().contains("`amnt` is neither an argument"));
        let (of, other) = (Digest::of("tool"), Digest::of("other"));
        let mut permission = bounds.accepted(of, &[&first]).unwrap();
        let within = call(json!({ "to": "ann", "amount": 100 }));
        assert!(permission.used_by(other, &within).is_none());
        assert!(permission.used_by(of, &call(json!({ "to": "bob", "amount": 1 }))).is_none());
        assert!(permission.used_by(of, &call(json!({ "to": "ann", "amount": 101 }))).is_none());
        assert!(permission.used_by(of, &within).is_some());
    }

    #[test]
    fn bounds_that_do_not_permit_the_shown_call_are_not_accepted() {
        let first = call(json!({ "amount": 500 }));
        let mut bounds = Bounds::of(&[&first]);
        bounds.change("amount<=100").unwrap();
        assert!(bounds.accepted(Digest::of("tool"), &[&first]).is_none());
    }
}
