//! Parses a model's arguments into the one value that every later stage sees.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolcrib_core::{
    __internal::{DEEPEST_ARGUMENTS, PlainJson, dismantle, has_reserved_key, nests_deeper_than},
    Arguments, Tool,
};

use super::{absent, convert, mend::MendedJson};

/// Maximum number of values in arguments. Operations over all of them, such as the digest and the
/// copy for the body, run on async workers: about 10 ms at this limit.
pub(super) const MOST_VALUES: usize = 100_000;

/// Arguments that are not JSON, not exactly one value, or too large.
#[derive(Debug, Clone)]
pub(super) struct InvalidArguments {
    /// As the model wrote them.
    pub(super) text: String,
    /// The problem and its position, without quotes from the text.
    pub(super) problem: String,
}

/// Arguments as every later stage sees them.
#[derive(Debug)]
pub(super) struct ReadArguments {
    pub(super) value: Value,
    /// Whether the text was not JSON as written.
    pub(super) is_mended: bool,
    /// The places of values that were written as text, as JSON Pointers.
    pub(super) converted: Vec<Arc<str>>,
}

/// Parses arguments. An empty text is an empty object; the syntax of almost-JSON is
/// [mended](MendedJson). For a tool, values that were written as text are [converted](convert) if
/// `converts`, and the result is [normalized](normalize).
pub(super) fn read(
    arguments: Arguments,
    tool: Option<&Tool>,
    converts: bool,
) -> Result<ReadArguments, InvalidArguments> {
    match arguments {
        Arguments::Json(Value::Null) => prepared(empty(), tool, converts),
        Arguments::Json(value) => prepared(admitted(value)?, tool, converts),
        Arguments::Text(text) => read_text(&text, tool, converts),
    }
}

/// As [`read`], of a text.
pub(super) fn read_text(
    text: &str,
    tool: Option<&Tool>,
    converts: bool,
) -> Result<ReadArguments, InvalidArguments> {
    let invalid = |problem| InvalidArguments { text: text.to_owned(), problem };
    let (value, is_mended) = parse(text).map_err(invalid)?;
    Ok(ReadArguments { is_mended, ..prepared(value, tool, converts)? })
}

