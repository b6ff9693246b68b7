//! Arguments as parts of a request, by the styles of OpenAPI. Every name and value is
//! percent-encoded: an argument never changes the text around it.

use serde_json::{Map, Value};

use crate::{arguments::argument_text, http::url::encode};

/// How a list or an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) kind: StyleKind,
    pub(super) explode: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StyleKind {
    /// `a,b`
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a;name=b`
    Matrix,
    /// `name=a&name=b`
    Form,
    /// `name=a%20b`
    Space,
    /// `name=a%7Cb`
    Pipe,
    /// `name=a%09b`
    Tab,
    /// `name[key]=a`
    Deep,
    /// JSON as the text.
    Json,
}

impl Style {
    pub(super) const SIMPLE: Self = Self { kind: StyleKind::Simple, explode: false };
    pub(super) const FORM: Self = Self { kind: StyleKind::Form, explode: true };
    pub(super) const JSON: Self = Self { kind: StyleKind::Json, explode: false };
}

impl StyleKind {
    /// The encoded character between the items of a list.
    fn between(self) -> &'static str {
        match self {
            Self::Space => "%20",
            Self::Pipe => "%7C",
            Self::Tab => "%09",
            _ => ",",
        }
    }
}

fn encoded(text: &str) -> String {
    let mut into = String::new();
    encode(&mut into, text);
    into
}

fn text(value: &Value) -> String {
    encoded(&argument_text(value))
}

/// The members of an object, without nulls.
fn members(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.iter().filter(|(_, value)| !value.is_null())
}

/// The members as `key,value` or `key=value`.
fn flat(object: &Map<String, Value>, between: char) -> Vec<String> {
    members(object)
        .map(|(key, value)| format!("{}{between}{}", encoded(key), text(value)))
        .collect()
}

/// A part of a path.
pub(super) fn in_path(name: &str, style: Style, value: &Value) -> String {
    let key = encoded(name);
    let (start, between) = match style.kind {
        StyleKind::Label => (".".to_owned(), if style.explode { "." } else { "," }),
        StyleKind::Matrix if style.explode => (";".to_owned(), ";"),
        StyleKind::Matrix => (format!(";{key}="), ","),
        kind => (String::new(), kind.between()),
    };
    let is_repeated = style.kind == StyleKind::Matrix && style.explode;
    let parts = match value {
        _ if style.kind == StyleKind::Json => return encoded(&value.to_string()),
        Value::Array(items) if is_repeated => {
            items.iter().map(|item| format!("{key}={}", text(item))).collect()
        }
        Value::Array(items) => items.iter().map(text).collect(),
        Value::Object(object) => flat(object, if style.explode { '=' } else { ',' }),
        value if is_repeated => vec![format!("{key}={}", text(value))],
        value => vec![text(value)],
    };
    start + &parts.join(between)
}

/// The pairs of a query or a form: `name=value`, encoded.
pub(super) fn pairs(name: &str, style: Style, value: &Value) -> Vec<String> {
    let key = encoded(name);
    let joined = |parts: Vec<String>, between: &str| {
        if parts.is_empty() { Vec::new() } else { vec![format!("{key}={}", parts.join(between))] }
    };
    let between = style.kind.between();
    match (style.kind, value) {
        (StyleKind::Json, value) => vec![format!("{key}={}", encoded(&value.to_string()))],
        (StyleKind::Deep, value) => {
            let mut into = Vec::new();
            deep(name, value, &mut into);
            into
        }
        (_, Value::Array(items)) if style.explode => {
            items.iter().map(|item| format!("{key}={}", text(item))).collect()
        }
        (_, Value::Array(items)) => joined(items.iter().map(text).collect(), between),
        (_, Value::Object(object)) if style.explode => flat(object, '='),
        (_, Value::Object(object)) => {
            let both = members(object).flat_map(|(key, value)| [encoded(key), text(value)]);
            joined(both.collect(), between)
        }
        (_, value) => vec![format!("{key}={}", text(value))],
    }
}

/// `name[key][0]=value`; the depth is that of the arguments, which is bounded.
fn deep(name: &str, value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (key, value) in object {
                deep(&format!("{name}[{key}]"), value, into);
            }
        }
        Value::Array(items) => {
            for (position, value) in items.iter().enumerate() {
                deep(&format!("{name}[{position}]"), value, into);
            }
        }
        value => into.push(format!("{}={}", encoded(name), text(value))),
    }
}

/// The text of a header.
pub(super) fn in_header(style: Style, value: &Value) -> String {
    match value {
        Value::Array(items) if style.kind != StyleKind::Json => {
            let between = match style.kind {
                StyleKind::Space => " ",
                StyleKind::Pipe => "|",
                StyleKind::Tab => "\t",
                _ => ",",
            };
            items.iter().map(argument_text).collect::<Vec<_>>().join(between)
        }
        Value::Object(object) if style.kind != StyleKind::Json => {
            let between = if style.explode { '=' } else { ',' };
            let both = members(object)
                .map(|(key, value)| format!("{key}{between}{}", argument_text(value)));
            both.collect::<Vec<_>>().join(",")
        }
        value if style.kind == StyleKind::Json => value.to_string(),
        value => argument_text(value).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn style(kind: StyleKind, explode: bool) -> Style {
        Style { kind, explode }
    }

    #[test]
    fn paths_have_the_styles_of_the_specification() {
        use StyleKind::{Label, Matrix, Simple};
        let (text, list) = (json!("blue"), json!(["blue", "black"]));
        let object = json!({ "R": 100, "G": 200 });
        for (kind, explode, of_text, of_list, of_object) in [
            (Simple, false, "blue", "blue,black", "R,100,G,200"),
            (Simple, true, "blue", "blue,black", "R=100,G=200"),
            (Label, false, ".blue", ".blue,black", ".R,100,G,200"),
            (Label, true, ".blue", ".blue.black", ".R=100.G=200"),
            (Matrix, false, ";c=blue", ";c=blue,black", ";c=R,100,G,200"),
            (Matrix, true, ";c=blue", ";c=blue;c=black", ";R=100;G=200"),
        ] {
            let style = style(kind, explode);
            assert_eq!(in_path("c", style, &text), of_text);
            assert_eq!(in_path("c", style, &list), of_list);
            assert_eq!(in_path("c", style, &object), of_object);
        }
        assert_eq!(in_path("c", Style::SIMPLE, &json!(["a/b", "a,b"])), "a%2Fb,a%2Cb");
    }

    #[test]
    fn queries_have_the_styles_of_the_specification() {
        use StyleKind::{Deep, Form, Pipe, Space};
        let list = json!(["blue", "black"]);
        let object = json!({ "R": 100, "G": 200, "B": null });
        for (kind, explode, value, expected) in [
            (Form, true, &list, "c=blue&c=black"),
            (Form, false, &list, "c=blue,black"),
            (Form, true, &object, "R=100&G=200"),
            (Form, false, &object, "c=R,100,G,200"),
            (Space, false, &list, "c=blue%20black"),
            (Pipe, false, &list, "c=blue%7Cblack"),
            (Deep, true, &object, "c%5BR%5D=100&c%5BG%5D=200"),
            (Deep, true, &json!({ "a": [{ "b": "x&y" }] }), "c%5Ba%5D%5B0%5D%5Bb%5D=x%26y"),
            (StyleKind::Json, false, &json!({ "a": [1] }), "c=%7B%22a%22%3A%5B1%5D%7D"),
            (Form, true, &json!([]), ""),
            (Form, false, &json!([]), ""),
        ] {
            assert_eq!(pairs("c", style(kind, explode), value).join("&"), expected);
        }
    }

    #[test]
    fn headers_are_not_encoded() {
        assert_eq!(in_header(Style::SIMPLE, &json!(["a b", 1])), "a b,1");
        assert_eq!(in_header(Style::SIMPLE, &json!({ "a": 1 })), "a,1");
        let pipes = style(StyleKind::Pipe, false);
        assert_eq!(in_header(pipes, &json!(["a", 1])), "a|1");
        assert_eq!(in_path("p", pipes, &json!(["a", 1])), "a%7C1");
        assert_eq!(in_header(Style::JSON, &json!("a")), "\"a\"");
    }
}
