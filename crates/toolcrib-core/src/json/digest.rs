//! Content digests and canonical JSON.

use std::{fmt, io, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest; printed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// The digest of a JSON value's canonical form: object keys sorted, arrays unchanged, no white
    /// space. Values that differ only in key order have the same digest.
    pub fn of_json(value: &Value) -> Self {
        Self::of_written(&CanonicalJson(value))
    }

    /// The digest of a value's JSON, hashed during serialization.
    fn of_written(value: &impl Serialize) -> Self {
        let mut hasher = DigestHasher::new();
        let written = serde_json::to_writer(&mut hasher, value);
        debug_assert!(written.is_ok(), "JSON can be written as JSON, and a hasher takes it all");
        hasher.finish()
    }

    /// The digest of a sequence of digests.
    pub fn of_all<'a>(digests: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut hasher = Sha256::new();
        for digest in digests {
            hasher.update(digest.0);
        }
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // At once, because each remote call formats one: a formatter for each byte is much slower.
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [byte >> 4, byte & 0xf].map(|digit| match digit {
                0..10 => b'0' + digit,
                _ => b'a' - 10 + digit,
            });
        }
        f.write_str(str::from_utf8(&digits).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parses 64 hexadecimal digits.
impl FromStr for Digest {
    type Err = InvalidDigestError;

    fn from_str(text: &str) -> Result<Self, InvalidDigestError> {
        let mut digest = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != digest.len() || !rest.is_empty() {
            return Err(InvalidDigestError);
        }
        let value = |digit: u8| char::from(digit).to_digit(16).ok_or(InvalidDigestError);
        for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
            *byte =
                u8::try_from(value(*high)? * 16 + value(*low)?).map_err(|_| InvalidDigestError)?;
        }
        Ok(Self(digest))
    }
}

/// A text that is not a valid digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 hexadecimal digits")]
pub struct InvalidDigestError;

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The content id of a call's arguments (the seeds' call id): SHA-256 of `{args, tool}`.
pub fn args_digest(tool: &str, args: &Value) -> Digest {
    /// Fields in alphabetical order, as in every canonical form.
    #[derive(Serialize)]
    struct Call<'a> {
        args: CanonicalJson<'a>,
        tool: &'a str,
    }
    Digest::of_written(&Call { args: CanonicalJson(args), tool })
}

/// Serializes a value with sorted object keys.
struct CanonicalJson<'a>(&'a Value);

impl Serialize for CanonicalJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) if map.keys().is_sorted() => {
                serializer.collect_map(map.iter().map(|(key, value)| (key, CanonicalJson(value))))
            }
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                let entries = entries.into_iter();
                serializer.collect_map(entries.map(|(key, value)| (key, CanonicalJson(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(CanonicalJson)),
            other => other.serialize(serializer),
        }
    }
}

/// Computes a [`Digest`] incrementally, for bytes that are not in memory at once.
#[derive(Clone, Default)]
pub struct DigestHasher(Sha256);

impl DigestHasher {
    /// Creates a hasher without bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends bytes to the hashed text.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

crate::internal::debug_fields!(DigestHasher);

impl io::Write for DigestHasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The canonical form of a JSON Schema, which is shown, digested and cached.
///
/// Keyword order and `required` have no meaning, so both are sorted; the order of `properties`,
/// `enum` and `oneOf` is meaningful to a model and stays as written.
pub(crate) fn canonical_schema(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return match schema {
            Value::Array(items) => items.iter().map(canonical_schema).collect(),
            other => other.clone(),
        };
    };
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
        .into_iter()
        .map(|(key, value)| {
            let value = match (key.as_str(), value) {
                (
                    "properties" | "patternProperties" | "$defs" | "definitions",
                    Value::Object(m),
                ) => m
                    .iter()
                    .map(|(name, schema)| (name.clone(), canonical_schema(schema)))
                    .collect(),
                ("required", Value::Array(names)) => {
                    let mut names = names.clone();
                    names.sort_unstable_by(|a, b| a.as_str().cmp(&b.as_str()));
                    Value::Array(names)
                }
                // Data, not schemas: the author's content stays.
                ("enum" | "const" | "default" | "examples", value) => value.clone(),
                (_, value) => canonical_schema(value),
            };
            (key.clone(), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_does_not_change_the_call_id_and_array_order_does() {
        let a = args_digest("t", &json!({"x": 1, "y": {"b": 1, "a": [1, 2]}}));
        let b = args_digest("t", &json!({"y": {"a": [1, 2], "b": 1}, "x": 1}));
        let c = args_digest("t", &json!({"y": {"a": [2, 1], "b": 1}, "x": 1}));
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert_eq!(a.to_string().len(), 64);
        assert_ne!(a, args_digest("u", &json!({"x": 1, "y": {"b": 1, "a": [1, 2]}})));
    }

    #[test]
    fn a_digest_is_read_as_it_is_printed_and_nothing_else_is() {
        let digest = Digest::of("x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for text in ["", "00", &"g".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert_eq!(text.parse::<Digest>(), Err(InvalidDigestError), "{text}");
        }
    }

    #[test]
    fn a_schema_keeps_the_orders_that_speak_to_a_model() {
        let schema = json!({
            "type": "object",
            "required": ["z", "a"],
            "properties": {"z": {"enum": ["q", "b"], "type": "string"}, "a": {"type": "integer"}},
        });
        assert_eq!(
            canonical_schema(&schema).to_string(),
            r#"{"properties":{"z":{"enum":["q","b"],"type":"string"},"a":{"type":"integer"}},"required":["a","z"],"type":"object"}"#
        );
    }

    #[test]
    fn a_property_named_like_a_keyword_is_still_a_property() {
        let schema =
            json!({"properties": {"required": {"type": "array"}, "enum": {"b": 1, "a": 2}}});
        let canonical = canonical_schema(&schema);
        assert_eq!(canonical["properties"]["enum"].to_string(), r#"{"a":2,"b":1}"#);
    }
}
