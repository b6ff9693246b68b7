//! YAML as JSON: the first document of a text, by the core schema of YAML 1.2, with the merge keys (`<<`) of
//! YAML 1.1, which documents still use.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use toolcrib_config::yaml::{YamlError, YamlPart, YamlPlace, YamlScalar, read_yaml};

/// The depth limit, as that of JSON texts.
const DEEPEST: usize = 128;

/// The limit of values, counting those of aliases each time: aliases multiply. A smaller text has a lower one.
const MOST_VALUES: usize = 4_000_000;
/// The values that any text may have, besides one for each of its bytes.
const ALWAYS_VALUES: usize = 100_000;
/// The bytes of a text that count as one value.
const BYTES_OF_VALUE: usize = 32;

/// The most repeated keys that are listed.
pub(super) const MOST_REPEATED: usize = 10;

/// A value, with the line on which it begins.
struct Node {
    line: usize,
    value: Value,
    /// Whether it is `<<` without quotes: as a key, its value is a map, or a list of maps, with the entries
    /// that the map itself lacks.
    is_merge: bool,
}

/// Parses a text. Also returns the keys that occur twice in a map, of which the last one counts, each with
/// its line.
///
/// # Errors
/// The error, with its place.
pub(super) fn parse(text: &str) -> Result<(Value, Vec<String>), String> {
    let mut reader = Reader {
        most_values: MOST_VALUES.min(text.len() + ALWAYS_VALUES),
        values: 0,
        anchors: HashMap::new(),
        repeated: Vec::new(),
    };
    let make = |part: YamlPart<'_, Node>, at: YamlPlace| {
        reader.node(part, at).map_err(|problem| format!("line {}: {problem}", at.line))
    };
    match read_yaml(text, DEEPEST, make) {
        Ok(Some(document)) => Ok((document.value, reader.repeated)),
        Ok(None) => Err("it is empty".to_owned()),
        Err(YamlError::Syntax { at, info }) => {
            Err(format!("line {}, column {}: {info}", at.line, at.column))
        }
        Err(YamlError::Depth(at)) => {
            Err(format!("line {}: it nests deeper than {DEEPEST} levels", at.line))
        }
        Err(YamlError::Part(problem)) => Err(problem),
    }
}

struct Reader {
    most_values: usize,
    /// The values so far.
    values: usize,
    /// The values with an anchor, and their sizes.
    anchors: HashMap<usize, (Value, usize)>,
    repeated: Vec<String>,
}

impl Reader {
    fn node(&mut self, part: YamlPart<'_, Node>, at: YamlPlace) -> Result<Node, String> {
        self.values += 1;
        let mut is_merge = false;
        let value = match part {
            YamlPart::Scalar(YamlScalar {
                text, is_plain: true, is_tagged_text: false, ..
            }) => {
                is_merge = text == "<<";
                scalar(&text)
            }
            YamlPart::Scalar(scalar) => scalar.text.into_owned().into(),
            YamlPart::List(items) => items.into_iter().map(|item| item.value).collect(),
            YamlPart::Map(entries) => self.map(entries)?.into(),
            YamlPart::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor) else {
                    return Err("an alias refers to a value that contains it".to_owned());
                };
                self.values += size;
                if self.values > self.most_values {
                    return Err("its aliases make too many values of it".to_owned());
                }
                value.clone()
            }
        };
        if at.anchor != 0 {
            let size = size_of(&value);
            self.values += size;
            self.anchors.insert(at.anchor, (value.clone(), size));
        }
        if self.values > self.most_values {
            return Err("it has too many values".to_owned());
        }
        Ok(Node { line: at.line, value, is_merge })
    }

    fn map(&mut self, all: Vec<(Node, Node)>) -> Result<Map<String, Value>, String> {
        let (mut entries, mut merged) = (Map::new(), Vec::new());
        for (key, Node { line, value, .. }) in all {
            if key.is_merge {
                merged.extend(maps(value).ok_or("`<<` needs a map, or a list of maps")?);
                continue;
            }
            let key = key_text(key.value);
            if entries.contains_key(&key) && self.repeated.len() < MOST_REPEATED {
                self.repeated.push(format!("{key} (line {line})"));
            }
            entries.insert(key, value);
        }
        for (key, value) in merged.into_iter().flatten() {
            entries.entry(key).or_insert(value);
        }
        // Without the room for more keys, a large document takes a third of the memory.
        Ok(entries.into_iter().collect())
    }
}

