//! YAML as JSON: the first document of a text, by the core schema of YAML 1.2.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// The depth limit, as that of JSON texts.
const DEEPEST: usize = 128;

/// The limit of values, counting those of aliases each time: aliases multiply.
const MOST_VALUES: usize = 4_000_000;

/// A list or map that is still open, with the anchor that names it; 0 for none.
struct OpenCollection {
    anchor: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Value>),
    Map { entries: Map<String, Value>, key: Option<String> },
}

/// Parses a text.
///
/// # Errors
/// The error, with its place.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut open: Vec<OpenCollection> = Vec::new();
    let mut anchors: HashMap<usize, (Value, usize)> = HashMap::new();
    let mut values = 0_usize;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let at = error.marker();
            format!("line {}, column {}: {}", at.line(), at.col() + 1, error.info())
        })?;
        let wrong = |problem: &str| Err(format!("line {}: {problem}", span.start.line()));
        values += 1;
        let (anchor, done) = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEEPEST => {
                return wrong("it nests deeper than 128 levels");
            }
            Event::SequenceStart(anchor, _) => {
                open.push(OpenCollection { anchor, kind: Kind::List(Vec::new()) });
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push(OpenCollection {
                    anchor,
                    kind: Kind::Map { entries: Map::new(), key: None },
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(OpenCollection { anchor, kind: Kind::List(items) }) => (anchor, items.into()),
                Some(OpenCollection { anchor, kind: Kind::Map { entries, .. } }) => {
                    (anchor, entries.into())
                }
                None => continue,
            },
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.suffix == "str");
                let plain = style == ScalarStyle::Plain && !is_text;
                (anchor, if plain { scalar(&text) } else { text.into_owned().into() })
            }
            Event::Alias(anchor) => {
                let Some((value, size)) = anchors.get(&anchor) else {
                    return wrong("an alias refers to a value that contains it");
                };
                values += size;
                if values > MOST_VALUES {
                    return wrong("its aliases make too many values of it");
                }
                (0, value.clone())
            }
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
        };
        if values > MOST_VALUES {
            return wrong("it has too many values");
        }
        if anchor != 0 {
            let size = size_of(&done);
            values += size;
            anchors.insert(anchor, (done.clone(), size));
        }
        match open.last_mut().map(|open| &mut open.kind) {
            None => return Ok(done),
            Some(Kind::List(items)) => items.push(done),
            Some(Kind::Map { entries, key }) => match key.take() {
                None => *key = Some(key_text(done)),
                Some(key) => drop(entries.insert(key, done)),
            },
        }
    }
    Err("it is empty".to_owned())
}

/// JSON has only texts as keys: the status `200` becomes `"200"`.
fn key_text(key: Value) -> String {
    match key {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size_of).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(size_of).sum::<usize>(),
        _ => 1,
    }
}

/// A plain scalar by the core schema.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let looks_like_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if looks_like_number {
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        if let Ok(number) = unsigned.parse::<i64>() {
            return number.into();
        }
        if let Ok(number) = unsigned.parse::<u64>() {
            return number.into();
        }
        if let Some(number) = unsigned.parse::<f64>().ok().and_then(Number::from_f64) {
            return number.into();
        }
    }
    let hex = digits.strip_prefix("0x").and_then(|hex| i64::from_str_radix(hex, 16).ok());
    match hex {
        Some(number) => number.into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        let yaml = "a: 1\nb: -2.5\nc: 'no'\nd: no\ne: ~\nf: true\n200: x\ng: 1.0.0\nh: 0x1F\n\
                    i: 2024-01-01\nj: |\n  two\n  lines\nk: .5\nl: 18446744073709551615\nm:\n-\n";
        let expected = json!({
            "a": 1, "b": -2.5, "c": "no", "d": "no", "e": null, "f": true, "200": "x",
            "g": "1.0.0", "h": 31, "i": "2024-01-01", "j": "two\nlines\n", "k": 0.5,
            "l": 18_446_744_073_709_551_615_u64, "m": [null],
        });
        assert_eq!(parse(yaml).unwrap(), expected);
    }

    #[test]
    fn aliases_are_resolved_and_cannot_multiply_without_end() {
        assert_eq!(
            parse("a: &x {b: 1}\nc: *x\n").unwrap(),
            json!({ "a": {"b": 1}, "c": {"b": 1} })
        );
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{inner}]\n");
        }
        assert!(parse(&bomb).unwrap_err().contains("too many values"));
        assert!(parse("&a [*a]").is_err());
    }

    #[test]
    fn errors_have_a_place() {
        assert!(parse("a: 1\nb: [1, 2\nc: 3").unwrap_err().starts_with("line "));
        assert!(parse(&"[".repeat(200)).unwrap_err().contains("128 levels"));
        assert!(parse("").is_err());
    }
}
