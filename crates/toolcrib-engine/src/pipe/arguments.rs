//! From what a model wrote to data.

use serde_json::{Map, Value};
use toolcrib_core::{Arguments, DEEPEST_JSON, dismantle, nests_too_deep};

/// Longer texts are not repaired, only parsed.
const LONGEST_REPAIR: usize = 64 * 1024;

/// Deeper texts are not repaired: the parser of the repair has no bound of its own.
const DEEPEST_REPAIR: usize = 64;

/// Arguments that are no JSON.
#[derive(Debug, Clone)]
pub(super) struct NotJson {
    /// As the model wrote them.
    pub(super) text: String,
    /// Where parsing stopped; quotes nothing.
    pub(super) problem: String,
}

/// Reads arguments. Nothing at all is an empty object. What is no JSON gets one repair: as JSON5,
/// without the code fence that models like to put around it.
pub(super) fn read(arguments: Arguments) -> Result<Value, NotJson> {
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
    json5::from_str(text).ok().filter(Value::is_object)
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
