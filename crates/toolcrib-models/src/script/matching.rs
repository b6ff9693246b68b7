//! Matches a rule against a request, with the reason for a mismatch.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Number, Value};
use toolcrib_config::suggest;

use super::{
    rule::{Check, Condition, ResultCondition, Rule},
    rule_input::{LastResult, RuleInput, shown},
    template::Captures,
};

impl Rule {
    /// The captures when all conditions are true, otherwise the first false condition, in words.
    pub(super) fn matches(&self, input: &RuleInput<'_>) -> Result<Captures, String> {
        let captures = self.captures(input)?;
        self.differs(&captures)?;
        if self.step.is_some_and(|step| step != input.step) {
            return Err(format!("`step`: it is step {}", input.step));
        }
        each(&self.offered, |tool| input.is_offered(tool), "offered", "is not offered")?;
        each(&self.not_offered, |tool| !input.is_offered(tool), "not_offered", "is offered")?;
        let has_result = |tool: &str| input.results.contains_key(tool);
        each(&self.called, has_result, "called", "has no result since the last user message")?;
        each(&self.not_called, |tool| !has_result(tool), "not_called", "has a result already")?;
        match self.tools_allowed {
            Some(expected) if expected != input.tools_allowed() => {
                return Err(format!("`tools_allowed`: it is {}", input.tools_allowed()));
            }
            _ => {}
        }
        for (position, condition) in self.when.iter().enumerate() {
            condition.holds(input).map_err(|why| format!("`when[{position}]`: {why}"))?;
        }
        Ok(captures)
    }

    fn captures(&self, input: &RuleInput<'_>) -> Result<Captures, String> {
        let mut captures = Captures::new();
        for (position, pattern) in self.user.iter().enumerate() {
            let Some(found) = pattern.captures(input.user) else {
                let which =
                    if self.user.len() > 1 { format!("[{position}]") } else { String::new() };
                return Err(format!(
                    "`user{which}`: the pattern is not found in the last user text"
                ));
            };
            let named = pattern.capture_names().flatten();
            captures.extend(
                named.filter_map(|name| {
                    Some((name.to_owned(), found.name(name)?.as_str().to_owned()))
                }),
            );
        }
        Ok(captures)
    }

    fn differs(&self, captures: &Captures) -> Result<(), String> {
        let mut texts = captures
            .iter()
            .filter(|(name, _)| self.differ.iter().any(|one| **one == **name))
            .map(|(_, text)| text);
        let first = texts.next();
        if self.differ.is_empty() || texts.any(|text| Some(text) != first) {
            return Ok(());
        }
        let names = suggest::quoted(self.differ.iter().map(|name| &**name));
        Err(format!("`differ`: {names} do not contain different texts"))
    }
}

fn each(
    tools: &[Arc<str>],
    holds: impl Fn(&str) -> bool,
    key: &str,
    otherwise: &str,
) -> Result<(), String> {
    match tools.iter().find(|tool| !holds(tool)) {
        None => Ok(()),
        Some(tool) => Err(format!("`{key}`: `{}` {otherwise}", tool.escape_debug())),
    }
}

impl Condition {
    fn holds(&self, input: &RuleInput<'_>) -> Result<(), String> {
        match self {
            Self::Result(condition) => condition.holds(input),
            Self::AnyError if input.first_error().is_some() => Ok(()),
            Self::AnyError => {
                Err("no tool's last result since the last user message is an error".to_owned())
            }
        }
    }
}

impl ResultCondition {
    fn holds(&self, input: &RuleInput<'_>) -> Result<(), String> {
        let Some(result) = input.results.get(self.tool.as_str()) else {
            let tool = self.tool.escape_debug();
            return Err(format!("`{tool}` has no result since the last user message"));
        };
        let holds = match &self.check {
            Check::IsError(expected) => result.is_error == *expected,
            Check::Exists(expected) => self.data(result).is_some() == *expected,
            Check::Equals(value) => self.data(result).is_some_and(|found| same(found, value)),
            Check::Matches(pattern) => self.text(result).is_some_and(|t| pattern.is_match(&t)),
            Check::Contains(part) => self.text(result).is_some_and(|t| t.contains(part)),
            Check::MinItems(least) => self.items(result).is_some_and(|items| items >= *least),
            Check::MaxItems(most) => self.items(result).is_some_and(|items| items <= *most),
        };
        if holds { Ok(()) } else { Err(self.mismatch(result)) }
    }

    fn mismatch(&self, result: &LastResult) -> String {
        let tool = self.tool.escape_debug();
        let subject = match &self.pointer {
            Some(pointer) => format!("`{}` in the last result of `{tool}`", pointer.escape_debug()),
            None => format!("the last result of `{tool}`"),
        };
        let found = match (&self.pointer, self.data(result)) {
            (None, _) => shown(&result.text),
            (_, None) => "missing".to_owned(),
            (_, Some(Value::String(text))) => shown(text),
            (_, Some(list @ (Value::Array(_) | Value::Object(_)))) => shown(&list.to_string()),
            (_, Some(scalar)) => scalar.to_string(),
        };
        let expected = match &self.check {
            Check::IsError(true) => "an error".to_owned(),
            Check::IsError(false) => "no error".to_owned(),
            Check::Exists(true) => "something there".to_owned(),
            Check::Exists(false) => "nothing there".to_owned(),
            Check::Equals(value) => value.to_string(),
            Check::Matches(pattern) => format!("a match of {:?}", pattern.as_str()),
            Check::Contains(part) => format!("{part:?} in it"),
            Check::MinItems(least) => format!("{least} items or more"),
            Check::MaxItems(most) => format!("{most} items or less"),
        };
        format!("{subject} is {found}; expected {expected}")
    }

    fn data<'s>(&self, result: &'s LastResult) -> Option<&'s Value> {
        match &self.pointer {
            Some(pointer) => result.data.pointer(pointer),
            None => Some(&result.data),
        }
    }

    /// The subject as text: without a pointer the result's own text, a string unchanged, other
    /// values as compact JSON.
    fn text<'s>(&self, result: &'s LastResult) -> Option<Cow<'s, str>> {
        match (&self.pointer, self.data(result)?) {
            (None, _) => Some(Cow::Borrowed(&result.text)),
            (_, Value::String(text)) => Some(Cow::Borrowed(text)),
            (_, other) => Some(Cow::Owned(other.to_string())),
        }
    }

    fn items(&self, result: &LastResult) -> Option<u64> {
        let items = match self.data(result)? {
            Value::Array(items) => items.len(),
            Value::String(text) => text.chars().count(),
            _ => return None,
        };
        u64::try_from(items).ok()
    }
}

/// Equality in which 25 and 25.0 are one number, because a database or a tool may write either.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    if a.is_f64() || b.is_f64() { a.as_f64() == b.as_f64() } else { a == b }
}
