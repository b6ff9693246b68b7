//! Compares the frontmatter of a `SKILL.md` with the one that the server listed, field by field.

use serde_json::{Map, Value};
use toolcrib_config::{
    split_frontmatter,
    yaml::{YamlPart, read_yaml},
};

/// The limits of frontmatter: the bytes, and the depth.
const MOST_BYTES: usize = 64 * 1024;
const DEEPEST: usize = 32;

/// A node of YAML.
enum Node {
    /// A scalar without quotes, which may be of any type.
    Plain(String),
    /// A text.
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// The body of a `SKILL.md` whose frontmatter has exactly these fields.
///
/// # Errors
/// The difference, as the end of a sentence about the file.
pub(super) fn body<'t>(text: &'t str, listed: &Map<String, Value>) -> Result<&'t str, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (frontmatter, body) = split_frontmatter(text)
        .ok_or("does not begin with frontmatter between two lines of `---`")?;
    if frontmatter.len() > MOST_BYTES {
        return Err(format!("has frontmatter of more than {MOST_BYTES} bytes"));
    }
    let Some(Node::Map(fields)) = parse(frontmatter) else {
        return Err("has frontmatter that is not a mapping of YAML, or has aliases".to_owned());
    };
    let differs = |key: &str| {
        let shown: String = key.chars().take(64).collect();
        format!("has frontmatter that differs from the listed one in `{}`", shown.escape_debug())
    };
    for (key, value) in &fields {
        if !listed.get(key).is_some_and(|listed| is_same(value, listed)) {
            return Err(differs(key));
        }
    }
    let missing = listed.keys().find(|key| !fields.iter().any(|(known, _)| known == *key));
    match missing {
        Some(key) => Err(differs(key)),
        None => Ok(body.trim()),
    }
}

/// The first document; `None` if it is not YAML, too deep, repeats a key, or has aliases.
fn parse(yaml: &str) -> Option<Node> {
    let node = |part: YamlPart<'_, Node>, _| match part {
        YamlPart::Scalar(scalar) if scalar.is_plain => Ok(Node::Plain(scalar.text.into_owned())),
        YamlPart::Scalar(scalar) => Ok(Node::Text(scalar.text.into_owned())),
        YamlPart::List(items) => Ok(Node::List(items)),
        YamlPart::Map(entries) => {
            let mut fields: Vec<(String, Node)> = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let (Node::Plain(key) | Node::Text(key)) = key else { return Err(()) };
                if fields.iter().any(|(known, _)| *known == key) {
                    return Err(());
                }
                fields.push((key, value));
            }
            Ok(Node::Map(fields))
        }
        YamlPart::Alias(_) => Err(()),
    };
    read_yaml(yaml, DEEPEST, node).ok().flatten()
}

/// Whether a node is a value of JSON. Parsers differ in the type of a scalar without quotes, such as
/// a date: it is equal to its text too.
fn is_same(node: &Node, listed: &Value) -> bool {
    match (node, listed) {
        (Node::Plain(text), Value::Null) => matches!(&**text, "" | "~" | "null" | "Null" | "NULL"),
        (Node::Plain(text), Value::Bool(is)) => text.eq_ignore_ascii_case(&is.to_string()),
        (Node::Plain(text), Value::Number(number)) => {
            *text == number.to_string()
                || text.parse::<f64>().is_ok_and(|value| number.as_f64() == Some(value))
        }
        (Node::Plain(text) | Node::Text(text), Value::String(listed)) => text == listed,
        (Node::List(items), Value::Array(listed)) => {
            items.len() == listed.len()
                && items.iter().zip(listed).all(|(item, listed)| is_same(item, listed))
        }
        (Node::Map(fields), Value::Object(listed)) => {
            fields.len() == listed.len()
                && fields.iter().all(|(key, value)| {
                    listed.get(key).is_some_and(|listed| is_same(value, listed))
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::body;

    fn read(frontmatter: &str, listed: &serde_json::Value) -> Result<String, String> {
        let text = format!("---\n{frontmatter}\n---\n\nBody.\n");
        body(&text, listed.as_object().unwrap()).map(str::to_owned)
    }

    #[test]
    fn every_field_must_be_the_listed_one() {
        let yaml = "name: a\ndescription: >-\n  two\n  lines\nversion: 1.10\nok: true\nday: 2026-01-02\n\
                    none:\nmetadata: { tags: [x, \"1\"] }";
        let listed = json!({
            "name": "a", "description": "two lines", "version": 1.1, "ok": true,
            "day": "2026-01-02", "none": null, "metadata": { "tags": ["x", "1"] },
        });
        assert_eq!(read(yaml, &listed).as_deref(), Ok("Body."));

        for (key, value) in [
            ("description", json!("two words")),
            ("version", json!(1.2)),
            ("ok", json!(false)),
            ("none", json!(0)),
            ("metadata", json!({ "tags": ["x", 1] })),
            ("more", json!(1)),
        ] {
            let mut other = listed.clone();
            other[key] = value;
            let problem = read(yaml, &other).unwrap_err();
            assert!(
                problem.ends_with(&format!("differs from the listed one in `{key}`")),
                "{problem}"
            );
        }
        let problem = read("name: a\nevil: yes", &json!({ "name": "a" })).unwrap_err();
        assert!(problem.ends_with("in `evil`"), "{problem}");
    }

    #[test]
    fn a_file_without_plain_frontmatter_is_refused() {
        for frontmatter in
            ["name: &a x\nb: *a", "name: a\nname: a", "[a]", "", "a: [", "? [x]\n: y"]
        {
            let problem = read(frontmatter, &json!({ "name": "a" })).unwrap_err();
            assert!(problem.contains("not a mapping"), "{frontmatter}: {problem}");
        }
        let deep = format!("name: {}{}", "[".repeat(40), "]".repeat(40));
        assert!(read(&deep, &json!({ "name": "a" })).is_err());
        assert!(body("no frontmatter", json!({}).as_object().unwrap()).is_err());
    }
}
