//! Key-by-key reading of a table; unknown keys are reported at the end.

use std::{cell::RefCell, fmt::Display, ops::RangeBounds, sync::Arc, time::Duration};

use toml::de::DeTable;

use crate::{
    diagnostic::{Diagnostic, Help},
    document::Document,
    places::Places,
    problems::Problems,
    spot::{Located, Spot},
    suggest,
    value::Value,
};

/// A table of a document.
///
/// The getters return `None` for a missing key and for an invalid value, which they report; callers
/// need not distinguish the two. To do so, use [`value`](Self::value). A getter also marks its key
/// as known: every other key is an error once the table has been read, so that the keys that are
/// read and those that are allowed cannot diverge.
#[derive(Debug)]
pub struct Table<'a> {
    document: &'a Document,
    problems: &'a Problems,
    entries: &'a DeTable<'a>,
    at: Spot,
    /// The table's name in messages.
    what: String,
    /// The known keys; `None` once unknown keys are ignored.
    known: RefCell<Option<Vec<&'static str>>>,
    /// Unknown keys with a specific help text.
    explained: RefCell<Vec<(&'static str, String)>>,
    /// Missing required keys, each with an example of its value.
    missing: RefCell<Vec<(&'static str, String)>>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(
        document: &'a Document,
        problems: &'a Problems,
        entries: &'a DeTable<'a>,
        at: Spot,
        what: &str,
    ) -> Self {
        Self {
            document,
            problems,
            entries,
            at,
            what: what.to_owned(),
            known: RefCell::new(Some(Vec::new())),
            explained: RefCell::default(),
            missing: RefCell::default(),
        }
    }

    /// Reads the table, then reports unknown and missing keys.
    pub(crate) fn read<T>(self, read: impl FnOnce(&Self) -> T) -> T {
        let read = read(&self);
        let misspelt = self.report_unknown();
        for (key, example) in &*self.missing.borrow() {
            if !misspelt.contains(key) {
                let message = format!("`{key}` is missing in {}", self.what);
                self.refuse(message, format!("write for example: {key} = {example}"));
            }
        }
        read
    }

    /// Reports unknown keys. Returns the known keys that they probably mean, which are not reported
    /// as missing as well.
    fn report_unknown(&self) -> Vec<&'static str> {
        let known = self.known.borrow();
        let Some(known) = known.as_deref() else {
            return Vec::new();
        };
        let mut meant = Vec::new();
        for key in self.entries.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            if self.problems.is_full() {
                break;
            }
            let message = format!("unknown key {} in {}", suggest::quoted([name]), self.what);
            let explained = self.explained.borrow();
            let help = match explained.iter().find(|(key, _)| *key == name) {
                Some((_, explanation)) => explanation.clone(),
                None => {
                    let near = suggest::nearest(name, known.iter().copied());
                    meant.extend(known.iter().find(|key| Some(**key) == near));
                    suggest::help(name, "keys here", known.iter().copied())
                }
            };
            self.refuse_at(&self.document.spot(key.span().start), message, help);
        }
        meant
    }

    /// Ignores unknown keys, because the known ones are not determined either.
    pub fn ignore_the_rest(&self) {
        self.known.replace(None);
    }

    /// Sets a help text for an unknown key whose purpose is clear, instead of a suggestion.
    pub fn explain(&self, key: &'static str, help: impl Into<String>) {
        self.explained.borrow_mut().push((key, help.into()));
    }

    /// Whether a key exists. Unlike the getters this does not mark it as known: used to detect the
    /// kind of a table.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The start of the table.
    pub fn at(&self) -> &Spot {
        &self.at
    }

    /// The collector of problems.
    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// Records an error about the table as a whole.
    pub fn refuse(&self, message: impl Into<String>, help: impl Into<Help>) {
        self.refuse_at(&self.at, message, help);
    }

    /// Records an error about a part of the table.
    pub fn refuse_at(&self, at: &Spot, message: impl Into<String>, help: impl Into<Help>) {
        self.problems.push(Diagnostic::error(at, message).help(help));
    }

    /// The value of a key, of any type.
    pub fn value(&self, key: &'static str) -> Option<Value<'a>> {
        if let Some(known) = self.known.borrow_mut().as_mut()
            && !known.contains(&key)
        {
            known.push(key);
        }
        let value = self.entries.get(key)?;
        Some(Value { document: self.document, problems: self.problems, value, key: key.to_owned() })
    }

    /// The value of a required key; `example` is a valid text after the `=`. If it is missing, that
    /// is reported once the table has been read, unless an unknown key is probably a misspelling of
    /// it.
    pub fn required(&self, key: &'static str, example: &str) -> Option<Value<'a>> {
        let value = self.value(key);
        if value.is_none() {
            self.missing.borrow_mut().push((key, example.to_owned()));
        }
        value
    }

    /// [`Value::text`] of a key.
    pub fn text(&self, key: &'static str) -> Option<Located<Arc<str>>> {
        self.value(key)?.text()
    }

    /// [`Value::texts`] of a key.
    pub fn texts(&self, key: &'static str) -> Vec<Located<Arc<str>>> {
        self.value(key).map(|value| value.texts()).unwrap_or_default()
    }

    /// [`Value::boolean`] of a key.
    pub fn boolean(&self, key: &'static str) -> Option<bool> {
        Some(self.value(key)?.boolean()?.value)
    }

    /// [`Value::integer`] of a key.
    pub fn integer<T>(&self, key: &'static str, range: impl RangeBounds<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        Some(self.value(key)?.integer(range)?.value)
    }

    /// [`Value::number`] of a key.
    pub fn number(&self, key: &'static str, range: impl RangeBounds<f64>) -> Option<f64> {
        Some(self.value(key)?.number(range)?.value)
    }

    /// [`Value::duration`] of a key.
    pub fn duration(&self, key: &'static str) -> Option<Duration> {
        Some(self.value(key)?.duration()?.value)
    }

    /// [`Value::age`] of a key.
    pub fn age(&self, key: &'static str) -> Option<Duration> {
        Some(self.value(key)?.age()?.value)
    }

    /// [`Value::size`] of a key.
    pub fn size(&self, key: &'static str, range: impl RangeBounds<u64>) -> Option<u64> {
        Some(self.value(key)?.size(range)?.value)
    }

    /// The table under a key, called `[key]` in messages.
    pub fn table<T>(&self, key: &'static str, read: impl FnOnce(&Table<'_>) -> T) -> Option<T> {
        self.value(key)?.table(&format!("`[{key}]`"), read)
    }

    /// The tables of a list of tables, called `[[key]]` in messages.
    pub fn tables<T>(&self, key: &'static str, read: impl FnMut(&Table<'_>) -> T) -> Vec<T> {
        self.value(key).map(|value| value.tables(&format!("`[[{key}]]`"), read)).unwrap_or_default()
    }

    /// All entries, in the order of the file, for a table with arbitrary keys; all keys count as
    /// known.
    pub fn rest(&self) -> impl Iterator<Item = (Located<Arc<str>>, Value<'a>)> {
        self.ignore_the_rest();
        self.entries()
    }

    /// The places of all keys and values. Unlike the getters this makes no key a known one.
    pub fn places(&self) -> Places {
        Places::of(self)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (Located<Arc<str>>, Value<'a>)> {
        let (document, problems) = (self.document, self.problems);
        self.entries.iter().map(move |(key, value)| {
            let name: &str = key.get_ref();
            let at = document.spot(key.span().start);
            let value = Value { document, problems, value, key: name.to_owned() };
            (Located { value: name.into(), at }, value)
        })
    }
}
