//! The arguments of a past call, for vendors that take nothing but an object.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};
use toolcrib_core::Arguments;

/// The deepest arguments that are sent back, in levels. Google's JSON parser takes a hundred for the
/// whole request, and what one past call holds must not make each later request invalid.
const DEEPEST: usize = 64;

/// The arguments of a past call as a JSON object, byte for byte as the model wrote them where they
/// are one. Else the empty object: what was wrong with them, the call's result says.
#[derive(Debug)]
pub(super) enum ObjectArguments<'a> {
    /// As text.
    Text(&'a RawValue),
    /// As data.
    Data(&'a Map<String, Value>),
    /// No object, or one that nests without measure.
    Unusable,
}

impl<'a> From<&'a Arguments> for ObjectArguments<'a> {
    fn from(arguments: &'a Arguments) -> Self {
        match arguments {
            Arguments::Text(text) => match serde_json::from_str::<&RawValue>(text) {
                Ok(raw) if raw.get().starts_with('{') && !text_nests_deep(raw.get()) => {
                    Self::Text(raw)
                }
                _ => Self::Unusable,
            },
            Arguments::Json(value @ Value::Object(map)) if !data_nests_deep(value) => {
                Self::Data(map)
            }
            Arguments::Json(_) => Self::Unusable,
        }
    }
}

impl Serialize for ObjectArguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(raw) => raw.serialize(serializer),
            Self::Data(map) => map.serialize(serializer),
            Self::Unusable => Map::new().serialize(serializer),
        }
    }
}

/// Whether a text that is JSON nests too deep.
fn text_nests_deep(json: &str) -> bool {
    let (mut level, mut in_string, mut escaped) = (0_usize, false, false);
    json.bytes().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => level += 1,
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
        level > DEEPEST
    })
}

/// Whether data nests too deep, found without recursion.
fn data_nests_deep(value: &Value) -> bool {
    let mut ahead = vec![(value, 1)];
    while let Some((value, level)) = ahead.pop() {
        match value {
            Value::Array(_) | Value::Object(_) if level > DEEPEST => return true,
            Value::Array(items) => ahead.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => ahead.extend(map.values().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(arguments: &Arguments) -> String {
        serde_json::to_string(&ObjectArguments::from(arguments)).unwrap()
    }

    #[test]
    fn an_object_goes_back_as_it_was_written_and_all_else_as_an_empty_one() {
        let texts = [
            (r#"{"b": 1e21, "a":9007199254740993}"#, r#"{"b": 1e21, "a":9007199254740993}"#),
            (" {} \n", "{}"),
            (r#"{"brace":"}\"{[["}"#, r#"{"brace":"}\"{[["}"#),
            ("", "{}"),
            ("null", "{}"),
            ("[1]", "{}"),
            (r#"{"cut":"#, "{}"),
            (r#"{} and more"#, "{}"),
        ];
        for (text, expected) in texts {
            assert_eq!(sent(&Arguments::Text(text.to_owned())), expected, "{text}");
        }
        assert_eq!(sent(&Arguments::Json(json!({"a": [1]}))), r#"{"a":[1]}"#);
        assert_eq!(sent(&Arguments::Json(json!([1]))), "{}");
    }

    #[test]
    fn what_nests_without_measure_does_not_go_back() {
        let nested = |levels: usize| {
            let arrays = levels - 1;
            format!("{{\"a\":{}{}}}", "[".repeat(arrays), "]".repeat(arrays))
        };
        let (deepest, deeper) = (nested(DEEPEST), nested(DEEPEST + 1));
        assert_eq!(sent(&Arguments::Text(deepest.clone())), deepest);
        assert_eq!(sent(&Arguments::Text(deeper.clone())), "{}");
        assert_eq!(sent(&Arguments::Text(nested(100_000))), "{}");
        let data = |text: &str| Arguments::Json(serde_json::from_str(text).unwrap());
        assert_eq!(sent(&data(&deepest)), deepest);
        assert_eq!(sent(&data(&deeper)), "{}");
    }
}
