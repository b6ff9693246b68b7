//! Parses a model's arguments into the one value that every later stage sees.

use serde_json::{Map, Value};
use toolcrib_core::{
    __internal::{DEEPEST_JSON, PlainJson, dismantle, has_reserved_key, nests_too_deep},
    Arguments, Tool,
};

use super::absent;

/// Longer texts are parsed without repair.
const LONGEST_REPAIR: usize = 64 * 1024;

/// Deeper texts are not repaired: the repair's parser has no depth limit.
const DEEPEST_REPAIR: usize = 64;

/// Maximum number of values in arguments. Operations over all of them, such as the digest and the
/// copy for the body, run on async workers: about 10 ms at this limit.
const MOST_VALUES: usize = 100_000;

/// Arguments that are not JSON, not exactly one value, or too large.
#[derive(Debug, Clone)]
pub(super) struct InvalidArguments {
    /// As the model wrote them.
    pub(super) text: String,
    /// The problem and its position, without quotes from the text.
    pub(super) problem: String,
}

/// Parses arguments. An empty text is an empty object. Invalid JSON gets one repair: as JSON5,
/// without the code fence that models like to put around it. The result is [normalized](normalize)
/// for the tool.
pub(super) fn read(arguments: Arguments, tool: Option<&Tool>) -> Result<Value, InvalidArguments> {
    let mut value = parse(arguments)?;
    if holds_more_than(MOST_VALUES, &value) {
        let problem = format!("they contain more than {MOST_VALUES} values");
        return Err(InvalidArguments { text: String::new(), problem });
    }
    normalize(&mut value, tool);
    Ok(value)
}

/// Accepts a value as arguments: it does not nest too deep, and has no key that `serde_json` would
/// replace when a tool deserializes the value.
///
/// # Errors
/// The value, dismantled into text, and the problem.
pub(super) fn admitted(value: Value) -> Result<Value, InvalidArguments> {
    if nests_too_deep(&value) {
        dismantle(value);
        let problem = format!("they nest deeper than {DEEPEST_JSON} levels");
        return Err(InvalidArguments { text: String::new(), problem });
    }
    if has_reserved_key(&value) {
        let problem = "a key begins with `$serde_json::private::`".to_owned();
        return Err(InvalidArguments { text: value.to_string(), problem });
    }
    Ok(value)
}

/// Writes a number without a fraction as an integer, and removes `null` for an optional argument
/// that does not accept null. Models send both.
pub(super) fn normalize(value: &mut Value, tool: Option<&Tool>) {
    let has_null = make_whole(value);
    if let Some(tool) = tool.filter(|_| has_null) {
        absent::remove_nulls(value, tool.input_schema());
    }
}

/// Stops counting at the limit. Data that nests too deep is rejected earlier.
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

fn parse(arguments: Arguments) -> Result<Value, InvalidArguments> {
    let text = match arguments {
        Arguments::Json(Value::Null) => return Ok(Value::Object(Map::new())),
        Arguments::Json(value) => return admitted(value),
        Arguments::Text(text) => text,
    };
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let error = match PlainJson::read_at_most(MOST_VALUES, text.as_bytes()) {
        Ok(Value::Null) => return Ok(Value::Object(Map::new())),
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let (line, column) = (error.line(), error.column());
    // Valid JSON that is not exactly one value is not repaired either.
    if error.is_data() {
        let problem = error.to_string();
        return Err(InvalidArguments { text, problem });
    }
    if let Some(value) = repair(&text) {
        return Ok(value);
    }
    Err(InvalidArguments { text, problem: format!("line {line}, column {column}") })
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
    let PlainJson(value) = json5::from_str(text).ok()?;
    Some(value).filter(Value::is_object)
}

/// Writes `10.0` as `10`: `#[tool]` and other consumers of integers accept no other form. Returns
/// whether there is a null.
fn make_whole(value: &mut Value) -> bool {
    /// Up to here every integer is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Null => return true,
        Value::Number(number) if number.is_f64() => {
            let whole =
                number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
            if let Some(whole) = whole {
                *number = (whole as i64).into();
            }
        }
        Value::Array(items) => {
            return items.iter_mut().fold(false, |null, item| make_whole(item) | null);
        }
        Value::Object(map) => {
            return map.values_mut().fold(false, |null, value| make_whole(value) | null);
        }
        _ => {}
    }
    false
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
        read(Arguments::Text(text.to_owned()), None).ok()
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
        let problem = read(Arguments::Json(deep), None).unwrap_err().problem;
        assert_eq!(problem, "they nest deeper than 128 levels");
    }

    #[test]
    fn the_problem_quotes_nothing() {
        let InvalidArguments { problem, .. } =
            read(Arguments::Text("{\"a\": hunter2}".into()), None).unwrap_err();
        assert_eq!(problem, "line 1, column 7");
    }

    proptest! {
        #[test]
        fn nothing_a_model_writes_panics(text in "\\PC*|[\\[\\]{}\"':,a0 \\\\]{0,200}") {
            let _ = read(Arguments::Text(text), None);
        }
    }
}
