//! Strict reading of JSON from outside.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use super::wide_integers::{CHANGED_INTEGER, changes_integers};

/// Keys with this prefix are instructions to `serde_json`, not data: if its feature `raw_value` or
/// `arbitrary_precision` is on, reading a [`Value`] replaces an object with such a key.
const RESERVED: &str = "$serde_json::private::";

/// The key by which `serde_json` passes numbers to a visitor if `arbitrary_precision` is on.
const NUMBER: &str = "$serde_json::private::Number";

/// The limit of values in JSON that a server answers with: each takes memory, whatever its text takes.
pub const MOST_VALUES: usize = 200_000;

/// The kind of a value in words, after "is".
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether a text of JSON may contain more than this number of values, as its separators say: for readers that
/// do not count, such as those of typed data.
pub fn has_more_values(most: usize, json: &[u8]) -> bool {
    // With its separator, each value has a byte.
    if json.len() <= most {
        return false;
    }
    let (mut values, mut in_string, mut is_escaped) = (1_usize, false, false);
    for byte in json {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    values > most
}

/// JSON as written: reserved keys are not expanded, and duplicate keys are an error.
///
/// Use it instead of [`Value`] to read a call's arguments from text. Reading a [`Value`] expands
/// the reserved keys of `serde_json`, so a value that is read twice can change in between, and
/// checks made before the second reading do not apply to the value used. Of duplicate keys it keeps
/// the last one, where other parsers keep the first. Both are errors here, of the category
/// [`Data`](serde_json::error::Category::Data).
///
/// ```
/// use toolcrib_core::__internal::PlainJson;
///
/// let PlainJson(value) = serde_json::from_str(r#"{"order": 1042}"#)?;
/// assert_eq!(value["order"], 1042);
/// assert!(serde_json::from_str::<PlainJson>(r#"{"order": 1, "order": 2}"#).unwrap_err().is_data());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PlainJson(pub Value);

/// Whether a key is reserved by `serde_json`; see [`PlainJson`].
pub fn is_reserved_key(key: &str) -> bool {
    key.starts_with(RESERVED)
}

/// Whether a key in a value, at any depth, is reserved by `serde_json`; see [`PlainJson`].
/// Recursive: check first that the value does not [nest too deep](crate::__internal::nests_too_deep).
pub fn has_reserved_key(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reserved_key),
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| is_reserved_key(key) || has_reserved_key(value))
        }
        _ => false,
    }
}

impl PlainJson {
    /// Reads a text, and refuses integers that would change. A [`Deserialize`] does not see how a number was
    /// written: `serde_json` passes an integer that does not fit 64 bits as the nearest float, so the id of a
    /// charge would lose its last digits. Use this wherever the text is at hand.
    ///
    /// ```
    /// use toolcrib_core::__internal::PlainJson;
    ///
    /// assert!(PlainJson::read(b"18446744073709551615").is_ok());
    /// assert!(PlainJson::read(b"18446744073709551617").unwrap_err().is_data());
    /// ```
    ///
    /// # Errors
    /// As of reading a [`PlainJson`]; of the category [`Data`](serde_json::error::Category::Data) for such an
    /// integer.
    pub fn read(json: &[u8]) -> serde_json::Result<Value> {
        Self::read_at_most(usize::MAX, json)
    }

    /// As [`read`](Self::read), and refuses more than this number of values before they take memory. Keys do not
    /// count; arrays and objects count themselves.
    ///
    /// # Errors
    /// As of [`read`](Self::read); of the category [`Data`](serde_json::error::Category::Data) for too many
    /// values.
    pub fn read_at_most(most: usize, json: &[u8]) -> serde_json::Result<Value> {
        if changes_integers(json) {
            return Err(serde_json::Error::custom(CHANGED_INTEGER));
        }
        let left = Cell::new(most);
        let mut reader = serde_json::Deserializer::from_slice(json);
        let seed = PlainJsonSeed { most, left: &left, repeated: None };
        let Self(value) = seed.deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    /// Reads a document whose author can only be warned: of a key that occurs twice in an object the last
    /// one counts, as other readers of documents do it. Also returns those keys, at most this number.
    ///
    /// # Errors
    /// For a text that is not JSON, and a reserved key.
    pub fn read_document(most: usize, json: &str) -> serde_json::Result<(Value, Vec<String>)> {
        let (left, repeated) = (Cell::new(usize::MAX), RefCell::new(Vec::new()));
        let mut reader = serde_json::Deserializer::from_str(json);
        let seed =
            PlainJsonSeed { most: usize::MAX, left: &left, repeated: Some((most, &repeated)) };
        let Self(value) = seed.deserialize(&mut reader)?;
        reader.end()?;
        Ok((value, repeated.into_inner()))
    }
}

impl<'de> Deserialize<'de> for PlainJson {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let left = Cell::new(usize::MAX);
        PlainJsonSeed { most: usize::MAX, left: &left, repeated: None }.deserialize(json)
    }
}

