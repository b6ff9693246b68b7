//! One value and what it may be read as.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use serde_json::Value as Json;
use toml::{
    Spanned,
    de::{DeFloat, DeInteger, DeValue},
};

use super::{document::Document, table::Table};
use crate::{
    diagnostic::{Diagnostic, Located, Problems, Spot},
    suggest,
};

/// The longest duration that makes sense for a call or a turn.
const MAX_DURATION: Duration = Duration::from_hours(24);

/// A value in a document. Each way of reading it records why it cannot be read so and gives
/// `None`.
#[derive(Clone)]
pub(crate) struct Value<'a> {
    pub(super) document: &'a Document,
    pub(super) problems: &'a Problems,
    pub(super) value: &'a Spanned<DeValue<'a>>,
    /// The key that it stands under.
    pub(super) key: String,
}

impl<'a> Value<'a> {
    pub(crate) fn at(&self) -> Spot {
        self.document.spot(self.value.span().start)
    }

    /// Records an error about this value.
    pub(crate) fn refuse(&self, message: impl Into<String>, help: impl Into<Option<String>>) {
        self.problems
            .push(Diagnostic::error(&self.at(), message).help(help));
    }

    /// Where problems with this value are put.
    pub(crate) fn problems(&self) -> &'a Problems {
        self.problems
    }

    fn wrong_type(&self, expected: &str) {
        let found = self.value.get_ref().type_str();
        self.refuse(
            format!("`{}` must be {expected}; this is of type {found}", self.key),
            None,
        );
    }

    fn located<T>(&self, value: T) -> Located<T> {
        Located {
            value,
            at: self.at(),
        }
    }

    /// A text that is not blank.
    pub(crate) fn text(&self) -> Option<Located<Arc<str>>> {
        let Some(text) = self.value.get_ref().as_str() else {
            self.wrong_type("a text in quotes");
            return None;
        };
        if text.trim().is_empty() {
            self.refuse(format!("`{}` is blank", self.key), None);
            return None;
        }
        Some(self.located(text.into()))
    }

    /// Where the first character of a text stands, if the file holds the text as it is, without
    /// escapes.
    pub(crate) fn text_start(&self) -> Option<Spot> {
        let text = self.value.get_ref().as_str()?;
        let span = self.value.span();
        let inside = self.document.written(span.clone()).find(text)?;
        Some(self.document.spot(span.start + inside))
    }

    pub(crate) fn boolean(&self) -> Option<Located<bool>> {
        let value = self.value.get_ref().as_bool();
        if value.is_none() {
            self.wrong_type("`true` or `false`");
        }
        value.map(|value| self.located(value))
    }

    pub(crate) fn integer(&self, range: RangeInclusive<usize>) -> Option<Located<usize>> {
        let Some(digits) = self.value.get_ref().as_integer() else {
            self.wrong_type("a whole number");
            return None;
        };
        let value = integer(digits).and_then(|value| usize::try_from(value).ok());
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            let (low, high) = (range.start(), range.end());
            self.refuse(format!("`{}` must be from {low} to {high}", self.key), None);
        }
        value.map(|value| self.located(value))
    }

    pub(crate) fn duration(&self) -> Option<Located<Duration>> {
        const HELP: &str = "write a duration such as \"500ms\", \"30s\" or \"5m\"";
        let Some(text) = self.value.get_ref().as_str() else {
            self.wrong_type("a duration in quotes, such as \"30s\"");
            return None;
        };
        let refusal = match humantime::parse_duration(text) {
            Ok(duration) if duration.is_zero() => "is zero; it would end before it began".into(),
            Ok(duration) if duration > MAX_DURATION => "is longer than a day".into(),
            Ok(duration) => return Some(self.located(duration)),
            Err(error) => format!("is not a duration: {error}"),
        };
        self.refuse(format!("`{}` {refusal}", self.key), HELP.to_owned());
        None
    }

    /// One of some words, each with what it stands for.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<Located<T>> {
        let text = self.text()?;
        let known = words.iter().find(|(word, _)| **word == *text.value);
        if known.is_none() {
            let help = suggest::help(&text.value, "values", words.iter().map(|(word, _)| *word));
            self.refuse(format!("`{}` cannot be `{}`", self.key, text.value), help);
        }
        known.map(|(_, value)| self.located(*value))
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        let items = self.array();
        if items.is_none() {
            self.wrong_type("a list in `[…]`");
        }
        items
    }

    fn array(&self) -> Option<Vec<Self>> {
        let items = self.value.get_ref().as_array()?;
        Some(
            items
                .iter()
                .map(|value| Self {
                    value,
                    ..self.clone()
                })
                .collect(),
        )
    }

    /// One text or a list of texts. An empty list is refused: it reads like *nothing*, and a
    /// condition that is left out means *everything*.
    pub(crate) fn texts(&self) -> Vec<Located<Arc<str>>> {
        if self.value.get_ref().is_str() {
            return self.text().into_iter().collect();
        }
        let items = self.array();
        match items.as_deref() {
            None => self.wrong_type("a text in quotes or a list of them"),
            Some([]) => self.refuse(format!("`{}` is an empty list", self.key), None),
            Some(_) => {}
        }
        items.iter().flatten().filter_map(Self::text).collect()
    }

    /// Whether it is a table, in either notation.
    pub(crate) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// A table, called `what` in messages.
    pub(crate) fn table<T>(&self, what: &str, read: impl FnOnce(&Table<'_>) -> T) -> Option<T> {
        self.entries(what).map(|table| table.read(read))
    }

    /// A table whose keys are the author's own.
    pub(crate) fn entries(&self, what: &str) -> Option<Table<'a>> {
        let Some(entries) = self.value.get_ref().as_table() else {
            self.wrong_type("a table");
            return None;
        };
        Some(Table::new(
            self.document,
            self.problems,
            entries,
            self.at(),
            what,
        ))
    }

    /// The value as JSON.
    pub(crate) fn json(&self) -> Option<Json> {
        let json = match self.value.get_ref() {
            DeValue::String(text) => Json::from(text.as_ref()),
            DeValue::Boolean(value) => Json::from(*value),
            DeValue::Integer(digits) => match integer(digits) {
                Some(value) => Json::from(value),
                None => return self.no_json("this whole number needs more than 64 bits"),
            },
            DeValue::Float(digits) => match float(digits) {
                Some(value) => Json::from(value),
                None => return self.no_json("JSON has no such number"),
            },
            DeValue::Datetime(_) => {
                return self.no_json("JSON has no dates; write the date as a text in quotes");
            }
            DeValue::Array(_) => self.items()?.iter().filter_map(Self::json).collect(),
            DeValue::Table(_) => {
                let entries = self.entries(&self.key)?;
                entries
                    .rest()
                    .filter_map(|(key, value)| Some((key.value.to_string(), value.json()?)))
                    .collect()
            }
        };
        Some(json)
    }

    fn no_json(&self, message: &str) -> Option<Json> {
        self.refuse(message, None);
        None
    }
}

fn integer(digits: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

fn float(digits: &DeFloat<'_>) -> Option<f64> {
    digits
        .as_str()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}
