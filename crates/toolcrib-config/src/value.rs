//! Conversions of a single value.

use std::{fmt::Display, ops::RangeBounds, sync::Arc, time::Duration};

use serde_json::Value as Json;
use toml::{
    Spanned,
    de::{DeFloat, DeInteger, DeValue},
};

use crate::{
    diagnostic::{Diagnostic, Help},
    document::Document,
    problems::Problems,
    range::in_words,
    size::{self, Size},
    spot::{Located, Spot},
    suggest,
    table::Table,
};

/// The maximum duration: a day.
pub const MAX_DURATION: Duration = Duration::from_hours(24);

/// The maximum retention time.
const MAX_AGE: Duration = Duration::from_hours(365 * 24);

/// A value in a document. Each conversion reports a failure and returns `None`.
#[derive(Debug, Clone)]
pub struct Value<'a> {
    pub(crate) document: &'a Document,
    pub(crate) problems: &'a Problems,
    pub(crate) value: &'a Spanned<DeValue<'a>>,
    /// The value's key.
    pub(crate) key: String,
}

impl<'a> Value<'a> {
    /// The value's name in messages: its key, and in a list its index, from 0: `statements[1]`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The start of the value.
    pub fn at(&self) -> Spot {
        self.document.spot(self.value.span().start)
    }

    /// The collector of problems.
    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// Records an error about this value.
    pub fn refuse(&self, message: impl Into<String>, help: impl Into<Help>) {
        self.problems.push(Diagnostic::error(&self.at(), message).help(help));
    }

    fn refuse_key(&self, problem: &str, help: impl Into<Help>) {
        self.refuse(format!("{} {problem}", suggest::quoted([&*self.key])), help);
    }

    fn wrong_type(&self, expected: &str, help: impl Into<Help>) {
        let found = type_in_words(self.value.get_ref());
        self.refuse_key(&format!("must be {expected}; this is {found}"), help);
    }

    fn located<T>(&self, value: T) -> Located<T> {
        Located { value, at: self.at() }
    }

    /// A string that is not blank.
    pub fn text(&self) -> Option<Located<Arc<str>>> {
        let text = self.any_text()?;
        if text.value.trim().is_empty() {
            self.refuse_key("is blank", None);
            return None;
        }
        Some(text)
    }