/// Reads one value, and counts it.
#[derive(Clone, Copy)]
struct PlainJsonSeed<'a> {
    most: usize,
    left: &'a Cell<usize>,
    /// Repeated keys, at most this number. None if they are an error.
    repeated: Option<(usize, &'a RefCell<Vec<String>>)>,
}

impl<'de> DeserializeSeed<'de> for PlainJsonSeed<'_> {
    type Value = PlainJson;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<PlainJson, D::Error> {
        let left = self.left.get().checked_sub(1);
        let too_many =
            || D::Error::custom(format_args!("there are more than {} values", self.most));
        self.left.set(left.ok_or_else(too_many)?);
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PlainJsonSeed<'_> {
    type Value = PlainJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<PlainJson, E> {
        Ok(PlainJson(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<PlainJson, E> {
        Ok(PlainJson(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<PlainJson, E> {
        Ok(PlainJson(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<PlainJson, E> {
        Ok(PlainJson(value.into()))
    }

    /// JSON5 has numbers that JSON lacks, such as `NaN` and `1e999`; a [`Value`] would be null
    /// there.
    fn visit_f64<E: Error>(self, value: f64) -> Result<PlainJson, E> {
        let number = Number::from_f64(value);
        number.map(|number| PlainJson(number.into())).ok_or_else(|| E::custom("not a JSON number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<PlainJson, E> {
        Ok(PlainJson(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<PlainJson, E> {
        Ok(PlainJson(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<PlainJson, A::Error> {
        let mut all = Vec::new();
        while let Some(PlainJson(item)) = items.next_element_seed(self)? {
            all.push(item);
        }
        all.shrink_to_fit();
        Ok(PlainJson(all.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<PlainJson, A::Error> {
        let mut all = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if is_reserved_key(&key) {
                if key == NUMBER && all.is_empty() && numbers_are_maps() {
                    return number(&entries.next_value::<String>()?);
                }
                return Err(A::Error::custom(format_args!("a key begins with `{RESERVED}`")));
            }
            let PlainJson(value) = entries.next_value_seed(self)?;
            match (all.contains_key(&key), self.repeated) {
                (false, _) => {}
                (true, None) => return Err(A::Error::custom("duplicate key in an object")),
                (true, Some((most, repeated))) => {
                    let mut repeated = repeated.borrow_mut();
                    if repeated.len() < most {
                        repeated.push(key.clone());
                    }
                }
            }
            all.insert(key, value);
        }
        if self.repeated.is_some() {
            // A document is large: without the room for more keys it takes a third of the memory.
            all = all.into_iter().collect();
        }
        Ok(PlainJson(all.into()))
    }
}

/// Reads JSON, of at most this number of levels, without keeping it.
///
/// # Errors
/// Also for texts and numbers that are not data, such as half a surrogate pair (`"\ud83d"`) or an infinite
/// number (`1e999`). Of the category [`Data`](serde_json::error::Category::Data) for a refused key, and for
/// too many levels.
pub fn scan_json(
    json: &str,
    levels: usize,
    refuses_key: fn(&str) -> bool,
) -> serde_json::Result<()> {
    Scan { levels, refuses_key }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// Reads a value, and discards it.
#[derive(Clone, Copy)]
struct Scan {
    levels: usize,
    refuses_key: fn(&str) -> bool,
}

impl Scan {
    fn inner<E: Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1).ok_or_else(|| E::custom("it nests too deep"))?;
        Ok(Self { levels, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Scan {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while let Some(key) = entries.next_key::<Cow<'_, str>>()? {
            if (self.refuses_key)(&key) {
                return Err(A::Error::custom("a refused key"));
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// Whether another crate of the program has enabled `arbitrary_precision`.
fn numbers_are_maps() -> bool {
    "1e999".parse::<Number>().is_ok()
}

fn number<E: Error>(written: &str) -> Result<PlainJson, E> {
    written.parse().map(|number: Number| PlainJson(number.into())).map_err(E::custom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(text).map(|PlainJson(value)| value)
    }

    #[test]
    fn reserved_and_repeated_keys_are_refused_at_any_depth() {
        for text in [
            r#"{"$serde_json::private::RawValue": "[1]"}"#,
            r#"{"a": [{"b": 1, "\u0024serde_json::private::Number": "1"}]}"#,
            r#"{"a": {"b": 1, "\u0062": 2}}"#,
        ] {
            let error = read(text).unwrap_err();
            assert!(error.is_data(), "{text}: {error}");
        }
        assert!(has_reserved_key(&json!([{"a": {"$serde_json::private::x": 1}}])));
        assert!(!has_reserved_key(&json!({"$serde_json": "$serde_json::private::RawValue"})));
    }

    proptest! {
        #[test]
        fn all_else_is_what_serde_json_reads(text in "[\\[\\]{}\":,a0-9eE.+ \\-\\\\u]{0,40}") {
            if let Ok(value) = read(&text) {
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            }
        }
    }
}
