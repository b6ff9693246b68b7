//! Iteration over the items of an array, and over the keys of objects.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{
    bounded::{BoundedSeed, Budget},
    walk::Sink,
};

/// The maximum size of one item: number of values, and bytes of text.
pub(super) const ITEM: (usize, usize) = (50_000, 2 * 1024 * 1024);

/// The maximum number of distinct keys.
const MOST_KEYS: usize = 10_000;

/// A consumer of items.
pub(super) trait EachItem {
    /// Resets the consumer.
    fn restart(&mut self);

    /// Whether the item at this index must be read.
    fn wants(&mut self, at: u64) -> bool;

    /// Processes a requested item.
    fn item(&mut self, at: u64, item: &Value);

    /// Whether no further item is needed.
    fn is_done(&self) -> bool;
}

/// Iterates over the items of an array.
pub(super) struct ItemsSink<'e, E> {
    pub(super) each: &'e mut E,
    /// Whether to fail when no further item is needed, to stop early.
    pub(super) stops: bool,
    /// Whether the value is not an array.
    pub(super) is_other: bool,
    /// The first item that exceeds [`ITEM`].
    pub(super) too_large: Option<u64>,
}

impl<'e, E: EachItem> ItemsSink<'e, E> {
    pub(super) fn new(each: &'e mut E, stops: bool) -> Self {
        Self { each, stops, is_other: false, too_large: None }
    }
}

impl<E: EachItem> Sink for ItemsSink<'_, E> {
    fn restart(&mut self) {
        self.each.restart();
        self.is_other = false;
    }

    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(ItemsVisitor(self))
    }
}

struct ItemsVisitor<'s, 'e, E>(&'s mut ItemsSink<'e, E>);

impl<E> ItemsVisitor<'_, '_, E> {
    fn other<F>(self) -> Result<(), F> {
        self.0.is_other = true;
        Ok(())
    }
}

impl<'de, E: EachItem> Visitor<'de> for ItemsVisitor<'_, '_, E> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    scalars!(self => self.other());

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.other()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let sink = self.0;
        for at in 0.. {
            if sink.stops && sink.each.is_done() {
                return Err(A::Error::custom("the rest is not needed"));
            }
            if sink.each.wants(at) {
                let budget = Budget::new(ITEM.0, ITEM.1);
                match seq.next_element_seed(BoundedSeed(&budget)) {
                    Ok(Some(item)) => sink.each.item(at, &item),
                    Ok(None) => break,
                    Err(error) => {
                        sink.too_large = budget.is_over().then_some(at);
                        return Err(error);
                    }
                }
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// The distinct keys of an object, or of all objects in an array.
#[derive(Default)]
pub(super) struct KeysSink {
    pub(super) keys: Vec<String>,
    known: HashSet<String>,
    /// The first duplicate key within one object.
    pub(super) twice: Option<String>,
    /// Whether there are more keys than the maximum.
    pub(super) is_cut: bool,
    /// Whether an object was found.
    pub(super) is_object: bool,
}

impl KeysSink {
    fn key(&mut self, key: String, of_this: &mut HashSet<String>) {
        if of_this.len() < MOST_KEYS && !of_this.insert(key.clone()) {
            self.twice.get_or_insert_with(|| key.clone());
        }
        if self.known.contains(&key) {
            return;
        }
        if self.keys.len() >= MOST_KEYS {
            self.is_cut = true;
            return;
        }
        self.known.insert(key.clone());
        self.keys.push(key);
    }
}

impl Sink for KeysSink {
    fn restart(&mut self) {
        *self = Self::default();
    }

    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(KeysVisitor { sink: self, is_item: false })
    }
}

struct KeysVisitor<'s> {
    sink: &'s mut KeysSink,
    /// Nested arrays are not searched.
    is_item: bool,
}

impl<'de> DeserializeSeed<'de> for KeysVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeysVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    scalars!(self => Ok(()));

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.is_item {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        while seq.next_element_seed(KeysVisitor { sink: &mut *self.sink, is_item: true })?.is_some()
        {
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.sink.is_object = true;
        let mut of_this = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            self.sink.key(key, &mut of_this);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}