/// The maps that a merge key names; of several, the first one with an entry has it.
fn maps(value: Value) -> Option<Vec<Map<String, Value>>> {
    match value {
        Value::Object(map) => Some(vec![map]),
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::Object(map) => Some(map),
                _ => None,
            })
            .collect(),
        _ => None,
    }
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
        Value::Object(entries) => {
            let of_entry =
                |(key, value): (&String, &Value)| key.len() / BYTES_OF_VALUE + size_of(value);
            1 + entries.iter().map(of_entry).sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / BYTES_OF_VALUE,
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
        assert_eq!(parse(yaml).unwrap(), (expected, Vec::new()));
    }

    #[test]
    fn aliases_are_resolved_and_cannot_multiply_without_end() {
        assert_eq!(
            parse("a: &x {b: 1}\nc: *x\n").unwrap().0,
            json!({ "a": {"b": 1}, "c": {"b": 1} })
        );
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{inner}]\n");
        }
        assert!(parse(&bomb).unwrap_err().contains("too many values"));
        assert!(parse("&a [*a]").is_err());
        // A long text counts by its length, and merged maps count like other aliases.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1_000_000), "*a, ".repeat(1_000));
        assert!(parse(&long).unwrap_err().contains("too many values"));
        let mut bomb = "a0: &a0 {k: [x, x, x, x, x, x, x, x, x, x]}\n".to_owned();
        for level in 1..30 {
            let inner = level - 1;
            bomb += &format!(
                "a{level}: &a{level} {{ <<: [*a{inner}], k{level}: *a{inner}, l{level}: *a{inner} }}\n"
            );
        }
        assert!(parse(&bomb).unwrap_err().contains("too many values"));
    }

    #[test]
    fn merge_keys_add_the_entries_that_a_map_lacks() {
        let yaml = "base: &base {a: 1, b: 1}\nmore: &more {<<: *base, b: 2, c: 2}\n\
                    one:\n  b: own\n  <<: *base\nlist: {<<: [*more, {d: 4, c: no}]}\n\
                    quoted: {'<<': x}\nlast: << \n";
        let (parsed, repeated) = parse(yaml).unwrap();
        assert_eq!(parsed["more"], json!({ "b": 2, "c": 2, "a": 1 }));
        assert_eq!(parsed["one"], json!({ "b": "own", "a": 1 }));
        assert_eq!(parsed["list"], json!({ "b": 2, "c": 2, "a": 1, "d": 4 }));
        assert_eq!(parsed["quoted"], json!({ "<<": "x" }));
        assert_eq!(parsed["last"], json!("<<"));
        assert_eq!(repeated, [""; 0]);
        for wrong in ["{<<: text}", "{<<: [{a: 1}, 2]}", "<<: null"] {
            assert!(parse(wrong).unwrap_err().contains("`<<`"), "{wrong}");
        }
    }

    #[test]
    fn repeated_keys_are_listed_and_the_last_one_counts() {
        let (parsed, repeated) = parse("a: 1\nb: {c: 1,\n  c: 2}\na: 3\n").unwrap();
        assert_eq!(parsed, json!({ "a": 3, "b": { "c": 2 } }));
        assert_eq!(repeated, ["c (line 3)", "a (line 4)"]);
    }

    #[test]
    fn errors_have_a_place() {
        assert!(parse("a: 1\nb: [1, 2\nc: 3").unwrap_err().starts_with("line "));
        assert!(parse(&"[".repeat(200)).unwrap_err().contains("128 levels"));
        assert!(parse("").is_err());
    }
}
