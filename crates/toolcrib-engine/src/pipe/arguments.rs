//! From what a model wrote to data.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use toolcrib_core::{Arguments, DEEPEST_JSON, dismantle, nests_too_deep};

/// Longer texts are not repaired, only parsed.
const LONGEST_REPAIR: usize = 64 * 1024;

/// Deeper texts are not repaired: the parser of the repair has no bound of its own.
const DEEPEST_REPAIR: usize = 64;

/// How many values arguments may hold. What is done with all of them, such as the digest and the copy
/// for the body, runs on async workers: this is about 10 ms of it.
const MOST_VALUES: usize = 100_000;

/// Arguments that are no JSON, or too much of it.
#[derive(Debug, Clone)]
pub(super) struct NotJson {
    /// As the model wrote them.
    pub(super) text: String,
    /// Where parsing stopped; quotes nothing.
    pub(super) problem: String,
}

/// Reads arguments. Nothing at all is an empty object. What is no JSON gets one repair: as JSON5,
/// without the code fence that models like to put around it. A number without a fraction is an integer,
/// however it is written, as it is for a schema.
pub(super) fn read(arguments: Arguments) -> Result<Value, NotJson> {
    let mut value = parse(arguments)?;
    if holds_more_than(MOST_VALUES, &value) {
        let problem = format!("they hold more than {MOST_VALUES} values");
        return Err(NotJson { text: String::new(), problem });
    }
    make_whole(&mut value);
    Ok(value)
}

/// Stops counting there. What nests too deep does not come here.
fn holds_more_than(most: usize, value: &Value) -> bool {
    fn count(left: usize, value: &Value) -> Option<usize> {
        let left = left.checked_sub(1)?;
        match value {
            Value::Array(items) => items.iter().try_fold(left, count),
            Value::Object(map) => map.values().try_fold(left, count),
            _ => Some(left),
        }
    }
    count(most, value).is_none()
}

fn parse(arguments: Arguments) -> Result<Value, NotJson> {
    let text = match arguments {
        Arguments::Json(Value::Null) => return Ok(Value::Object(Map::new())),
        Arguments::Json(value) if nests_too_deep(&value) => {
            dismantle(value);
            let problem = format!("they nest deeper than {DEEPEST_JSON} levels");
            return Err(NotJson { text: String::new(), problem });
        }
        Arguments::Json(value) => return Ok(value),
        Arguments::Text(text) => text,
    };
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let error = match serde_json::from_str::<Value>(&text) {
        Ok(Value::Null) => return Ok(Value::Object(Map::new())),
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if let Some(value) = repair(&text) {
        return Ok(value);
    }
    let problem = format!("line {}, column {}", error.line(), error.column());
    Err(NotJson { text, problem })
}

fn repair(text: &str) -> Option<Value> {
    let text = text.trim();
    let text = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|text| text.strip_suffix("```"))
        .unwrap_or(text);
    if text.len() > LONGEST_REPAIR || depth(text) > DEEPEST_REPAIR {
        return None;
    }
    let Repaired(value) = json5::from_str(text).ok()?;
    Some(value).filter(Value::is_object)
}

/// Writes `10.0` as `10`, as models do not always: `#[tool]` and others that take integers take no other
/// number.
fn make_whole(value: &mut Value) {
    /// Up to here every integer is a number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole =
                number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
            if let Some(whole) = whole {
                *number = (whole as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(map) => map.values_mut().for_each(make_whole),
        _ => {}
    }
}

/// What was mended in its form only: JSON5 has numbers that data has not, as `NaN` and `1e999`, and reading
/// them as data makes them null.
struct Repaired(Value);

impl<'de> Deserialize<'de> for Repaired {
    fn deserialize<D: Deserializer<'de>>(json5: D) -> Result<Self, D::Error> {
        json5.deserialize_any(OfData)
    }
}

struct OfData;

impl<'de> Visitor<'de> for OfData {
    type Value = Repaired;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Repaired, E> {
        Ok(Repaired(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Repaired, E> {
        Ok(Repaired(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Repaired, E> {
        Ok(Repaired(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Repaired, E> {
        Ok(Repaired(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Repaired, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(|number| Repaired(number.into())).ok_or_else(|| E::custom("no number of JSON"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Repaired, E> {
        Ok(Repaired(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Repaired, A::Error> {
        let mut all = Vec::new();
        while let Some(Repaired(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Repaired(all.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Repaired, A::Error> {
        let mut all = Map::new();
        while let Some((key, Repaired(value))) = entries.next_entry::<String, _>()? {
            all.insert(key, value);
        }
        Ok(Repaired(all.into()))
    }
}

/// An upper bound of the nesting: brackets in strings count too.
fn depth(text: &str) -> usize {
    let mut deepest = 0_usize;
    let mut open = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Option<Value> {
        read(Arguments::Text(text.to_owned())).ok()
    }

    #[test]
    fn one_repair_and_no_more() {
        assert_eq!(text(r#"{"a": 1}"#), Some(json!({"a": 1})));
        assert_eq!(text(""), Some(json!({})));
        assert_eq!(text("null"), Some(json!({})));
        assert_eq!(text("{'a': 1, b: [2,],}"), Some(json!({"a": 1, "b": [2]})));
        assert_eq!(text("```json\n{\"a\": 1}\n```"), Some(json!({"a": 1})));
        assert_eq!(text("refund order 1042"), None);
        assert_eq!(text("{\"a\": 1"), None);
        assert_eq!(text(&format!("{}1{},", "[".repeat(9000), "]".repeat(9000))), None);
    }

    #[test]
    fn a_repair_mends_no_values() {
        let every = json!({"a": null, "b": [true, -1, 1.5, 18_446_744_073_709_551_615_u64, "t"]});
        let text_of_it = "{a: null, 'b': [true, -1, +1.5, 18446744073709551615, 't',]}";
        assert_eq!(text(text_of_it), Some(every));
        assert_eq!(text("{a: 0x10, b: .5,}"), Some(json!({"a": 16, "b": 0.5})));
        for none in ["NaN", "Infinity", "-Infinity", "1e400", "[1, {b: -1e999}]"] {
            assert_eq!(text(&format!("{{\"a\": {none}}}")), None, "{none}");
        }
    }

    #[test]
    fn a_number_without_a_fraction_is_an_integer() {
        assert_eq!(
            text("[1042.0, 1e3, -0.0]").map(|v| v.to_string()).as_deref(),
            Some("[1042,1000,0]")
        );
        let whole = text(r#"{"a": {"b": [10.0, 1.5, 1e16, 1e300]}}"#).unwrap();
        assert_eq!(whole.to_string(), r#"{"a":{"b":[10,1.5,1e+16,1e+300]}}"#);
    }

    #[test]
    fn what_code_nests_without_measure_is_refused() {
        let deep = (0..100_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        let problem = read(Arguments::Json(deep)).unwrap_err().problem;
        assert_eq!(problem, "they nest deeper than 128 levels");
    }

    #[test]
    fn the_problem_quotes_nothing() {
        let NotJson { problem, .. } = read(Arguments::Text("{\"a\": hunter2}".into())).unwrap_err();
        assert_eq!(problem, "line 1, column 7");
    }

    proptest! {
        #[test]
        fn nothing_a_model_writes_panics(text in "\\PC*|[\\[\\]{}\"':,a0 \\\\]{0,200}") {
            let _ = read(Arguments::Text(text));
        }
    }
}
