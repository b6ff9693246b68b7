//! JSON values of bounded size.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The message if a value exceeds its budget.
const OVER: &str = "the value is larger than its budget";

/// The budget for JSON in memory.
#[derive(Debug)]
pub(super) struct Budget {
    values: Cell<usize>,
    bytes: Cell<usize>,
    is_over: Cell<bool>,
}

impl Budget {
    /// A number of values, including nested ones, and a number of bytes of text in them.
    pub(super) fn new(values: usize, bytes: usize) -> Self {
        Self { values: Cell::new(values), bytes: Cell::new(bytes), is_over: Cell::new(false) }
    }

    /// Whether the budget was exceeded.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.values.get().checked_sub(1).zip(self.bytes.get().checked_sub(bytes));
        let Some((values, bytes)) = left else {
            self.is_over.set(true);
            return Err(E::custom(OVER));
        };
        self.values.set(values);
        self.bytes.set(bytes);
        Ok(())
    }
}

/// Deserializes a value within a budget. Of duplicate keys the last counts, as everywhere in
/// `serde_json`.
pub(super) struct BoundedSeed<'b>(pub(super) &'b Budget);

impl<'de> DeserializeSeed<'de> for BoundedSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.take(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        self.0.take(0)?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(BoundedSeed(self.0))? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        self.0.take(0)?;
        let mut entries = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.0.take(key.len())?;
            entries.insert(key, map.next_value_seed(BoundedSeed(self.0))?);
        }
        Ok(entries.into())
    }
}