    /// A string, which may be blank or empty.
    pub fn any_text(&self) -> Option<Located<Arc<str>>> {
        let text = self.value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type("a text in quotes", None);
        }
        text.map(|text| self.located(text.into()))
    }

    /// The place of a string's first character, if the file contains it without escapes. Reports
    /// nothing.
    pub fn text_start(&self) -> Option<Spot> {
        self.unescaped().map(|text| text.at)
    }

    /// A text and the place of its first character, where the file contains the text unescaped.
    pub(crate) fn unescaped(&self) -> Option<Located<Arc<str>>> {
        let text = self.value.get_ref().as_str()?;
        let span = self.value.span();
        let inside = self.document.written(span.clone()).find(text)?;
        Some(Located { value: text.into(), at: self.document.spot(span.start + inside) })
    }

    /// The value, if it is `true` or `false`; otherwise a problem is recorded.
    pub fn boolean(&self) -> Option<Located<bool>> {
        let value = self.value.get_ref().as_bool();
        if value.is_none() {
            self.wrong_type("`true` or `false`", None);
        }
        value.map(|value| self.located(value))
    }

    /// An integer within a range.
    pub fn integer<T>(&self, range: impl RangeBounds<T>) -> Option<Located<T>>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        let Some(digits) = self.value.get_ref().as_integer() else {
            self.wrong_type("a whole number", None);
            return None;
        };
        let value = integer(digits).and_then(|value| T::try_from(value).ok());
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            self.refuse_key(&format!("must be {}", in_words(&range)), None);
        }
        value.map(|value| self.located(value))
    }

    /// A finite number within a range.
    pub fn number(&self, range: impl RangeBounds<f64>) -> Option<Located<f64>> {
        let value = match self.value.get_ref() {
            DeValue::Integer(digits) => integer(digits).map(|value| value as f64),
            DeValue::Float(digits) => float(digits),
            _ => {
                self.wrong_type("a number", None);
                return None;
            }
        };
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            self.refuse_key(&format!("must be a finite number {}", in_words(&range)), None);
        }
        value.map(|value| self.located(value))
    }

    /// A duration such as `"30s"` or `"1h 30m"`: the sum of integers with units. Greater than zero
    /// and at most [`MAX_DURATION`].
    pub fn duration(&self) -> Option<Located<Duration>> {
        self.duration_up_to(MAX_DURATION, "a day")
    }

    /// A duration of at most a year, for retention times.
    pub fn age(&self) -> Option<Located<Duration>> {
        self.duration_up_to(MAX_AGE, "a year")
    }

    fn duration_up_to(&self, most: Duration, in_words: &str) -> Option<Located<Duration>> {
        const HELP: &str = "write a duration such as \"500ms\", \"30s\", \"5m\" or \"1h 30m\"";
        let Some(text) = self.value.get_ref().as_str() else {
            self.wrong_type("a duration in quotes, such as \"30s\"", None);
            return None;
        };
        let problem = match humantime::parse_duration(text) {
            Ok(duration) if duration.is_zero() => "is zero; it would end before it began".into(),
            Ok(duration) if duration > most => format!("is longer than {in_words}"),
            Ok(duration) => return Some(self.located(duration)),
            Err(error) => format!("is not a duration: {error}"),
        };
        self.refuse_key(&problem, HELP);
        None
    }

    /// A number of bytes within a range: an integer, or a string such as `"64KiB"`, with one of the
    /// units `KiB`, `MiB` and `GiB`, each 1,024 times the previous.
    pub fn size(&self, range: impl RangeBounds<u64>) -> Option<Located<u64>> {
        const HELP: &str = "write a size such as \"64KiB\", \"1MiB\" or \"2GiB\", or a number of \
                            bytes";
        let value = match self.value.get_ref() {
            DeValue::Integer(digits) => integer(digits).and_then(|bytes| u64::try_from(bytes).ok()),
            DeValue::String(text) => match size::parse(text) {
                Ok(bytes) => bytes,
                Err(problem) => {
                    self.refuse_key(&problem, HELP);
                    return None;
                }
            },
            _ => {
                self.wrong_type("a size in quotes, such as \"64KiB\", or a number of bytes", None);
                return None;
            }
        };
        let value = value.filter(|bytes| range.contains(bytes));
        if value.is_none() {
            let range =
                (range.start_bound().map(|b| Size(*b)), range.end_bound().map(|b| Size(*b)));
            self.refuse_key(&format!("must be {}", in_words(&range)), None);
        }
        value.map(|value| self.located(value))
    }

    /// One of several words, converted to its value.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<Located<T>> {
        let text = self.text()?;
        let known = words.iter().find(|(word, _)| **word == *text.value);
        if known.is_none() {
            let help = suggest::help(&text.value, "values", words.iter().map(|(word, _)| *word));
            self.refuse_key(&format!("cannot be {}", suggest::quoted([&*text.value])), help);
        }
        known.map(|(_, value)| self.located(*value))
    }

    /// Whether it is a string. Reports nothing.
    pub fn is_text(&self) -> bool {
        self.value.get_ref().is_str()
    }

    /// Whether it is a list. Reports nothing.
    pub fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    /// Whether it is a table, in either notation. Reports nothing.
    pub fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// The items of a list.
    pub fn items(&self) -> Option<Vec<Self>> {
        self.items_or(self.as_list())
    }

    /// The items of a list. Other types are reported with this help, for callers that can give a
    /// better one than [`items`](Self::items).
    pub fn items_or(&self, help: impl Into<Help>) -> Option<Vec<Self>> {
        let items = self.list();
        if items.is_none() {
            self.wrong_type("a list in `[…]`", help);
        }
        items
    }

    /// The value written as a list, for one that was meant to be its only item.
    fn as_list(&self) -> Option<String> {
        const SHOWN: usize = 60;
        let written = self.document.written(self.value.span());
        let is_item = !written.is_empty() && !self.is_list() && !self.is_table();
        let is_short = written.len() <= SHOWN && !written.contains(char::is_control);
        let item = if is_short { written } else { "…" };
        is_item.then(|| self.assignment(&format!("[{item}]")))
    }

    /// An assignment of another value to the key, if it can be written.
    fn assignment(&self, value: &str) -> String {
        // Values in a list have no key.
        if self.key.contains('[') {
            format!("write {value}")
        } else {
            format!("write {} = {value}", self.key)
        }
    }

    pub(crate) fn list(&self) -> Option<Vec<Self>> {
        let items = self.value.get_ref().as_array()?.iter().enumerate();
        let item = |(position, value)| Self {
            value,
            key: format!("{}[{position}]", self.key),
            ..self.clone()
        };
        Some(items.map(item).collect())
    }

    /// A string or a list of strings, none of them blank. An empty list is an error: it reads like
    /// *nothing*, while a missing condition means *everything*.
    pub fn texts(&self) -> Vec<Located<Arc<str>>> {
        if self.is_text() {
            return self.text().into_iter().collect();
        }
        let items = self.list();
        match items.as_deref() {
            None => self.wrong_type("a text in quotes or a list of them", None),
            Some([]) => self.refuse_key("is an empty list", "write at least one text in it"),
            Some(_) => {}
        }
        items.iter().flatten().filter_map(Self::text).collect()
    }

    /// A table, called `what` in messages: `` `[agent]` ``.
    pub fn table<T>(&self, what: &str, read: impl FnOnce(&Table<'_>) -> T) -> Option<T> {
        self.entries(what).map(|table| table.read(read))
    }

    /// The tables of a list of tables, each called `what` in messages. A single table is reported
    /// as an error but still read, so that references to it raise no false alarm.
    pub fn tables<T>(&self, what: &str, mut read: impl FnMut(&Table<'_>) -> T) -> Vec<T> {
        let items = self.list().unwrap_or_else(|| {
            self.refuse_lone_table();
            if self.is_table() { vec![self.clone()] } else { Vec::new() }
        });
        items.iter().filter_map(|item| item.table(what, &mut read)).collect()
    }

    fn refuse_lone_table(&self) {
        let written = self.document.written(self.value.span());
        if written.starts_with('[') && self.is_table() {
            let message =
                format!("`{written}` defines a single table, but a list of tables is expected");
            self.refuse(message, format!("write `[{written}]`"));
        } else {
            let list = self.assignment("[{ … }]");
            let help = format!("{list}, or `[[{}]]` above each table", self.key);
            self.wrong_type("a list of tables", help);
        }
    }

    /// A table with arbitrary keys, for [`Table::rest`]: none is reported as unknown.
    pub fn entries(&self, what: &str) -> Option<Table<'a>> {
        let Some(entries) = self.value.get_ref().as_table() else {
            self.wrong_type("a table", None);
            return None;
        };
        Some(Table::new(self.document, self.problems, entries, self.at(), what))
    }

    /// The value as JSON, with the keys in the order of the file. Infinite numbers, dates and
    /// integers of more than 64 bits are reported, all of them at any depth.
    pub fn json(&self) -> Option<Json> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(Json::from(text.as_ref())),
            DeValue::Boolean(value) => Some(Json::from(*value)),
            DeValue::Integer(digits) => {
                let value = integer(digits).map(Json::from);
                value.or_else(|| self.no_json("this whole number needs more than 64 bits", None))
            }
            DeValue::Float(digits) => {
                let value = float(digits).map(Json::from);
                let help = "write another number, or a text in quotes";
                value.or_else(|| self.no_json("JSON has only finite numbers", help))
            }
            DeValue::Datetime(_) => {
                self.no_json("JSON has no dates and times", "write it as a text in quotes")
            }
            DeValue::Array(_) => {
                let items: Vec<_> = self.items()?.iter().map(Self::json).collect();
                items.into_iter().collect()
            }
            DeValue::Table(_) => {
                let entries = self.entries(&self.key)?;
                let entries: Vec<_> = entries
                    .rest()
                    .map(|(key, value)| Some((key.value.to_string(), value.json()?)))
                    .collect();
                entries.into_iter().collect()
            }
        }
    }

    fn no_json(&self, message: &str, help: impl Into<Help>) -> Option<Json> {
        self.refuse(message, help);
        None
    }
}

fn type_in_words(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(true) => "`true`",
        DeValue::Boolean(false) => "`false`",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn integer(digits: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

fn float(digits: &DeFloat<'_>) -> Option<f64> {
    digits.as_str().parse().ok().filter(|value: &f64| value.is_finite())
}
