//! Places of all parts of a table, for checks that run after the table was read.

use std::{collections::HashMap, sync::Arc};

use crate::{
    spot::{Located, Spot},
    table::Table,
    value::Value,
};

/// The place of every key and value in a table, by JSON pointer: `/args/0`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(HashMap<String, Place>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The key; `None` for an item of a list.
    key: Option<Spot>,
    value: Spot,
    /// A text and the place of its first character, where the file contains the text unescaped.
    text: Option<Located<Arc<str>>>,
}

impl Places {
    pub(crate) fn of(table: &Table<'_>) -> Self {
        let mut places = Self::default();
        places.add_table(table, "");
        places
    }

    fn add_table(&mut self, table: &Table<'_>, pointer: &str) {
        for (key, value) in table.entries() {
            self.add(Some(key.at), &value, format!("{pointer}/{}", pointer_step(&key.value)));
        }
    }

    fn add(&mut self, key: Option<Spot>, value: &Value<'_>, pointer: String) {
        for (position, item) in value.list().iter().flatten().enumerate() {
            self.add(None, item, format!("{pointer}/{position}"));
        }
        if let Some(table) = value.is_table().then(|| value.entries("")).flatten() {
            self.add_table(&table, &pointer);
        }
        let place = Place { key, value: value.at(), text: value.unescaped() };
        self.0.insert(pointer, place);
    }

    /// The place of a value, or of the smallest known value around it. `None` where only the table
    /// itself is around it.
    pub fn value(&self, pointer: &str) -> Option<&Spot> {
        self.nearest(pointer).map(|place| &place.value)
    }

    /// The place of a key; of its value in a list.
    pub fn key(&self, pointer: &str) -> Option<&Spot> {
        self.nearest(pointer).map(|place| place.key.as_ref().unwrap_or(&place.value))
    }

    /// The place of a byte of a text; of the value where the file contains the text escaped.
    pub fn character(&self, pointer: &str, offset: usize) -> Option<Spot> {
        let place = self.nearest(pointer)?;
        let text = place.text.as_ref();
        let before = text.and_then(|text| Some(text.at.after(text.value.get(..offset)?)));
        Some(before.unwrap_or_else(|| place.value.clone()))
    }

    fn nearest(&self, mut pointer: &str) -> Option<&Place> {
        loop {
            if let Some(place) = self.0.get(pointer) {
                return Some(place);
            }
            (pointer, _) = pointer.rsplit_once('/')?;
        }
    }
}

/// A name as a step of a JSON pointer.
pub fn pointer_step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