fn prepared(
    mut value: Value,
    tool: Option<&Tool>,
    converts: bool,
) -> Result<ReadArguments, InvalidArguments> {
    let mut found = make_whole(&mut value);
    let mut converted = Vec::new();
    if let Some(tool) = tool.filter(|_| converts && found.json_text) {
        converted = convert::convert(&mut value, tool.input_schema());
        if !converted.is_empty() {
            if nests_deeper_than(DEEPEST_ARGUMENTS, &value) {
                return Err(too_deep(value));
            }
            found = make_whole(&mut value);
        }
    }
    if found.levels > DEEPEST_ARGUMENTS {
        return Err(too_deep(value));
    }
    if holds_more_than(MOST_VALUES, &value) {
        let problem = format!("they contain more than {MOST_VALUES} values");
        return Err(InvalidArguments { text: String::new(), problem });
    }
    without_nulls(&mut value, tool, found);
    Ok(ReadArguments { value, is_mended: false, converted })
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// Accepts a value as arguments: it does not nest too deep, and has no key that `serde_json` would
/// replace when a tool deserializes the value.
///
/// # Errors
/// The value, dismantled into text, and the problem.
pub(super) fn admitted(value: Value) -> Result<Value, InvalidArguments> {
    if nests_deeper_than(DEEPEST_ARGUMENTS, &value) {
        return Err(too_deep(value));
    }
    if has_reserved_key(&value) {
        let problem = "a key begins with `$serde_json::private::`".to_owned();
        return Err(InvalidArguments { text: value.to_string(), problem });
    }
    Ok(value)
}

fn too_deep(value: Value) -> InvalidArguments {
    dismantle(value);
    let problem = format!("they nest deeper than {DEEPEST_ARGUMENTS} levels");
    InvalidArguments { text: String::new(), problem }
}

/// Writes a number without a fraction as an integer, and removes `null` for an optional argument
/// that does not accept null. Models send both.
pub(super) fn normalize(value: &mut Value, tool: Option<&Tool>) {
    let found = make_whole(value);
    without_nulls(value, tool, found);
}

fn without_nulls(value: &mut Value, tool: Option<&Tool>, found: FoundValues) {
    if let Some(tool) = tool.filter(|_| found.null) {
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

/// The value, and whether it was mended. The error is the problem.
fn parse(text: &str) -> Result<(Value, bool), String> {
    if text.trim().is_empty() {
        return Ok((empty(), false));
    }
    let error = match PlainJson::read_at_most(MOST_VALUES, text.as_bytes()) {
        Ok(Value::Null) => return Ok((empty(), false)),
        Ok(value) => return Ok((value, false)),
        Err(error) => error,
    };
    // Valid JSON that is not exactly one value is not mended.
    match error.is_data() {
        true => Err(error.to_string()),
        false => mended(text).map(|value| (value, true)),
    }
}

/// Reads almost-JSON; the error is the problem and its place.
fn mended(text: &str) -> Result<Value, String> {
    let place = |at: usize, problem: &str| {
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("line {line}, column {column}: {problem}")
    };
    let mended = MendedJson::of(text).map_err(|unclear| place(unclear.at, &unclear.problem))?;
    let read = PlainJson::read_at_most(MOST_VALUES, mended.json.as_bytes());
    let value = read.map_err(|error| {
        let problem = error.to_string();
        // Its place is one of the mended text, which is a single line.
        let problem = problem.split(" at line ").next().unwrap_or_default();
        let at = match error.is_eof() {
            true => text.trim_end().len(),
            false => mended.original(error.column().saturating_sub(1)),
        };
        place(at, problem)
    })?;
    match value.is_object() {
        true => Ok(value),
        false => Err("they are not an object".to_owned()),
    }
}

/// The findings of a walk over arguments.
#[derive(Debug, Clone, Copy, Default)]
struct FoundValues {
    null: bool,
    /// A text that may be the JSON of another type.
    json_text: bool,
    /// The levels of objects and arrays.
    levels: usize,
}

/// Writes `10.0` as `10`: `#[tool]` and other consumers of integers accept no other form.
fn make_whole(value: &mut Value) -> FoundValues {
    fn visit(value: &mut Value, level: usize, found: &mut FoundValues) {
        /// Up to here every integer is exact.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match value {
            Value::Null => found.null = true,
            Value::String(text) => found.json_text |= convert::may_be_json(text),
            Value::Number(number) if number.is_f64() => {
                let whole =
                    number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
                if let Some(whole) = whole {
                    *number = (whole as i64).into();
                }
            }
            Value::Array(items) => {
                found.levels = found.levels.max(level);
                items.iter_mut().for_each(|item| visit(item, level + 1, found));
            }
            Value::Object(map) => {
                found.levels = found.levels.max(level);
                map.values_mut().for_each(|value| visit(value, level + 1, found));
            }
            _ => {}
        }
    }
    let mut found = FoundValues::default();
    visit(value, 1, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Option<Value> {
        read(Arguments::Text(text.to_owned()), None, true).ok().map(|read| read.value)
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
        let problem = read(Arguments::Json(deep), None, true).unwrap_err().problem;
        assert_eq!(problem, "they nest deeper than 64 levels");
    }

    #[test]
    fn the_problem_quotes_nothing() {
        let InvalidArguments { problem, .. } =
            read(Arguments::Text("{\"a\": hunter2}".into()), None, true).unwrap_err();
        assert_eq!(problem, "line 1, column 7: this is not JSON; a text is in double quotes");
    }

    proptest! {
        #[test]
        fn nothing_a_model_writes_panics(text in "\\PC*|[\\[\\]{}\"':,a0 \\\\]{0,200}") {
            let _ = read(Arguments::Text(text), None, true);
        }
    }
}
