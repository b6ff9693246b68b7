//! A table, read key by key; what nobody asked for is reported in the end.

use std::{cell::RefCell, ops::RangeInclusive, sync::Arc, time::Duration};

use toml::de::DeTable;

use super::{document::Document, value::Value};
use crate::{
    diagnostic::{Diagnostic, Located, Problems, Spot},
    suggest,
};

/// A table of a document. Its getters give `None` for a key that is not there, and for one whose
/// value is of no use, which they record.
pub(crate) struct Table<'a> {
    document: &'a Document,
    problems: &'a Problems,
    entries: &'a DeTable<'a>,
    at: Spot,
    /// How the table is called in messages.
    what: String,
    /// The keys that were asked for; `None` once the rest is nobody's business.
    known: RefCell<Option<Vec<&'static str>>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        document: &'a Document,
        problems: &'a Problems,
        entries: &'a DeTable<'a>,
        at: Spot,
        what: &str,
    ) -> Self {
        let known = RefCell::new(Some(Vec::new()));
        Self {
            document,
            problems,
            entries,
            at,
            what: what.to_owned(),
            known,
        }
    }

    /// Reads the table, then reports the keys that were not asked for: a reader that asks for a
    /// key declares it known, so the two cannot come apart.
    pub(super) fn read<T>(self, read: impl FnOnce(&Self) -> T) -> T {
        let read = read(&self);
        if let Some(known) = self.known.borrow().as_deref() {
            for (key, _) in self.entries {
                let name = key.get_ref().as_ref();
                if !known.contains(&name) {
                    let at = self.document.spot(key.span().start);
                    let message = format!("unknown key `{name}` in {}", self.what);
                    let help = suggest::help(name, "keys here", known.iter().copied());
                    self.problems
                        .push(Diagnostic::error(&at, message).help(help));
                }
            }
        }
        read
    }

    /// Lets unknown keys pass, because what they should be is not known either.
    pub(crate) fn ignore_the_rest(&self) {
        self.known.replace(None);
    }

    /// Where the table begins.
    pub(crate) fn at(&self) -> &Spot {
        &self.at
    }

    /// Records an error about the table as a whole.
    pub(crate) fn refuse(&self, message: impl Into<String>, help: impl Into<Option<String>>) {
        self.refuse_at(&self.at, message, help);
    }

    /// Records an error about a part of the table.
    pub(crate) fn refuse_at(
        &self,
        at: &Spot,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.problems
            .push(Diagnostic::error(at, message).help(help));
    }

    pub(crate) fn value(&self, key: &'static str) -> Option<Value<'a>> {
        if let Some(known) = self.known.borrow_mut().as_mut() {
            known.push(key);
        }
        let value = self.entries.get(key)?;
        Some(Value {
            document: self.document,
            problems: self.problems,
            value,
            key: key.to_owned(),
        })
    }

    /// A key that must be there; `example` is what may be written.
    pub(crate) fn required(&self, key: &'static str, example: &str) -> Option<Value<'a>> {
        let value = self.value(key);
        if value.is_none() {
            let message = format!("`{key}` is missing in {}", self.what);
            self.refuse(message, format!("write for example: {key} = {example}"));
        }
        value
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<Located<Arc<str>>> {
        self.value(key)?.text()
    }

    pub(crate) fn texts(&self, key: &'static str) -> Vec<Located<Arc<str>>> {
        self.value(key)
            .map(|value| value.texts())
            .unwrap_or_default()
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Option<bool> {
        Some(self.value(key)?.boolean()?.value)
    }

    pub(crate) fn integer(&self, key: &'static str, range: RangeInclusive<usize>) -> Option<usize> {
        Some(self.value(key)?.integer(range)?.value)
    }

    pub(crate) fn duration(&self, key: &'static str) -> Option<Duration> {
        Some(self.value(key)?.duration()?.value)
    }

    /// The table under a key, called `[key]` in messages.
    pub(crate) fn table<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Table<'_>) -> T,
    ) -> Option<T> {
        self.value(key)?.table(&format!("`[{key}]`"), read)
    }

    /// The tables of a list of tables, called `[[key]]` in messages.
    pub(crate) fn tables<T>(
        &self,
        key: &'static str,
        mut read: impl FnMut(&Table<'_>) -> T,
    ) -> Vec<T> {
        let items = self
            .value(key)
            .and_then(|value| value.items())
            .unwrap_or_default();
        let what = format!("`[[{key}]]`");
        items
            .iter()
            .filter_map(|item| item.table(&what, &mut read))
            .collect()
    }

    /// Every entry, in the order of the file, for a table whose keys are the author's own.
    pub(crate) fn rest(&self) -> impl Iterator<Item = (Located<Arc<str>>, Value<'a>)> {
        self.ignore_the_rest();
        let (document, problems) = (self.document, self.problems);
        self.entries.iter().map(move |(key, value)| {
            let name: &str = key.get_ref();
            let at = document.spot(key.span().start);
            let value = Value {
                document,
                problems,
                value,
                key: name.to_owned(),
            };
            (
                Located {
                    value: name.into(),
                    at,
                },
                value,
            )
        })
    }
}
