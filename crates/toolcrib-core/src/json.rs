//! JSON that somebody else wrote, read as exactly one value.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Keys that begin so are instructions to `serde_json`, not data: where its feature `raw_value` or
/// `arbitrary_precision` is on, reading a [`Value`] replaces an object with such a key by something else.
const RESERVED: &str = "$serde_json::private::";

/// How `serde_json` passes numbers to a visitor while `arbitrary_precision` is on.
const NUMBER: &str = "$serde_json::private::Number";

/// JSON as it is written: no key is expanded, and each key of an object is written once.
///
/// Use it in place of [`Value`] where arguments of a call are read from text. Reading a [`Value`] expands
/// the reserved keys of `serde_json`, so a value that is read twice can change in between, and checks made
/// before the second reading say nothing about what is used. Of two equal keys it keeps the last one,
/// where other parsers keep the first. Both are errors here, of the category
/// [`Data`](serde_json::error::Category::Data).
///
/// ```
/// use toolcrib_core::PlainJson;
///
/// let PlainJson(value) = serde_json::from_str(r#"{"order": 1042}"#)?;
/// assert_eq!(value["order"], 1042);
/// assert!(serde_json::from_str::<PlainJson>(r#"{"order": 1, "order": 2}"#).unwrap_err().is_data());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PlainJson(pub Value);

/// Whether a key in a value, at any depth, is reserved by `serde_json`; see [`PlainJson`]. Recursive:
/// check first that the value does not [nest too deep](crate::nests_too_deep).
pub fn has_reserved_key(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reserved_key),
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| key.starts_with(RESERVED) || has_reserved_key(value))
        }
        _ => false,
    }
}

impl<'de> Deserialize<'de> for PlainJson {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Plain)
    }
}

struct Plain;

impl<'de> Visitor<'de> for Plain {
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

    /// JSON5 has numbers that JSON has not, such as `NaN` and `1e999`; a [`Value`] would be null there.
    fn visit_f64<E: Error>(self, value: f64) -> Result<PlainJson, E> {
        let number = Number::from_f64(value);
        number.map(|number| PlainJson(number.into())).ok_or_else(|| E::custom("no number of JSON"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<PlainJson, E> {
        Ok(PlainJson(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<PlainJson, E> {
        Ok(PlainJson(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<PlainJson, A::Error> {
        let mut all = Vec::new();
        while let Some(PlainJson(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(PlainJson(all.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<PlainJson, A::Error> {
        let mut all = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key.starts_with(RESERVED) {
                if key == NUMBER && all.is_empty() && numbers_are_maps() {
                    return number(&entries.next_value::<String>()?);
                }
                return Err(A::Error::custom(format_args!("a key begins with `{RESERVED}`")));
            }
            let PlainJson(value) = entries.next_value()?;
            if all.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is written twice in one object"));
            }
        }
        Ok(PlainJson(all.into()))
    }
}

/// Whether another crate of the program has switched `arbitrary_precision` on.
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
