//! Messages that `serde_json` would expand.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// The prefix of keys that `serde_json` reserves; see [`PlainJson`](toolcrib_core::__internal::PlainJson).
const RESERVED: &str = "$serde_json::private::";

/// Whether parsing a message would replace an object in it. The replacement text is parsed without
/// regard to the surrounding levels, so a message of 2 KB could nest deep enough to exhaust the
/// stack.
pub(crate) fn is_expanded(message: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(message) else { return false };
    // Most messages contain neither the words nor an escaped ASCII character that could be part of
    // them.
    (text.contains("serde_json::private") || text.contains("\\u00"))
        && serde_json::from_str::<Keys>(text).is_err_and(|error| error.is_data())
}

/// Parses only the keys of JSON.
struct Keys;

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        while let Some(key) = entries.next_key::<Cow<'_, str>>()? {
            if key.starts_with(RESERVED) {
                return Err(A::Error::custom("a reserved key"));
            }
            entries.next_value::<Self>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::is_expanded;

    #[test]
    fn a_reserved_key_is_found_and_a_text_that_speaks_of_one_is_not() {
        let expanded = |text: &str| is_expanded(text.as_bytes());
        assert!(expanded(r#"{"a": [{"b": 1, "$serde_json::private::RawValue": "1"}]}"#));
        assert!(expanded(r#"{"\u0024serde_json::private::Number": "1"}"#));
        assert!(!expanded(r#"{"text": "{\"$serde_json::private::RawValue\": 1}"}"#));
        assert!(!expanded(r#"{"a": 1, "a": "\u0000", "b": [null, true, -1, 1.5]}"#));
        assert!(!expanded("$serde_json::private::"));
    }
}
