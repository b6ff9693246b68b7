//! Reading TOML with positions: typed getters that record a problem and go on.

use std::{fmt, ops::Range};

use serde_json::Value;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    nearest::nearest,
    problem::{Help, Problems},
};

/// A table of the script that is being read. Every getter makes its key a known one;
/// [`finish`](Self::finish) reports the others.
///
/// A getter gives nothing when the key is absent and when its value is wrong; in the second case
/// it has recorded a problem, so the caller need not tell them apart.
pub(super) struct Table<'a> {
    /// What the table is, for messages: `a rule`.
    what: &'static str,
    at: Range<usize>,
    entries: &'a DeTable<'a>,
    problems: &'a Problems<'a>,
    known: Vec<&'static str>,
}

/// A value and where it stands, in bytes of the text.
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) at: Range<usize>,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        what: &'static str,
        at: Range<usize>,
        entries: &'a DeTable<'a>,
        problems: &'a Problems<'a>,
    ) -> Self {
        Self {
            what,
            at,
            entries,
            problems,
            known: Vec::new(),
        }
    }

    /// Where problems of this text are recorded.
    pub(super) fn problems(&self) -> &'a Problems<'a> {
        self.problems
    }

    /// Whether the key is there, with a good value or a wrong one.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The entries, in the order of the text.
    pub(super) fn iter(
        &self,
    ) -> impl Iterator<Item = (&'a str, &'a Spanned<DeValue<'a>>)> + use<'a> {
        self.entries
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), value))
    }

    /// The line in which the table begins, from 1.
    pub(super) fn line(&self) -> usize {
        self.problems.line(&self.at)
    }

    /// Records a problem with the table as a whole.
    pub(super) fn problem(&self, message: impl Into<String>, help: impl Into<Help>) {
        self.problems.add(&self.at, message, help.into());
    }

    /// A value of any type.
    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.push(key);
        self.entries.get(key)
    }

    /// A value of any type that JSON has too.
    pub(super) fn json(&mut self, key: &'static str) -> Option<Value> {
        let value = self.value(key)?;
        json(value, self.problems)
    }

    pub(super) fn string(&mut self, key: &'static str) -> Option<At<&'a str>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(At {
                value: text.as_ref(),
                at: value.span(),
            }),
            _ => self.wrong(key, value, "a string"),
        }
    }

    /// One string or a list of them that is not empty.
    pub(super) fn strings(&mut self, key: &'static str) -> Vec<String> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        match value.get_ref() {
            DeValue::String(text) => vec![text.to_string()],
            DeValue::Array(items) if items.is_empty() => {
                let help = "name at least one tool, or leave the key out";
                self.problems
                    .add(&value.span(), format!("`{key}` is empty"), help.into());
                Vec::new()
            }
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| match item.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    _ => self.wrong(key, item, "a string or a list of strings"),
                })
                .collect(),
            _ => {
                self.wrong::<()>(key, value, "a string or a list of strings");
                Vec::new()
            }
        }
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Boolean(boolean) => Some(*boolean),
            _ => self.wrong(key, value, "true or false"),
        }
    }

    /// An integer that is not negative.
    pub(super) fn count(&mut self, key: &'static str) -> Option<u64> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .or_else(|| self.wrong(key, value, "an integer from 0 up")),
            _ => self.wrong(key, value, "an integer from 0 up"),
        }
    }

    /// A number that is finite and not negative.
    pub(super) fn amount(&mut self, key: &'static str) -> Option<f64> {
        let value = self.value(key)?;
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if number.is_finite() && number >= 0.0 => Some(number),
            _ => self.wrong(key, value, "a number from 0 up"),
        }
    }

    pub(super) fn table(&mut self, key: &'static str, what: &'static str) -> Option<Table<'a>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(entries) => Some(Table::new(what, value.span(), entries, self.problems)),
            _ => self.wrong(key, value, "a table"),
        }
    }

    pub(super) fn tables(&mut self, key: &'static str, what: &'static str) -> Vec<Table<'a>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let message = format!(
                "`{key}` must be a list of tables; this is {}",
                kind(value.get_ref())
            );
            let help = format!("write `[[{key}]]` above every table, or `{key} = [{{ … }}]`");
            self.problems.add(&value.span(), message, help.into());
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| match item.get_ref() {
                DeValue::Table(entries) => {
                    Some(Table::new(what, item.span(), entries, self.problems))
                }
                _ => self.wrong(key, item, "a list of tables"),
            })
            .collect()
    }

    /// Reports every key that no getter asked for.
    pub(super) fn finish(self) {
        for key in self.entries.keys() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let help = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its keys are {}", Names(&self.known)),
            };
            let message = format!("{} has no key `{}`", self.what, name.escape_debug());
            self.problems.add(&key.span(), message, help.into());
        }
    }

    fn wrong<T>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &'static str,
    ) -> Option<T> {
        let found = kind(value.get_ref());
        self.problems.add(
            &value.span(),
            format!("`{key}` must be {expected}; this is {found}"),
            Help::NONE,
        );
        None
    }
}

/// The same value in JSON. A problem when JSON has no such value.
pub(super) fn json(value: &Spanned<DeValue<'_>>, problems: &Problems<'_>) -> Option<Value> {
    let no_json = |message: &str, help: &str| {
        problems.add(&value.span(), message, help.into());
        None
    };
    match value.get_ref() {
        DeValue::String(text) => Some(text.as_ref().into()),
        DeValue::Boolean(boolean) => Some((*boolean).into()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::from)
            .ok()
            .or_else(|| no_json("the integer is too large", "use at most 64 bits")),
        DeValue::Float(float) => match float.as_str().parse().map(serde_json::Number::from_f64) {
            Ok(Some(number)) => Some(Value::Number(number)),
            _ => no_json(
                "JSON has only finite numbers",
                "write another number, or a string",
            ),
        },
        DeValue::Datetime(_) => no_json("JSON has no dates and times", "write it as a string"),
        // Every item is looked at, so that all problems are found.
        DeValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| json(item, problems)).collect();
            items.into_iter().collect()
        }
        DeValue::Table(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| Some((key.get_ref().to_string(), json(value, problems)?)))
                .collect();
            entries.into_iter().collect()
        }
    }
}

/// Names in backticks with commas between them.
pub(super) struct Names<'n, S>(pub(super) &'n [S]);

impl<S: AsRef<str>> fmt::Display for Names<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}`{}`", name.as_ref().escape_debug())?;
        }
        Ok(())
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(integer) if integer.as_str().starts_with('-') => "a negative integer",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
