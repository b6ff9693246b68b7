//! Conditions on what a call passes.

use std::{
    cmp::Ordering,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use super::Effect;
use crate::panic_text::panic_text;

/// The longest pattern of [`ArgumentMatch::matches`], in bytes.
pub const MAX_PATTERN: usize = 1_000;

/// The longest text that a pattern is searched for in, in bytes. On a longer one the rule fails, and
/// a rule that fails denies.
pub const MAX_SEARCHED: usize = 64 * 1024;

/// How large a compiled pattern may be, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// A condition on what a call passes, after validation. Made with [`at`](Self::at), to be given one
/// or more tests, all of which must hold on the value there; or with [`by`](Self::by), in code.
///
/// **Where there is nothing at the pointer, no test holds** but [`exists(false)`](Self::exists).
/// Whoever denies a value must therefore say whether leaving it out is denied too: that is a rule of
/// its own, with `exists(false)`.
///
/// **A list** is looked into, and the reading is the careful one. A rule that denies, asks or halts
/// holds when *some* item fits; a rule that allows only when there are items and *each* fits. An item
/// fits when all tests hold on it. `equals` and `one_of` may also fit the list as a whole. In a
/// pointer, `*` as a step stands for the items of a list: `/files/*/path`.
///
/// Texts are compared as they stand, letter case included; a path is a text here, so that
/// `/tmp/../etc` does not start with `/etc`. Numbers are compared by value: `1` equals `1.0`. A test
/// for another type than the value's does not hold. `null` is a value that is there.
#[derive(Debug, Clone)]
pub struct ArgumentMatch(Kind);

#[derive(Debug, Clone)]
enum Kind {
    At { pointer: Arc<str>, steps: Arc<[String]>, tests: Vec<Test> },
    By { name: Arc<str>, predicate: Predicate },
}

/// What is asked of one value.
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

type Judgement = dyn Fn(&Value) -> Result<bool, String> + Send + Sync;

#[derive(Clone)]
struct Predicate(Arc<Judgement>);

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate(..)")
    }
}

/// A condition on arguments that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidArgumentMatch {
    /// Not a JSON pointer.
    #[error("`{0}` is no JSON pointer; write `/` and the argument's name, such as `/path`")]
    Pointer(String),
    /// Not a regular expression.
    #[error("`{pattern}` is not a pattern that can be searched for: {problem}")]
    Pattern {
        /// As it was written, shortened.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// More than a pattern may be.
    #[error("the pattern has {bytes} bytes; write one of at most {MAX_PATTERN}")]
    PatternTooLong {
        /// How many it has.
        bytes: usize,
    },
}

impl ArgumentMatch {
    /// A condition on the value at a JSON pointer (RFC 6901), such as `/path` or `/files/*/path`; an
    /// empty one is all that is passed. Without a test it holds where there is a value.
    ///
    /// # Errors
    /// [`InvalidArgumentMatch`] when it is no pointer.
    pub fn at(pointer: impl Into<Arc<str>>) -> Result<Self, InvalidArgumentMatch> {
        let pointer = pointer.into();
        let invalid = || InvalidArgumentMatch::Pointer(pointer.escape_debug().to_string());
        let mut steps = Vec::new();
        if !pointer.is_empty() {
            let inside = pointer.strip_prefix('/').ok_or_else(invalid)?;
            for step in inside.split('/') {
                steps.push(unescaped(step).ok_or_else(invalid)?);
            }
        }
        Ok(Self(Kind::At { pointer, steps: steps.into(), tests: Vec::new() }))
    }

    /// A condition in code: it sees all that is passed. One that fails or panics denies the call, and
    /// its words go to the operator. It is asked on the run's time and must not block.
    pub fn by(
        name: impl Into<Arc<str>>,
        predicate: impl Fn(&Value) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::By { name: name.into(), predicate: Predicate(Arc::new(predicate)) })
    }

    /// The value is this.
    #[must_use]
    pub fn equals(self, value: impl Into<Value>) -> Self {
        self.and(Test::Equals(value.into()))
    }

    /// The value is one of these.
    #[must_use]
    pub fn one_of<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        self.and(Test::OneOf(values.into_iter().map(Into::into).collect()))
    }

    /// The value is a text in which this regular expression is found, anywhere unless it says `^` and
    /// `$`. The search takes time that grows with the text and no faster; no look-around, no
    /// back-references.
    ///
    /// # Errors
    /// [`InvalidArgumentMatch`] when it is none, is longer than [`MAX_PATTERN`], or would take more
    /// than 1 MiB compiled.
    pub fn matches(self, pattern: &str) -> Result<Self, InvalidArgumentMatch> {
        if pattern.len() > MAX_PATTERN {
            return Err(InvalidArgumentMatch::PatternTooLong { bytes: pattern.len() });
        }
        let regex = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build();
        let regex = regex.map_err(|error| InvalidArgumentMatch::Pattern {
            pattern: pattern.chars().take(60).collect(),
            problem: match error {
                regex::Error::CompiledTooBig(_) => "compiled, it is larger than 1 MiB".to_owned(),
                error => last_line(&error.to_string()),
            },
        })?;
        Ok(self.and(Test::Matches(regex)))
    }

    /// The value is a text that begins so.
    #[must_use]
    pub fn starts_with(self, start: impl Into<Arc<str>>) -> Self {
        self.and(Test::StartsWith(start.into()))
    }

    /// There is a value, or there is none.
    #[must_use]
    pub fn exists(self, exists: bool) -> Self {
        self.and(Test::Exists(exists))
    }

    /// The value is a number below this one.
    #[must_use]
    pub fn less_than(self, number: impl Into<Number>) -> Self {
        self.and(Test::LessThan(number.into()))
    }

    /// The value is a number above this one.
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

    /// What it is called in messages: its pointer, or the name of the predicate.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::At { pointer, .. } => pointer,
            Kind::By { name, .. } => name,
        }
    }

    /// Whether it holds on what a call passes, as a rule of this effect reads it.
    ///
    /// # Errors
    /// Why that cannot be told, for the operator.
    pub fn holds(&self, arguments: &Value, effect: Effect) -> Result<bool, String> {
        match &self.0 {
            Kind::At { steps, tests, .. } => {
                Reading { tests, each: effect == Effect::Allow }.of(Some(arguments), steps)
            }
            Kind::By { predicate, .. } => catch_unwind(AssertUnwindSafe(|| predicate.0(arguments)))
                .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic)))),
        }
    }
}

/// A step of a pointer as the name that it stands for.
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

/// What a parser says of a pattern ends with the problem; above it the pattern stands once more.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// How lists are read.
struct Reading<'a> {
    tests: &'a [Test],
    /// Whether each item must fit, not merely some.
    each: bool,
}

impl Reading<'_> {
    /// Follows a pointer to the values that it stands for.
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

    /// Whether the tests hold where there is no value.
    fn nothing_fits(&self) -> bool {
        !self.tests.is_empty() && self.tests.iter().all(|test| matches!(test, Test::Exists(false)))
    }

    /// Whether the tests hold on a value, or on the items of a list.
    fn fits(&self, value: &Value) -> Result<bool, String> {
        let mut all = true;
        for test in self.tests {
            // None is left out: one that fails must not be hidden by one that does not hold.
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

/// A step as a position in a list: digits without a leading zero.
fn position(step: &str) -> Option<usize> {
    let is_plain = step == "0" || !step.starts_with(['0', '+']);
    if is_plain { step.parse().ok() } else { None }
}

/// Whether two values are the same, numbers by value.
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

/// Whole numbers exactly, others as floating point.
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
