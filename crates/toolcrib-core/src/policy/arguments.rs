//! Conditions on a call's arguments.

use std::{
    cmp::Ordering,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use super::Effect;
use crate::internal::panic_text::panic_text;

/// Maximum length of a pattern of [`ArgumentMatch::matches`], in bytes.
pub(crate) const MAX_PATTERN: usize = 1_000;

/// Maximum length of a text that a pattern is matched against, in bytes. On a longer one the rule
/// fails, and a failed rule denies.
pub(crate) const MAX_SEARCHED: usize = 64 * 1024;

/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// A condition on a call's validated arguments. Made with [`at`](Self::at) and one or more tests,
/// all of which must match the value there, or with [`by`](Self::by), in code.
///
/// **If the pointer has no value, no test matches** except [`exists(false)`](Self::exists).
/// To deny a missing value as well as certain values, add a separate rule with `exists(false)`.
///
/// **A list** is searched conservatively. A rule that denies, asks or halts matches if *some* item
/// matches; a rule that allows matches only if there are items and *each* matches. An item matches
/// if all tests match it. `equals` and `one_of` may also match the list as a whole. In a pointer,
/// the segment `*` means the items of a list: `/files/*/path`.
///
/// Texts are compared exactly, including letter case; a path is a text here, so that `/tmp/../etc`
/// does not start with `/etc`. Numbers are compared by value: `1` equals `1.0`. A test for a type
/// other than the value's does not match. `null` counts as an existing value.
#[derive(Debug, Clone)]
pub struct ArgumentMatch(Kind);

#[derive(Debug, Clone)]
enum Kind {
    At { pointer: Arc<str>, steps: Arc<[String]>, tests: Vec<Test> },
    By { name: Arc<str>, predicate: Predicate },
}

/// A test of one value.
#[derive(Debug, Clone)]
enum Test {
    Equals(Value),
    OneOf(Vec<Value>),
    Matches(Regex),
    StartsWith(Arc<str>),
    Exists(bool),
    LessThan(Number),
    GreaterThan(Number),
}

type PredicateFn = dyn Fn(&Value) -> Result<bool, String> + Send + Sync;

#[derive(Clone)]
struct Predicate(Arc<PredicateFn>);

crate::internal::debug_fields!(Predicate);

/// An invalid condition on arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidArgumentMatchError {
    /// Not a JSON pointer.
    #[error(
        "`{0}` is not a valid JSON pointer; write `/` and the argument's name, such as `/path`"
    )]
    Pointer(String),
    /// Not a regular expression.
    #[error("`{pattern}` is not a valid regular expression: {problem}")]
    Pattern {
        /// The pattern as written, shortened.
        pattern: String,
        /// The problem.
        problem: String,
    },
    /// The pattern is too long.
    #[error("the pattern has {bytes} bytes; the limit is {MAX_PATTERN}")]
    PatternTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

impl ArgumentMatch {
    /// A condition on the value at a JSON pointer (RFC 6901), such as `/path` or `/files/*/path`;
    /// an empty pointer means all arguments. Without a test it matches any existing value.
    ///
    /// # Errors
    /// [`InvalidArgumentMatchError`] if the pointer is invalid.
    pub fn at(pointer: impl Into<Arc<str>>) -> Result<Self, InvalidArgumentMatchError> {
        let pointer = pointer.into();
        let invalid = || InvalidArgumentMatchError::Pointer(pointer.escape_debug().to_string());
        let mut steps = Vec::new();
        if !pointer.is_empty() {
            let inside = pointer.strip_prefix('/').ok_or_else(invalid)?;
            for step in inside.split('/') {
                steps.push(unescaped(step).ok_or_else(invalid)?);
            }
        }
        Ok(Self(Kind::At { pointer, steps: steps.into(), tests: Vec::new() }))
    }

