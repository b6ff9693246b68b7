//! The arguments of a past call, for vendors that accept only an object.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};
use toolcrib_core::{
    __internal::{DEEPEST_ARGUMENTS, nests_deeper_than, scan_json},
    Arguments,
};

/// The arguments of a past call as a JSON object, with the model's bytes unchanged if they are one.
/// Otherwise the empty object: an engine refused the call, and its result describes the problem. One past
/// call must not make each later request invalid.
#[derive(Debug)]
pub(super) enum ObjectArguments<'a> {
    /// As text.
    Text(&'a RawValue),
    /// As data.
    Data(&'a Map<String, Value>),
    /// Not an object, or one that some parsers reject.
    Unusable,
}

impl<'a> From<&'a Arguments> for ObjectArguments<'a> {
    fn from(arguments: &'a Arguments) -> Self {
        match arguments {
            Arguments::Text(text) => match serde_json::from_str::<&RawValue>(text) {
                Ok(raw) if raw.get().starts_with('{') && is_sound(raw.get()) => Self::Text(raw),
                _ => Self::Unusable,
            },
            Arguments::Json(value @ Value::Object(map))
                if !nests_deeper_than(DEEPEST_ARGUMENTS, value) =>
            {
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

/// Whether a text is JSON that any parser accepts. Arguments that are only passed through are not
/// inspected, and may contain half a surrogate pair (`"\ud83d"`) or an infinite number (`1e999`).
fn is_sound(json: &str) -> bool {
    scan_json(json, DEEPEST_ARGUMENTS, |_| false).is_ok()
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
            (
                r#"{"eyes":"\ud83d\udc40","nul":"\u0000"}"#,
                r#"{"eyes":"\ud83d\udc40","nul":"\u0000"}"#,
            ),
            (r#"{"half":"\ud83d"}"#, "{}"),
            (r#"{"\ud83d":1}"#, "{}"),
            (r#"{"huge":1e999}"#, "{}"),
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
        let (deepest, deeper) = (nested(DEEPEST_ARGUMENTS), nested(DEEPEST_ARGUMENTS + 1));
        assert_eq!(sent(&Arguments::Text(deepest.clone())), deepest);
        assert_eq!(sent(&Arguments::Text(deeper.clone())), "{}");
        assert_eq!(sent(&Arguments::Text(nested(100_000))), "{}");
        let data = |text: &str| Arguments::Json(serde_json::from_str(text).unwrap());
        assert_eq!(sent(&data(&deepest)), deepest);
        assert_eq!(sent(&data(&deeper)), "{}");
    }
}