    /// A condition in code on all arguments. If it fails or panics, the call is denied, and its
    /// message goes to the operator. It runs on the run's time and must not block.
    pub fn by(
        name: impl Into<Arc<str>>,
        predicate: impl Fn(&Value) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::By { name: name.into(), predicate: Predicate(Arc::new(predicate)) })
    }

    /// The value equals this one.
    #[must_use]
    pub fn equals(self, value: impl Into<Value>) -> Self {
        self.and(Test::Equals(value.into()))
    }

    /// The value is one of these.
    #[must_use]
    pub fn one_of<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        self.and(Test::OneOf(values.into_iter().map(Into::into).collect()))
    }

    /// The value is a text that contains a match of this regular expression; anchor with `^` and
    /// `$`. Matching takes linear time; look-around and back-references are not supported.
    ///
    /// # Errors
    /// [`InvalidArgumentMatchError`] if the expression is invalid, is longer than 1,000 bytes,
    /// or exceeds 1 MiB compiled.
    pub fn matches(self, pattern: &str) -> Result<Self, InvalidArgumentMatchError> {
        if pattern.len() > MAX_PATTERN {
            return Err(InvalidArgumentMatchError::PatternTooLong { bytes: pattern.len() });
        }
        let regex = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build();
        let regex = regex.map_err(|error| InvalidArgumentMatchError::Pattern {
            pattern: pattern.chars().take(60).collect(),
            problem: match error {
                regex::Error::CompiledTooBig(_) => "it exceeds 1 MiB compiled".to_owned(),
                error => last_line(&error.to_string()),
            },
        })?;
        Ok(self.and(Test::Matches(regex)))
    }

    /// The value is a text with this prefix.
    #[must_use]
    pub fn starts_with(self, start: impl Into<Arc<str>>) -> Self {
        self.and(Test::StartsWith(start.into()))
    }

    /// A value exists, or does not.
    #[must_use]
    pub fn exists(self, exists: bool) -> Self {
        self.and(Test::Exists(exists))
    }

    /// The value is a number less than this one.
    #[must_use]
    pub fn less_than(self, number: impl Into<Number>) -> Self {
        self.and(Test::LessThan(number.into()))
    }

    /// The value is a number greater than this one.
    #[must_use]
    pub fn greater_than(self, number: impl Into<Number>) -> Self {
        self.and(Test::GreaterThan(number.into()))
    }

    fn and(mut self, test: Test) -> Self {
        if let Kind::At { tests, .. } = &mut self.0 {
            tests.push(test);
        }
        self
    }

    /// The name in messages: the pointer, or the name of the predicate.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::At { pointer, .. } => pointer,
            Kind::By { name, .. } => name,
        }
    }

    /// Whether it matches a call's arguments, evaluated for a rule with this effect.
    ///
    /// # Errors
    /// The reason, for the operator, why it cannot be evaluated.
    pub fn evaluate(&self, arguments: &Value, effect: Effect) -> Result<bool, String> {
        match &self.0 {
            Kind::At { steps, tests, .. } => {
                Evaluation { tests, each: effect == Effect::Allow }.of(Some(arguments), steps)
            }
            Kind::By { predicate, .. } => catch_unwind(AssertUnwindSafe(|| predicate.0(arguments)))
                .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic)))),
        }
    }
}

/// Unescapes a segment of a pointer.
fn unescaped(step: &str) -> Option<String> {
    let mut name = String::with_capacity(step.len());
    let mut chars = step.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            c => c,
        });
    }
    Some(name)
}

/// A parser's message ends with the problem; the lines above repeat the pattern.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// How lists are evaluated.
struct Evaluation<'a> {
    tests: &'a [Test],
    /// Whether each item must match, not merely some.
    each: bool,
}

impl Evaluation<'_> {
    /// Resolves a pointer to its values and tests them.
    fn of(&self, value: Option<&Value>, steps: &[String]) -> Result<bool, String> {
        let (Some(value), Some((step, rest))) = (value, steps.split_first()) else {
            return value.map_or_else(|| Ok(self.nothing_fits()), |value| self.fits(value));
        };
        match value {
            Value::Array(items) if step == "*" => {
                self.some_or_each(items, |item| self.of(Some(item), rest))
            }
            Value::Array(items) => self.of(position(step).and_then(|at| items.get(at)), rest),
            Value::Object(entries) => self.of(entries.get(step), rest),
            _ => self.of(None, rest),
        }
    }

    /// Whether the tests match a missing value.
    fn nothing_fits(&self) -> bool {
        !self.tests.is_empty() && self.tests.iter().all(|test| matches!(test, Test::Exists(false)))
    }

    /// Whether the tests match a value, or the items of a list.
    fn fits(&self, value: &Value) -> Result<bool, String> {
        let mut all = true;
        for test in self.tests {
            // No short-circuit: a test that fails must not be hidden by one that does not match.
            all &= test.holds(value)?;
        }
        match value {
            Value::Array(items) if !all => self.some_or_each(items, |item| self.fits(item)),
            _ => Ok(all),
        }
    }

    fn some_or_each(
        &self,
        items: &[Value],
        fits: impl Fn(&Value) -> Result<bool, String>,
    ) -> Result<bool, String> {
        let (mut some, mut each) = (false, true);
        for item in items {
            let fits = fits(item)?;
            some |= fits;
            each &= fits;
        }
        Ok(some && (each || !self.each))
    }
}

impl Test {
    fn holds(&self, value: &Value) -> Result<bool, String> {
        Ok(match self {
            Self::Equals(wanted) => same(value, wanted),
            Self::OneOf(wanted) => wanted.iter().any(|wanted| same(value, wanted)),
            Self::Matches(regex) => match value.as_str() {
                Some(text) if text.len() > MAX_SEARCHED => {
                    return Err(format!(
                        "a text of {} bytes is too long to be searched (at most {MAX_SEARCHED})",
                        text.len()
                    ));
                }
                Some(text) => regex.is_match(text),
                None => false,
            },
            Self::StartsWith(start) => {
                value.as_str().is_some_and(|text| text.starts_with(&**start))
            }
            Self::Exists(exists) => *exists,
            Self::LessThan(bound) => compared(value, bound) == Some(Ordering::Less),
            Self::GreaterThan(bound) => compared(value, bound) == Some(Ordering::Greater),
        })
    }
}

/// A segment as a list index: digits without a leading zero.
fn position(step: &str) -> Option<usize> {
    let is_plain = step == "0" || !step.starts_with(['0', '+']);
    if is_plain { step.parse().ok() } else { None }
}

/// Whether two values are equal, numbers by value.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => order(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

fn compared(value: &Value, bound: &Number) -> Option<Ordering> {
    match value {
        Value::Number(number) => order(number, bound),
        _ => None,
    }
}

/// Integers exactly, others as floating point.
fn order(one: &Number, other: &Number) -> Option<Ordering> {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests;
